# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How hosts are reached: by SSH alone, with a key pair per sandbox and strict checking of host keys that were made with the host.

Nothing enters a host through its namespaces: that would keep the machine's own capabilities, and a `date -s` there would set the
machine's clock.
"""
from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ..state import RunState

USER = "root"
TIMEOUT_S = 30.0


class SshAccess:
    """Keys and known hosts of one sandbox."""

    def __init__(self, state: RunState) -> None:
        self.folder = state.ssh
        self.private_key = state.ssh / "id_ed25519"
        self.public_key = state.ssh / "id_ed25519.pub"
        self.known_hosts = state.ssh / "known_hosts"

    def ensure_key(self) -> None:
        """Make the sandbox's key pair unless it exists."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.public_key.exists():
            write_key_pair(self.private_key, self.public_key, "sandbox")

    def trust(self, names: Sequence[str], host_public_key: str) -> None:
        """Add a host's key under its names and addresses, in place of what was known under them."""
        self.forget(names)
        with self.known_hosts.open("a") as stream:
            stream.write(f"{','.join(names)} {host_public_key.strip()}\n")

    def forget(self, names: Sequence[str]) -> None:
        """Drop every key known under one of the names."""
        lines = self.known_hosts.read_text().splitlines() if self.known_hosts.exists() else []
        kept = [line for line in lines if not set(names) & set(line.partition(" ")[0].split(","))]
        scratch = self.known_hosts.with_suffix(".new")
        scratch.write_text("".join(f"{line}\n" for line in kept))
        scratch.rename(self.known_hosts)

    def options(self) -> list[str]:
        """Return ssh's options for any host of the sandbox; the user's own configuration is left out."""
        return [
            "-F", "/dev/null",
            "-o", f"UserKnownHostsFile={self.known_hosts}",
            "-o", "GlobalKnownHostsFile=/dev/null",
            "-o", "StrictHostKeyChecking=yes",
            "-o", "IdentitiesOnly=yes",
            "-o", "BatchMode=yes",
        ]

    def command(self, address: str, shell_command: str = "") -> list[str]:
        """Return the command line that gives ``shell_command`` to a host's shell; without one it logs in."""
        remote = ["--", shell_command] if shell_command else []
        return ["ssh", *self.options(), "-i", str(self.private_key), "-o", "ConnectTimeout=5", f"{USER}@{address}", *remote]

    def run(self, address: str, argv: Sequence[str], timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
        """Run ``argv`` on a host and return what it said; a host that does not answer gives status 255."""
        command = self.command(address, shlex.join(argv))
        try:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 255, "", f"no answer in {timeout_s:.0f} s")


def write_key_pair(private: Path, public: Path, comment: str) -> None:
    """Make an Ed25519 key pair in OpenSSH's formats; the public file comes last."""
    key = Ed25519PrivateKey.generate()
    openssh = serialization.PrivateFormat.OpenSSH
    content = key.private_bytes(serialization.Encoding.PEM, openssh, serialization.NoEncryption())
    private.unlink(missing_ok=True)
    descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    encoded = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    public.write_text(f"{encoded.decode()} {comment}\n")
