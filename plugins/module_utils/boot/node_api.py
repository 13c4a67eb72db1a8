# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The node's own Node object, read and patched with the kubelet's client certificate and the standard library. TLS is always verified."""
from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable
from typing import Any, Optional
from urllib.parse import quote, urlsplit

from .settings import NodeAccess

_REQUEST_TIMEOUT_S = 5.0
_POLL_S = 1.0
_HTTPS_PORT = 443


class NodeApiError(Exception):
    """The API server could not be asked, or refused; the text says why."""


class _Passing(Exception):
    """What may be over at the next try: no network yet, a clock not yet set (certificates seem invalid), a server that is busy, a conflict."""


class NodeApi:
    """Requests for one Node, tried again for up to ``wait_s`` seconds unless the API server's answer is final."""

    def __init__(self, access: NodeAccess, wait_s: float) -> None:
        self._access = access
        self._deadline = time.monotonic() + wait_s

    def change(self, patch_for: Callable[[dict[str, Any]], Optional[dict[str, Any]]]) -> bool:
        """Read the Node, and patch its metadata with what ``patch_for`` makes of it; returns whether there was anything to patch.

        ``patch_for`` returns labels and annotations of a merge patch (RFC 7386), or None when the Node is right already. The patch holds the version that was
        read, so a change by somebody else in between is seen, and both are done again. Raises NodeApiError.
        """
        def attempt() -> bool:
            node = self._request("GET")
            metadata = patch_for(node)
            if metadata is None:
                return False
            self._request("PATCH", {"metadata": {**metadata, "resourceVersion": node["metadata"]["resourceVersion"]}})
            return True

        while True:
            try:
                return attempt()
            except _Passing as error:
                if time.monotonic() + _POLL_S >= self._deadline:
                    raise NodeApiError(str(error)) from None
            time.sleep(_POLL_S)

    def _request(self, method: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        url = urlsplit(self._access.server)
        path = f"{url.path.rstrip('/')}/api/v1/nodes/{quote(self._access.name, safe='')}"
        try:
            connection = http.client.HTTPSConnection(
                url.hostname or "", url.port or _HTTPS_PORT, timeout=_REQUEST_TIMEOUT_S, context=self._context(),
            )
            try:
                headers = {"Accept": "application/json", "Content-Type": "application/merge-patch+json"}
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                status, content = answer.status, answer.read()
            finally:
                connection.close()
            document = json.loads(content) if content else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _Passing(f"{self._access.server}: {error or type(error).__name__}") from None
        if status == 200:
            return document
        said = f"{method} was answered with {status}: {document.get('message', 'no message')}"
        if status in (409, 429) or status >= 500:
            raise _Passing(said)
        raise NodeApiError(said)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._access.ca_file, cadata=self._access.ca_pem)
        context.load_cert_chain(self._access.certificate, self._access.key)
        return context
