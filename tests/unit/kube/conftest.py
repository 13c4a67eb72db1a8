# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An API server in a thread, for the real client: TLS, its version, and answers that a test lays down."""
from __future__ import annotations

import datetime
import http.server
import ipaddress
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.client import KubeApi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Answer = tuple[int, dict[str, Any]]
VERSION = {"major": "1", "minor": "37", "gitVersion": "v1.37.2"}


def status(code: int, message: str = "") -> Answer:
    """A failure as the API server words it."""
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


class FakeApiServer:
    """Answers GET /version by ``version`` and everything else by ``answer(method, path, query, body)``; ``requests`` holds what was asked for."""

    def __init__(self, folder: Path) -> None:
        self.answer: Callable[[str, str, dict[str, str], Any], Answer] = lambda *_request: status(404)
        self.version: Answer = (200, VERSION)
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        certificate, key = _certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.auth = {"host": f"https://127.0.0.1:{self._server.server_port}", "api_key": "secret-token", "ca_cert": str(certificate)}
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stop; the port then refuses connections."""
        self._server.shutdown()
        self._server.server_close()

    def reply(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Return the answer to one request."""
        if path == "/version":
            return self.version
        self.requests.append((method, path, query, body))
        return self.answer(method, path, query, body)

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _serve(self) -> None:
                url = urlparse(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                code, content = fake.reply(self.command, url.path, query, body)
                data = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PATCH = _serve

            def log_message(self, *_arguments: Any) -> None:
                """Be quiet."""

        return Handler


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApiServer]:
    """A running server; whatever its clients leave in the temp folder lands in the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fake = FakeApiServer(tmp_path)
    yield fake
    fake.close()


@pytest.fixture
def api(server: FakeApiServer) -> KubeApi:
    """A client that is connected to ``server``."""
    return KubeApi.connect(server.auth)


@pytest.fixture
def failure() -> Callable[..., Answer]:
    """Make a Status answer."""
    return status


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fake API server")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(True, False, False, False, False, True, True, False, False),
            critical=True,
        )
        .sign(key, hashes.SHA256())
    )
    paths = (folder / "server.crt", folder / "server.key")
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths[1].write_bytes(secret)
    return paths
