# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fetches the small files that a repository is trusted by, bounded in size and time, and checks its signing key."""
from __future__ import annotations

import http.client
import urllib.error
import urllib.request

from ..knowledge.addresses import user_and_password, without_credentials
from ..reasons import FleetError, finding
from .node import Node
from .openpgp import NotAKey, armoured, fingerprint

_SECONDS = 30
_LARGEST = 4 * 1024 * 1024  # bytes; a key has a few KiB, an index of a large rpm repository less than one MiB


def fetch(node: Node, url: str) -> bytes:
    """Return the content at ``url`` (https, http, ftp or file; certificates are verified; proxies are taken from the environment).

    User name and password in an address of https or http are given to its server alone, when that asks for them. Raises FleetError DriverRepositoryUnreachable.
    """
    try:
        # Not ansible.module_utils.urls: this room has no Ansible, and that one knows no ftp.
        with _opener(url).open(_plain(url), timeout=_SECONDS) as answer:
            content: bytes = answer.read(_LARGEST + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise unreachable(node, url, str(error)) from error
    if len(content) > _LARGEST:
        raise unreachable(node, url, f"it has more than {_LARGEST} bytes")
    return content


def fetch_if_there(node: Node, url: str) -> bytes | None:
    """Return the content at ``url``, None where the server says that there is none. Raises FleetError DriverRepositoryUnreachable."""
    try:
        return fetch(node, url)
    except FleetError as error:
        cause = error.__cause__
        if isinstance(cause, urllib.error.HTTPError) and cause.code in (403, 404, 410):
            return None
        if isinstance(cause, urllib.error.URLError) and isinstance(cause.reason, FileNotFoundError):
            return None
        raise


def fetch_key(node: Node, url: str, expected: str) -> str:
    """Return the key at ``url`` as ASCII-armoured text. ``expected`` is its fingerprint in hexadecimal digits, blanks allowed.

    Raises FleetError DriverRepositoryUnreachable, or DriverKeyMismatch for a key with another fingerprint and for what is no key.
    """
    content = fetch(node, url)
    wanted = "".join(expected.split()).upper().removeprefix("0X")
    try:
        found = fingerprint(content)
        text = armoured(content)
    except NotAKey as error:
        raise key_mismatch(node, url, f"what {without_credentials(url)} holds is no such key: {error}") from error
    if found != wanted:
        raise key_mismatch(node, url, f"its fingerprint is {found} instead of {wanted}")
    return text


def _plain(url: str) -> str:
    return without_credentials(url) if url.startswith("http") else url


def _opener(url: str) -> urllib.request.OpenerDirector:
    passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
    user, password = user_and_password(url)
    if user:
        passwords.add_password(None, _plain(url), user, password)
    return urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(passwords))


def unreachable(node: Node, url: str, error: str) -> FleetError:
    """Return the error about a repository that cannot be read."""
    url = without_credentials(url)
    return FleetError(finding("DriverRepositoryUnreachable", node.name, {"url": url}, url=url, error=error))


def key_mismatch(node: Node, url: str, error: str) -> FleetError:
    """Return the error about a repository that is signed by another key."""
    url = without_credentials(url)
    return FleetError(finding("DriverKeyMismatch", node.name, {"url": url}, url=url, error=error))
