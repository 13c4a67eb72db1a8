# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The private view of dnf: own repository files, caches and state; the host's rpm database is read only."""
from __future__ import annotations

import inspect
import json
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..driver.files import managed_paths
from ..knowledge.driver_packages import has_own_version, is_headers
from ..reasons import FleetError, finding
from . import dnf_questions
from .fetch import fetch_if_there, key_mismatch, unreachable
from .host import read_host
from .offers import DOWNLOAD_SECONDS, REPOSITORY_ID, Offer, Offers, Sources, Transaction, impossible, sorted_transaction, unsupported
from .packages_rpm import REPOSITORIES

# Pythons that may have dnf's bindings, in the order in which Ansible's own dnf module looks for them.
_PYTHONS = ("/usr/libexec/platform-python", "/usr/bin/python3", "/usr/bin/python")


class DnfSources(Sources):
    """See :class:`Sources`."""

    def offers(self, names: Sequence[str]) -> Offers:
        """Return what is offered of ``names``."""
        self._prepare()
        # The headers of one kernel are asked for as name and release: kernel-devel-5.14.0-611.el9.x86_64.
        answer = self._ask({"ask": "offers", "names": list(names), "versioned": [name for name in names if is_headers(name)]})
        if answer.get("kind") == "solver" and self.stream:  # such as a stream that is not there
            fields = {"wanted": f"stream nvidia-driver:{self.stream}", "available": answer["error"]}
            raise FleetError(finding("DriverVersionUnavailable", self.node.name, {"stream": self.stream}, url=self.url, **fields))
        if "error" in answer:
            raise unreachable(self.node, self.url, answer["error"])
        return {name: [Offer(*offer) for offer in offers] for name, offers in answer["offers"].items()}

    def transaction(self, specs: Mapping[str, str], version: str, pins: Sequence[str], remove: Sequence[str]) -> Transaction:
        """Return what the installation would do."""
        own_version = [name for name in specs if has_own_version(name)]
        question = {"ask": "transaction", "specs": dict(specs), "version": version, "pins": list(pins), "remove": list(remove), "own_version": own_version}
        answer = self._ask(question)
        if "error" in answer:
            raise impossible(self.node, version, answer["error"])
        return sorted_transaction(answer["transaction"])

    def _prepare(self) -> None:
        for name in ("repos", "cache", "state", "log"):
            (self.folder / name).mkdir()
        # Which packages came as dependencies, and which modules were enabled: both decide what goes with a removed one.
        shutil.copytree(self.node.at("/var/lib/dnf"), self.folder / "state", dirs_exist_ok=True) if self.node.exists("/var/lib/dnf") else None
        if self.with_host:
            folder = REPOSITORIES["dnf"]
            for name in self.node.names(folder):
                if name.endswith(".repo") and f"{folder}/{name}" not in managed_paths("dnf"):
                    shutil.copyfile(self.node.at(f"{folder}/{name}"), self.folder / "repos" / name)
        if self.repository is not None:
            key = self.folder / "key.asc"
            key.write_text(self.key, encoding="ascii")
            # The index is signed in NVIDIA's repositories; a mirror may lack that file, and packages are checked at the installation in any case.
            signed = fetch_if_there(self.node, f"{self.repository['url'].rstrip('/')}/repodata/repomd.xml.asc") is not None
            (self.folder / "repos" / f"{REPOSITORY_ID}.repo").write_text(repo_file(self.repository["url"], str(key), signed), encoding="utf-8")

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return dnf's answer. Raises FleetError DriverViewUnsupported where no Python has dnf, DriverKeyMismatch, DriverCommandFailed."""
        whole = {
            **question, "reposdir": [str(self.folder / "repos")], "cachedir": str(self.folder / "cache"), "persistdir": str(self.folder / "state"),
            "logdir": str(self.folder / "log"), "stream": self.stream, "repository": REPOSITORY_ID, "arch": platform.machine(),
            "release": read_host(self.node)["major"],
        }
        answer: dict[str, Any] = {}
        for python in dict.fromkeys(path for path in (*_PYTHONS, sys.executable) if path and self.node.which(path)):
            program = [python, "-c", inspect.getsource(dnf_questions)]
            ran = self.node.run(program, DOWNLOAD_SECONDS, text=json.dumps(whole))
            if ran.rc:
                raise self.node.failed([python, "dnf_questions"], ran.tail())
            try:
                answer = json.loads(ran.out.rpartition("\n")[2])  # libraries of dnf may write lines of their own before it
            except ValueError as error:
                raise self.node.failed([python, "dnf_questions"], ran.tail()) from error
            if answer.get("kind") != "unsupported":
                break
        if not answer or answer.get("kind") == "unsupported":
            raise unsupported(self.node, f"no Python of the host has dnf's bindings, package python3-dnf ({answer.get('error', 'no Python found')})")
        if answer.get("kind") == "repository" and "GPG" in answer["error"]:
            raise key_mismatch(self.node, self.url, answer["error"])
        return answer


def repo_file(url: str, key: str, signed: bool) -> str:
    """Return the text of a repository file; ``signed`` says whether the index has a signature to check."""
    lines = [
        f"[{REPOSITORY_ID}]", "name=NVIDIA driver", f"baseurl={url}", "enabled=1", "gpgcheck=1", f"repo_gpgcheck={int(signed)}", f"gpgkey=file://{key}",
    ]
    return "\n".join([*lines, ""])
