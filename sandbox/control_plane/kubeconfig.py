# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kubeconfig files. All but a kubelet's have certificates and keys inside, so that each is one file that can be copied to a node."""
from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

from .pki import KeyPair


def with_certificate(path: Path, server: str, authority: Path, user: str, files: KeyPair) -> None:
    """Write a kubeconfig whose user shows a client certificate."""
    _write(path, server, authority, user, {
        "client-certificate-data": _encoded(files.certificate),
        "client-key-data": _encoded(files.key),
    })


def with_certificate_file(path: Path, server: str, authority: Path, user: str, pem: str) -> None:
    """Write a kubeconfig whose user shows the client certificate in the file ``pem`` (certificate and key), as a kubelet has it that renews its certificate.

    A relative ``pem`` counts from the kubeconfig's folder.
    """
    _write(path, server, authority, user, {"client-certificate": pem, "client-key": pem})


def with_token(path: Path, server: str, authority: Path, user: str, token: str) -> None:
    """Write a kubeconfig whose user shows a bearer token."""
    _write(path, server, authority, user, {"token": token})


def _write(path: Path, server: str, authority: Path, user: str, credentials: dict[str, Any]) -> None:
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": user}}],
        "current-context": "sandbox",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".new")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(document, stream, indent=2)
    scratch.rename(path)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
