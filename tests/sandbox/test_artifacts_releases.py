# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Official releases, served by a local server: right, wrong and missing checksums, archives, absent and silent servers."""
from __future__ import annotations

import functools
import hashlib
import http.server
import io
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.artifacts import ArtifactError, releases
from sandbox.artifacts.binaries import BINARIES, Release
from sandbox.artifacts.releases import NotServedError, fetch, published_checksum, reachable

PROGRAM = b"#!/bin/sh\necho tool\n"
PLAIN = Release("kubernetes_release_url", "v{version}/tool", "v{version}/tool.sha256")
PACKED = Release("helm_release_url", "v{version}/tool.tar.gz", "v{version}/SHA256SUMS", "tool-{version}/bin/tool")


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


class Site:
    """A release server over a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def put(self, path: str, content: bytes) -> str:
        """Serve ``content`` and return its SHA-256."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return hashlib.sha256(content).hexdigest()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    reachable.cache_clear()
    served = Site(tmp_path / "served")
    served.folder.mkdir()
    yield served
    served.close()
    reachable.cache_clear()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def packed(name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(PROGRAM)
        tar.addfile(info, io.BytesIO(PROGRAM))
    return buffer.getvalue()


def test_a_file_with_the_right_checksum_is_used(site: Site, place: Path) -> None:
    site.put("v1.2.3/tool.sha256", site.put("v1.2.3/tool", PROGRAM).encode())
    fetch(PLAIN, site.url, "1.2.3", "tool", place)
    assert (place / "tool").read_bytes() == PROGRAM
    assert (place / "tool").stat().st_mode & 0o111
    assert [entry.name for entry in place.iterdir()] == ["tool"]


def test_a_program_is_taken_out_of_its_archive(site: Site, place: Path) -> None:
    checksum = site.put("v1.2.3/tool.tar.gz", packed("tool-1.2.3/bin/tool"))
    site.put("v1.2.3/SHA256SUMS", f"{'0' * 64}  other.tar.gz\n{checksum}  tool.tar.gz\n".encode())
    fetch(PACKED, site.url, "1.2.3", "tool", place)
    assert [(entry.name, entry.read_bytes()) for entry in place.iterdir()] == [("tool", PROGRAM)]


def test_an_archive_without_the_program_is_refused(site: Site, place: Path) -> None:
    checksum = site.put("v1.2.3/tool.tar.gz", packed("elsewhere/tool"))
    site.put("v1.2.3/SHA256SUMS", f"{checksum}  tool.tar.gz\n".encode())
    with pytest.raises(ArtifactError, match=r"does not hold tool-1\.2\.3/bin/tool"):
        fetch(PACKED, site.url, "1.2.3", "tool", place)


def test_a_wrong_checksum_is_refused(site: Site, place: Path) -> None:
    site.put("v1.2.3/tool", PROGRAM)
    site.put("v1.2.3/tool.sha256", b"a" * 64)
    with pytest.raises(ArtifactError, match=f"{'a' * 64} is published for it"):
        fetch(PLAIN, site.url, "1.2.3", "tool", place)
    assert not (place / "tool").exists()


def test_a_missing_checksum_is_refused(site: Site, place: Path) -> None:
    site.put("v1.2.3/tool", PROGRAM)
    with pytest.raises(ArtifactError, match="has no checksum file"):
        fetch(PLAIN, site.url, "1.2.3", "tool", place)


def test_a_checksum_file_that_does_not_name_the_file_is_refused(site: Site, place: Path) -> None:
    site.put("v1.2.3/tool.tar.gz", packed("tool-1.2.3/bin/tool"))
    site.put("v1.2.3/SHA256SUMS", f"{'0' * 64}  other.tar.gz\n{'1' * 64}  third.tar.gz\n".encode())
    with pytest.raises(ArtifactError, match="gives no SHA-256"):
        fetch(PACKED, site.url, "1.2.3", "tool", place)


def test_a_version_that_is_not_served_says_so(site: Site, place: Path) -> None:
    with pytest.raises(NotServedError, match=r"v9\.9\.9/tool is not there"):
        fetch(PLAIN, site.url, "9.9.9", "tool", place)


@pytest.mark.parametrize(("cut", "says"), [("v1.2.3/tool", "was cut off"), ("v1.2.3/tool.sha256", "was not delivered")])
def test_a_transfer_that_breaks_off_is_no_wrong_checksum(site: Site, place: Path, monkeypatch: pytest.MonkeyPatch, cut: str, says: str) -> None:
    site.put("v1.2.3/tool.sha256", site.put("v1.2.3/tool", PROGRAM).encode())

    def copyfile(handler: Handler, source: io.BufferedReader, target: io.BufferedIOBase) -> None:
        content = source.read()
        target.write(content[:-4] if handler.path == f"/{cut}" else content)

    monkeypatch.setattr(Handler, "copyfile", copyfile)
    with pytest.raises(NotServedError, match=says):
        fetch(PLAIN, site.url, "1.2.3", "tool", place)


def test_a_server_is_asked_once(site: Site) -> None:
    assert reachable(site.url, 2.0)
    site.close()
    assert reachable(site.url, 2.0)


def test_a_server_that_says_nothing_costs_the_short_patience_only() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert not reachable(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.2)


def test_a_name_that_is_looked_up_for_long_costs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def look_up(*_arguments: object, **_options: object) -> None:
        answered.wait(30)
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    started = time.monotonic()
    try:
        assert not reachable("http://slow.example", 0.2)
        assert time.monotonic() - started < 5
    finally:
        answered.set()


@pytest.mark.parametrize("address", ["", "dl.example.org", "ftp://example.org", "https:///path"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ArtifactError, match="is no release address"):
        releases.site_of(address)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("B" * 64, "b" * 64),
        ("b" * 64 + "\n", "b" * 64),
        ("b" * 64 + "  tool\n", "b" * 64),
        ("b" * 64 + " *./tool\n", "b" * 64),
        ("a" * 64 + "  tool.asc\n" + "b" * 64 + "  tool\n", "b" * 64),
        ("b" * 63, None),
        ("b" * 64 + "  other\n", None),
        ("<html>not here</html>", None),
        ("", None),
    ],
)
def test_forms_of_checksum_files(text: str, found: str | None) -> None:
    assert published_checksum(text, "tool") == found


def test_addresses_are_those_of_the_official_releases() -> None:
    assert BINARIES["kubelet"].release is not None
    assert BINARIES["kubelet"].release.path.format(version="1.37.2") == "release/v1.37.2/bin/linux/amd64/kubelet"
    for name in ("etcd", "helm", "containerd", "ctr", "containerd-shim-runc-v2"):
        release = BINARIES[name].release
        assert release is not None
        assert release.member.endswith(f"/{name}")
