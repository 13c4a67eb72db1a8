# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The few requests that the sandbox itself sends over TLS: health probes, Nodes, one ClusterRoleBinding."""
from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

from ..errors import SandboxError
from ..probes import NotYet
from .pki import KeyPair


class HttpsClient:
    """Requests to one server that ``authority`` vouches for, with a client certificate where one is given."""

    def __init__(self, host: str, port: int, authority: Path, identity: KeyPair | None = None, timeout_s: float = 5) -> None:
        self._host, self._port, self._timeout_s = host, port, timeout_s
        self._context = ssl.create_default_context(cafile=str(authority))
        if identity is not None:
            self._context.load_cert_chain(identity.certificate, identity.key)

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send one request and return (status, content). Raises OSError when the server cannot be reached, SandboxError when it cannot be trusted."""
        connection = http.client.HTTPSConnection(self._host, self._port, context=self._context, timeout=self._timeout_s)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"} if content else {})
            response = connection.getresponse()
            return response.status, response.read()
        except ssl.SSLCertVerificationError as error:
            raise SandboxError(f"{self._host}:{self._port} shows a certificate that cannot be trusted: {error.verify_message}.") from None
        except http.client.HTTPException as error:
            raise ConnectionError(f"{self._host}:{self._port} broke off: {error!r}") from None
        finally:
            connection.close()

    def probe(self, path: str) -> None:
        """Raise NotYet unless a GET of ``path`` answers 200."""
        status, content = self.request("GET", path)
        if status != http.client.OK:
            raise NotYet(f"{path} answers {status}: {content[:200].decode(errors='replace').strip()}")

    def get(self, path: str) -> dict[str, Any] | None:
        """Return the object at ``path``, None when there is none. Raises NotYet for any other answer."""
        status, content = self.request("GET", path)
        if status == http.client.NOT_FOUND:
            return None
        if status != http.client.OK:
            raise NotYet(f"GET {path} answers {status}")
        document: dict[str, Any] = json.loads(content)
        return document

    def create(self, path: str, body: Any) -> None:
        """Create an object; one that exists already is left as it is. Raises NotYet for any other answer."""
        status, _ = self.request("POST", path, body)
        if status not in (http.client.OK, http.client.CREATED, http.client.CONFLICT):
            raise NotYet(f"POST {path} answers {status}")

    def delete(self, path: str) -> None:
        """Delete an object; one that is gone already is fine. Raises NotYet for any other answer."""
        status, _ = self.request("DELETE", path)
        if status not in (http.client.OK, http.client.ACCEPTED, http.client.NOT_FOUND):
            raise NotYet(f"DELETE {path} answers {status}")
