# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An API server that knows one Node: TLS with client certificates, merge patches, conflicts, and errors to order."""
from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.boot.settings import NodeAccess
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.pause_record import merged

from sandbox.control_plane.pki import Authority


class ApiServer:
    """``node`` is the Node; ``answers`` are statuses to give before the real answers; ``requests`` what came: (method, user)."""

    def __init__(self, folder: Path, labels: dict[str, str], annotations: dict[str, str]) -> None:
        self.node: dict[str, Any] = {
            "kind": "Node", "metadata": {"name": "n1", "resourceVersion": "1", "labels": labels, "annotations": annotations}, "spec": {},
        }
        self.answers: list[int] = []
        self.requests: list[tuple[str, str]] = []
        authority = Authority(folder / "pki")
        authority.ensure("test")
        serving = authority.server("serving", "apiserver", ["127.0.0.1"])
        client = authority.client("kubelet", "system:node:n1", ["system:nodes"])
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(serving.certificate, serving.key)
        context.load_verify_locations(authority.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        address = f"https://127.0.0.1:{self.server.server_address[1]}"
        self.access = NodeAccess("n1", address, str(client.certificate), str(client.key), ca_pem=authority.certificate.read_text())
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def labels(self) -> dict[str, str]:
        return self.node["metadata"]["labels"]

    @property
    def annotations(self) -> dict[str, str]:
        return self.node["metadata"]["annotations"]

    def change_behind(self, **labels: str) -> None:
        """Change labels as somebody else does."""
        self._store({"metadata": {"labels": labels}})

    def answer(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        if self.answers:
            return self.answers.pop(0), {"message": "to order"}
        if path != "/api/v1/nodes/n1":
            return 404, {"message": f"{path} not found"}
        if method == "PATCH":
            if body["metadata"]["resourceVersion"] != self.node["metadata"]["resourceVersion"]:
                return 409, {"message": "the object has been modified"}
            self._store(body)
        return 200, self.node

    def _store(self, patch: dict[str, Any]) -> None:
        version = int(self.node["metadata"]["resourceVersion"]) + 1
        self.node = merged(self.node, patch)
        self.node["metadata"]["resourceVersion"] = str(version)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._serve()

            def do_PATCH(self) -> None:
                self._serve()

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                subject = dict(part[0] for part in self.connection.getpeercert()["subject"])
                api.requests.append((self.command, subject["commonName"]))
                status, document = api.answer(self.command, self.path, body)
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments: object) -> None:
                pass

        return Handler
