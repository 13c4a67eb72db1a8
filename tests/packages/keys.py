# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The keys that sign the stub repositories: made once in the cache, for tests alone."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.artifacts import Settings

from .tools import Tools

NAMES = ("main", "other")
_KIND, _KEY = "stub-keys", "1"


@dataclass(frozen=True)
class Key:
    """An OpenPGP key: its public part armoured, and its fingerprint in hex."""

    name: str
    public: str
    fingerprint: str
    secret_file: Path


def find(name: str, settings: Settings, tool: Tools) -> Key:
    """Return the key of one of NAMES, made if it is not there yet."""
    folder = settings.store.publish(_KIND, _KEY, lambda place: _make(place, tool))
    return Key(name, (folder / f"{name}.pub").read_text(), (folder / f"{name}.fingerprint").read_text(), folder / f"{name}.secret")


class Signer:
    """A gpg home with one key, in the tools' scratch folder; :meth:`close` ends its agent."""

    def __init__(self, key: Key, tool: Tools) -> None:
        self.key, self._tool = key, tool
        self._home = tool.scratch / f"gpg-{key.name}"
        self._home.mkdir(mode=0o700)
        tool.link([key.secret_file], tool.scratch / "secrets")
        self.gpg("--import", tool.inside(tool.scratch / "secrets" / key.secret_file.name))

    def gpg(self, *arguments: str) -> str:
        """Run gpg with this home."""
        return self._tool.run("gpg", "--homedir", self._tool.inside(self._home), "--batch", "--yes", "--quiet", "--pinentry-mode=loopback",
                              "--passphrase=", *arguments)

    def release(self, folder: Path) -> None:
        """Sign an apt repository's Release file, which lies in the scratch folder: InRelease and Release.gpg."""
        source = self._tool.inside(folder / "Release")
        self.gpg("--clearsign", "--output", self._tool.inside(folder / "InRelease"), source)
        self.gpg("--armor", "--detach-sign", "--output", self._tool.inside(folder / "Release.gpg"), source)

    def packages(self, paths: list[Path]) -> None:
        """Sign .rpm packages in the scratch folder, in place."""
        home = self._tool.inside(self._home)
        names = [self._tool.inside(path) for path in paths]
        macros = (f"_gpg_name {self.key.fingerprint}", f"_gpg_path {home}", "__gpg /usr/bin/gpg")
        self._tool.run("rpmsign", *(word for macro in macros for word in ("--define", macro)), "--addsign", *names)

    def metadata(self, folder: Path) -> None:
        """Sign the repomd.xml of a repository in the scratch folder, and lay the key beside it."""
        index = folder / "repodata" / "repomd.xml"
        self.gpg("--armor", "--detach-sign", "--output", self._tool.inside(index.with_suffix(".xml.asc")), self._tool.inside(index))
        index.with_suffix(".xml.key").write_text(self.key.public)

    def close(self) -> None:
        """End gpg's agent."""
        self._tool.run("gpgconf", "--homedir", self._tool.inside(self._home), "--kill", "all")


def _make(place: Path, tool: Tools) -> None:
    for name in NAMES:
        home = tool.scratch / f"new-{name}"
        home.mkdir(mode=0o700)
        gpg = ("gpg", "--homedir", tool.inside(home), "--batch", "--quiet", "--pinentry-mode=loopback", "--passphrase=")
        tool.run(*gpg, "--quick-generate-key", f"Stub packages {name} <tests@example.org>", "rsa3072", "sign", "never")
        told = tool.run(*gpg, "--with-colons", "--list-keys")
        (place / f"{name}.fingerprint").write_text(next(line.split(":")[9] for line in told.splitlines() if line.startswith("fpr:")))
        (place / f"{name}.pub").write_text(tool.run(*gpg, "--armor", "--export"))
        (place / f"{name}.secret").write_text(tool.run(*gpg, "--armor", "--export-secret-keys"))
        (place / f"{name}.secret").chmod(0o600)
        tool.run("gpgconf", "--homedir", tool.inside(home), "--kill", "all")
