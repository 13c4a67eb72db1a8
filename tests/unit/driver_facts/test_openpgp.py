# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fingerprints of real keys, and what is refused."""
from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.fetch import fetch, fetch_if_there, fetch_key
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.openpgp import NotAKey, armoured, dearmoured, fingerprint
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.unit.driver_facts.fake_node import node

# Made by gpg 2.2 for c@example.com; its own list of fingerprints says the same.
FINGERPRINT = "454595CADA13F1FA5C28F00E649CA928DF9C7A7A"
KEY = """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaw39chYJKwYBBAHaRw8BAQdAl9NIf2bnPJXNSuGaq/Bn6uqtTAnNe6mh/O3p
IMkX12m0DWNAZXhhbXBsZS5jb22IkAQTFggAOBYhBEVFlcraE/H6XCjwDmScqSjf
nHp6BQJrDf1yAhsDBQsJCAcCBhUKCQgLAgQWAgMBAh4BAheAAAoJEGScqSjfnHp6
euAA/2XoZq8JwpJkHJD33f+cIeojH1uG1hPTyEK+5crK+jdRAPwO05a1jhqrX1T1
rjd3vR8Su4Bv/pSS+Qj6Vdct2V+7Cg==
=ruFG
-----END PGP PUBLIC KEY BLOCK-----
"""
BINARY = dearmoured(KEY.encode())


def new_format(tag: int, body: bytes) -> bytes:
    length = len(body)
    assert 192 <= length < 8384
    return bytes([0xC0 | tag, ((length - 192) >> 8) + 192, (length - 192) & 0xFF]) + body


@pytest.mark.parametrize("content", [
    KEY.encode(), BINARY, KEY.replace("\n", "\r\n").encode(), b"Some words before\n" + KEY.encode(),
    KEY.replace("-----\n\n", "-----\nVersion: GnuPG v2\nComment: x\n\n", 1).encode(), KEY.replace("=ruFG\n", "").encode(),
])
def test_the_fingerprint_of_a_key(content: bytes) -> None:
    assert fingerprint(content) == FINGERPRINT


def test_armour_is_what_gpg_makes() -> None:
    assert armoured(BINARY) == KEY == armoured(KEY.encode())


def test_version_6_and_the_new_packet_format() -> None:
    body = b"\x06" + bytes(400)
    expected = hashlib.sha256(b"\x9b" + (401).to_bytes(4, "big") + body).hexdigest().upper()
    assert fingerprint(new_format(6, body)) == expected
    assert fingerprint(b"\xc6\xff" + (401).to_bytes(4, "big") + body) == expected


@pytest.mark.parametrize(("content", "why"), [
    (KEY.encode() * 2, "holds 2 blocks of public keys instead of one"), (BINARY * 2, "holds 2 public keys instead of one"), (b"<html>404</html>",
    "no OpenPGP data"),
    (b"", "holds 0 public keys"), (BINARY[:20], "cut off"), (b"\x9b\x00", "without a length"), (b"\x98\x01\x03", "version 3"), (b"\xc6", "unknown length"),
    (KEY.replace("mDME", "m?ME").encode(), "damaged"), (KEY.replace("PUBLIC", "PRIVATE").encode(), "holds 0 blocks"), (b"\xc6\xff\x00", "unknown length"),
    (KEY.encode() + b"-----BEGIN PGP SIGNATURE-----\n", "instead of one"),
])
def test_what_is_no_single_key_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(NotAKey, match=why):
        fingerprint(content)


def reason(error: pytest.ExceptionInfo[FleetError]) -> str:
    return error.value.finding.code


def test_a_key_is_fetched_and_checked(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(base64.b64decode(base64.b64encode(BINARY)))
    url = f"file://{tmp_path}/key"
    assert fetch_key(node(tmp_path), url, "4545 95CA DA13 F1FA 5C28  F00E 649C A928 DF9C 7a7a") == KEY
    with pytest.raises(FleetError) as refused:
        fetch_key(node(tmp_path), url, FINGERPRINT[::-1])
    assert reason(refused) == "DriverKeyMismatch" and FINGERPRINT in refused.value.finding.cause


def test_what_is_no_key_is_a_mismatch(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("<html>not found</html>")
    with pytest.raises(FleetError) as refused:
        fetch_key(node(tmp_path), f"file://{tmp_path}/key", FINGERPRINT)
    assert reason(refused) == "DriverKeyMismatch"


@pytest.mark.parametrize("url", ["file:///no/such/file", "http://127.0.0.1:9/key", "no address", "http://[::1/x"])
def test_what_cannot_be_fetched(tmp_path: Path, url: str) -> None:
    with pytest.raises(FleetError) as refused:
        fetch(node(tmp_path), url)
    assert reason(refused) == "DriverRepositoryUnreachable"


def test_what_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(4 * 1024 * 1024 + 1))
    with pytest.raises(FleetError) as refused:
        fetch(node(tmp_path), f"file://{tmp_path}/large")
    assert reason(refused) == "DriverRepositoryUnreachable"


def test_a_file_that_may_be_missing(tmp_path: Path) -> None:
    assert fetch_if_there(node(tmp_path), f"file://{tmp_path}/none") is None
    with pytest.raises(FleetError):
        fetch_if_there(node(tmp_path), "http://127.0.0.1:9/none")


class Locked(BaseHTTPRequestHandler):
    """Answers those who say who they are."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == "Basic " + base64.b64encode(b"me:s@cret").decode()
        self.send_response(200 if known else 401)
        self.send_header("WWW-Authenticate", 'Basic realm="mirror"')
        self.end_headers()
        self.wfile.write(b"content" if known else b"")

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def mirror() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Locked) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}/repo"
        server.shutdown()


def test_a_mirror_that_asks_for_a_password(tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    assert fetch(node(tmp_path), f"http://me:s%40cret@{mirror}") == b"content"
    for url in (f"http://me:wrong@{mirror}", f"http://{mirror}", "http://me:wrong@127.0.0.1:9/repo", "https://me:wrong@127.0.0.1:9/repo"):
        with pytest.raises(FleetError) as error:
            fetch(node(tmp_path), url)
        assert error.value.finding.code == "DriverRepositoryUnreachable"
        assert "wrong" not in str(error.value.finding.as_dict()) and "127.0.0.1" in error.value.finding.cause
