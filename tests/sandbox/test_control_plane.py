# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Certificates, kubeconfigs and command lines of the control plane, without starting it."""
from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
from cryptography import x509

from sandbox.control_plane import components, kubeconfig
from sandbox.control_plane.api import HttpsClient
from sandbox.control_plane.pki import Authority, KeyPair, service_account_keys, sign_token
from sandbox.control_plane.plane import COMPONENTS, ControlPlane
from sandbox.errors import SandboxError
from sandbox.probes import NotYet
from sandbox.state import RunState


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "pki")
    made.ensure("sandbox test")
    return made


class TlsServer:
    """Answers every request on 127.0.0.1 with one status, over TLS that wants a client certificate."""

    def __init__(self, authority: Authority, identity: KeyPair, status: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity.certificate, identity.key)
        context.load_verify_locations(authority.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        self._listener = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
        self.port = self._listener.getsockname()[1]
        self._answer = f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
                connection.recv(65536)
                connection.sendall(self._answer)
                connection.close()
            except ssl.SSLError:
                continue  # a client that this test wants to be refused
            except OSError:
                return


def test_client_and_server_trust_each_other_under_strict_checks(authority: Authority) -> None:
    server = TlsServer(authority, authority.server("server", "server", ["127.0.0.1"]), "200 OK")
    client = authority.client("client", "somebody", ["some-group"])
    HttpsClient("127.0.0.1", server.port, authority.certificate, client).probe("/healthz")
    with pytest.raises(OSError):
        HttpsClient("127.0.0.1", server.port, authority.certificate).probe("/healthz")


def test_a_server_that_is_not_ready_or_not_the_right_one(authority: Authority, tmp_path: Path) -> None:
    client = authority.client("client", "somebody")
    busy = TlsServer(authority, authority.server("server", "server", ["127.0.0.1"]), "503 Service Unavailable")
    with pytest.raises(NotYet, match="/readyz answers 503"):
        HttpsClient("127.0.0.1", busy.port, authority.certificate, client).probe("/readyz")
    misnamed = TlsServer(authority, authority.server("misnamed", "server", ["10.0.0.1"]), "200 OK")
    with pytest.raises(SandboxError, match="shows a certificate that cannot be trusted: IP address mismatch"):
        HttpsClient("127.0.0.1", misnamed.port, authority.certificate, client).probe("/readyz")
    stranger = Authority(tmp_path / "other")
    stranger.ensure("stranger")
    with pytest.raises(SandboxError, match="shows a certificate that cannot be trusted"):
        HttpsClient("127.0.0.1", busy.port, stranger.certificate, client).probe("/readyz")


def test_a_certificate_carries_user_and_groups_and_is_made_once(authority: Authority) -> None:
    pair = authority.client("kubelet-n1", "system:node:n1", ["system:nodes"])
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"
    assert pair.key.stat().st_mode & 0o777 == 0o600
    content = pair.certificate.read_bytes()
    assert authority.client("kubelet-n1", "system:node:n1", ["system:nodes"]).certificate.read_bytes() == content


def test_a_token_is_verified_by_openssl(tmp_path: Path) -> None:
    private, public = service_account_keys(tmp_path)
    header, claims, signature = sign_token(private, {"sub": "system:serviceaccount:a:b", "exp": -1}).split(".")
    assert json.loads(_decoded(header))["alg"] == "ES256"
    assert json.loads(_decoded(claims)) == {"sub": "system:serviceaccount:a:b", "exp": -1}
    raw = _decoded(signature)
    numbers = [int.from_bytes(half, "big") for half in (raw[:32], raw[32:])]
    (tmp_path / "signature").write_bytes(_der(numbers))
    (tmp_path / "input").write_text(f"{header}.{claims}")
    command = ["openssl", "dgst", "-sha256", "-verify", public, "-signature", tmp_path / "signature", tmp_path / "input"]
    assert subprocess.run(command, check=False, capture_output=True, text=True).stdout == "Verified OK\n"


def test_kubeconfigs_are_private_and_check_the_server(authority: Authority, tmp_path: Path) -> None:
    kubeconfig.with_certificate(tmp_path / "a", "https://s:1", authority.certificate, "me", authority.client("me", "me"))
    kubeconfig.with_token(tmp_path / "b", "https://s:1", authority.certificate, "me", "secret")
    for path in (tmp_path / "a", tmp_path / "b"):
        assert path.stat().st_mode & 0o777 == 0o600
        cluster = json.loads(path.read_text())["clusters"][0]["cluster"]
        assert base64.b64decode(cluster.pop("certificate-authority-data")) == authority.certificate.read_bytes()
        assert cluster == {"server": "https://s:1"}


def command_lines(tmp_path: Path) -> dict[str, list[str]]:
    state = RunState(tmp_path, "cp")
    state.create({"kubernetes": True})
    plane = ControlPlane(state)
    plane.prepare()
    files, addresses = plane._files(), state.addresses
    builders = (components.etcd, components.api_server, components.controller_manager, components.scheduler)
    return {name: build(addresses, files) for name, build in zip(COMPONENTS, builders, strict=True)}


def test_every_component_listens_on_loopback_or_the_bridge_and_has_real_files(tmp_path: Path) -> None:
    lines = command_lines(tmp_path)
    for name, arguments in lines.items():
        options = dict(argument.partition("=")[::2] for argument in arguments)
        for option, value in options.items():
            if option.startswith(("--listen-", "--bind-address")):
                assert value.removeprefix("https://").startswith(("127.91.", "10.91.")), f"{name} {option}"
            if value.startswith(str(tmp_path)) and option not in ("--data-dir", "--flex-volume-plugin-dir"):
                assert Path(value).is_file(), f"{name} {option}"
        assert "0.0.0.0" not in " ".join(arguments) and "http://" not in " ".join(arguments) and "insecure" not in " ".join(arguments)


def test_the_api_server_knows_nobody_without_a_certificate_or_a_bound_token(tmp_path: Path) -> None:
    arguments = command_lines(tmp_path)["kube-apiserver"]
    assert "--anonymous-auth=false" in arguments
    assert "--authorization-mode=Node,RBAC" in arguments
    assert "--enable-admission-plugins=NodeRestriction" in arguments
    assert not [argument for argument in arguments if argument.startswith(("--token-auth-file", "--basic-auth-file"))]


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _der(numbers: list[int]) -> bytes:
    encoded = b"".join(b"\x02" + bytes([len(value)]) + value for value in map(_der_integer, numbers))
    return b"\x30" + bytes([len(encoded)]) + encoded


def _der_integer(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")
