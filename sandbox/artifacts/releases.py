# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Official release files: asked for with a short patience, and never used without their published SHA-256."""
from __future__ import annotations

import functools
import http.client
import shutil
import tarfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from .binaries import Release
from .errors import ArtifactError
from .store import file_digest

_TRANSFER_TIMEOUT_S = 60.0
_BROKEN = (OSError, http.client.HTTPException)


class NotServedError(Exception):
    """The server does not have the file, or did not deliver it whole. The text says which."""


def site_of(base_url: str) -> str:
    """Return scheme and host of an address. Raises ArtifactError for anything but http and https."""
    address = urllib.parse.urlsplit(base_url)
    if address.scheme not in ("http", "https") or not address.netloc:
        raise ArtifactError(f"{base_url} is no release address: give one that starts with https://.")
    return f"{address.scheme}://{address.netloc}"


@functools.cache
def reachable(site: str, timeout_s: float) -> bool:
    """Tell whether the server of ``site`` (scheme and host) answers HTTP within ``timeout_s``. Asked once per server and process."""
    answers: list[bool] = []
    # in a thread of its own, because no timeout bounds the look-up of the server's name
    asking = threading.Thread(target=lambda: answers.append(_answers(site, timeout_s)), daemon=True)
    asking.start()
    asking.join(timeout_s)
    return any(answers)


def _answers(site: str, timeout_s: float) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(site + "/", method="HEAD"), timeout=timeout_s):
            return True
    except urllib.error.HTTPError:
        return True
    except _BROKEN:
        return False


def fetch(release: Release, base_url: str, version: str, name: str, place: Path) -> None:
    """Put the program ``name`` into the folder ``place``.

    Raises NotServedError when the server does not have it. Raises ArtifactError when the file has no published checksum or does not match it:
    such a file is never used, and never replaced in silence.
    """
    url = f"{base_url}/{release.path.format(version=version)}"
    advice = f"set its address to an empty text to build {name} from source"
    checksums = _read_text(f"{base_url}/{release.checksum_path.format(version=version)}")
    if checksums is None:
        if _exists(url):
            raise ArtifactError(f"{url} has no checksum file beside it and is not used: {advice}.")
        raise NotServedError(f"{url} is not there")
    wanted = published_checksum(checksums, url.rsplit("/", 1)[1])
    if wanted is None:
        raise ArtifactError(f"the checksum file of {url} gives no SHA-256 for it: {advice}.")
    downloaded = place / "download"
    _download(url, downloaded)
    found = file_digest(downloaded)
    if found != wanted:
        raise ArtifactError(f"{url} has SHA-256 {found}, but {wanted} is published for it: the file is damaged or was replaced; {advice}.")
    program = place / name
    if release.member:
        _unpack(downloaded, release.member.format(version=version), program)
        downloaded.unlink()
    else:
        downloaded.rename(program)
    program.chmod(0o755)


def published_checksum(text: str, file_name: str) -> str | None:
    """Return the SHA-256 that a checksum file gives for ``file_name``: a bare sum, or lines of sum and name. None when it gives none."""
    words = text.split()
    if len(words) == 1:
        return words[0].lower() if _is_sha256(words[0]) else None
    for line in text.splitlines():
        parts = line.split()
        if len(parts) == 2 and parts[1].lstrip("*").removeprefix("./") == file_name and _is_sha256(parts[0]):
            return parts[0].lower()
    return None


def _is_sha256(text: str) -> bool:
    return len(text) == 64 and all(char in "0123456789abcdefABCDEF" for char in text)


def _read_text(url: str) -> str | None:
    """Return the text at ``url``, None when the server says that it has no such file."""
    try:
        with urllib.request.urlopen(url, timeout=_TRANSFER_TIMEOUT_S) as answer:
            return str(answer.read(), "utf-8", "replace")
    except urllib.error.HTTPError:
        return None
    except _BROKEN as error:
        raise NotServedError(f"{url} was not delivered: {error}") from error


def _exists(url: str) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=_TRANSFER_TIMEOUT_S):
            return True
    except urllib.error.HTTPError:
        return False
    except _BROKEN as error:
        raise NotServedError(f"{url} was not delivered: {error}") from error


def _download(url: str, target: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=_TRANSFER_TIMEOUT_S) as answer, target.open("wb") as stream:
            shutil.copyfileobj(answer, stream, 1 << 20)
            announced = answer.headers.get("Content-Length")
            complete = announced is None or int(announced) == stream.tell()
    except _BROKEN as error:
        raise NotServedError(f"{url} was not delivered: {error}") from error
    if not complete:
        raise NotServedError(f"{url} was cut off in transfer")


def _unpack(archive: Path, member: str, target: Path) -> None:
    try:
        with tarfile.open(archive) as tar:
            source = tar.extractfile(member)
            if source is None:
                raise KeyError(member)
            with source, target.open("wb") as stream:
                shutil.copyfileobj(source, stream, 1 << 20)
    except (KeyError, tarfile.TarError) as error:
        raise ArtifactError(f"the release archive of {target.name} does not hold {member}: {error}.") from error
