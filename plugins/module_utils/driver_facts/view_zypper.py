# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The private view of zypper: own repository files, caches, locks and configuration; the host's rpm database is read only."""
from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from xml.etree import ElementTree

from ..driver.files import managed_paths
from .fetch import fetch, fetch_if_there, key_mismatch, unreachable
from .node import Ran
from .offers import (
    DOWNLOAD_SECONDS,
    REPOSITORY_ID,
    SOLVE_SECONDS,
    Offer,
    Offers,
    Sources,
    Transaction,
    empty_transaction,
    impossible,
    sorted_transaction,
    unsupported,
)
from .packages_rpm import REPOSITORIES, ZYPP_LOCKS

# Exit statuses above 99 tell of something else than an error, such as a reboot that is needed or nothing found (104).
_GOOD = (0, 100, 101, 102, 103, 104, 106, 107)
_LOCK_SECONDS = "120"


class ZypperSources(Sources):
    """See :class:`Sources`."""

    def offers(self, names: Sequence[str]) -> Offers:
        """Return what is offered of ``names``."""
        self._prepare()
        ran = self._zypper(["refresh"], DOWNLOAD_SECONDS)
        if ran.rc not in _GOOD:
            raise unreachable(self.node, self.url, said(ran))
        ran = self._zypper(["--no-refresh", "search", "--details", "--type", "package", "--match-exact", *names], SOLVE_SECONDS)
        if ran.rc not in _GOOD:
            raise unreachable(self.node, self.url, said(ran))
        return parse_search(ran.out)

    def transaction(self, specs: Mapping[str, str], version: str, pins: Sequence[str], remove: Sequence[str]) -> Transaction:
        """Return what the installation would do. That ``pins`` hold is judged by the caller."""
        how = ["--dry-run", "--no-recommends", "--oldpackage", "--allow-vendor-change", "--auto-agree-with-licenses", "--details"]
        wanted = [*(f"{name}={full}" for name, full in specs.items()), *(f"!{name}" for name in remove)]
        ran = self._zypper(["--no-refresh", "install", *how, *wanted], SOLVE_SECONDS)
        if ran.rc not in _GOOD:
            raise impossible(self.node, version, said(ran))
        return parse_summary(ran.out)

    def _zypper(self, arguments: list[str], seconds: float) -> Ran:
        folder = self.folder
        where = [f"--reposd-dir={folder / 'repos'}", f"--cache-dir={folder / 'cache'}"]
        surroundings = {"ZYPP_CONF": str(folder / "zypp.conf"), "ZYPP_LOGFILE": str(folder / "zypper.log"), "ZYPP_LOCK_TIMEOUT": _LOCK_SECONDS}
        return self.node.run(["zypper", "--non-interactive", "--xmlout", *where, *arguments], seconds, **surroundings)

    def _prepare(self) -> None:
        for name in ("repos", "cache"):
            (self.folder / name).mkdir()
        locks = other_locks(self.node.text(ZYPP_LOCKS) or "", self.lifted)
        (self.folder / "locks").write_text(locks, encoding="utf-8")
        configuration = self.node.text("/etc/zypp/zypp.conf") or "[main]\n"
        (self.folder / "zypp.conf").write_text(f"{configuration}\nlocksfile.path = {self.folder / 'locks'}\n", encoding="utf-8")
        if self.with_host:
            folder = REPOSITORIES["zypper"]
            for name in self.node.names(folder):
                if name.endswith(".repo") and f"{folder}/{name}" not in managed_paths("zypper"):
                    shutil.copyfile(self.node.at(f"{folder}/{name}"), self.folder / "repos" / name)
        if self.repository is not None:
            self._verify(self.repository["url"].rstrip("/"))
            # zypper would put a key into the host's rpm database; the index has been verified here, and packages are at the installation.
            lines = [
                f"[{REPOSITORY_ID}]", f"name={REPOSITORY_ID}", f"baseurl={self.repository['url']}", "enabled=1", "autorefresh=0", "type=rpm-md", "gpgcheck=0",
            ]
            (self.folder / "repos" / f"{REPOSITORY_ID}.repo").write_text("\n".join([*lines, ""]), encoding="utf-8")

    def _verify(self, url: str) -> None:
        """Check the signature of the repository's index with a keyring that has the one key. A mirror may lack the signature.

        Raises FleetError DriverKeyMismatch, DriverRepositoryUnreachable, or DriverViewUnsupported without gpg.
        """
        signature = fetch_if_there(self.node, f"{url}/repodata/repomd.xml.asc")
        index = fetch(self.node, f"{url}/repodata/repomd.xml")
        if signature is None:
            return
        if not self.node.which("gpg"):
            raise unsupported(self.node, "gpg is missing, which checks the repository's signature")
        home = self.folder / "gnupg"
        home.mkdir(mode=0o700)
        for name, content in (("key.asc", self.key.encode("ascii")), ("repomd.xml", index), ("repomd.xml.asc", signature)):
            (home / name).write_bytes(content)
        gpg = ["gpg", "--homedir", str(home), "--batch", "--no-autostart", "--trust-model", "always"]
        self.node.query([*gpg, "--import", str(home / "key.asc")])
        ran = self.node.run([*gpg, "--verify", str(home / "repomd.xml.asc"), str(home / "repomd.xml")])
        if ran.rc:
            raise key_mismatch(self.node, self.url, ran.tail())


def other_locks(text: str, lifted: Collection[str]) -> str:
    """Return zypper's locks without those by the names and patterns in ``lifted``."""
    kept = []
    for stanza in filter(str.strip, re.split(r"\n\s*\n", text)):
        name = re.search(r"^solvable_name:[ \t]*(\S+)", stanza, re.MULTILINE)
        if name is None or name.group(1) not in lifted:
            kept.append(stanza.strip("\n"))
    return "\n\n".join([*kept, ""])


def parse_search(text: str) -> Offers:
    """Return the offers in the output of ``zypper --xmlout search --details``, which has the newest first."""
    offers: Offers = {}
    for solvable in _xml(text).iter("solvable"):
        repository = solvable.get("repository", "")
        if repository and not repository.startswith("("):  # (System Packages): installed, and offered by nobody
            offers.setdefault(solvable.get("name", ""), []).append(Offer(solvable.get("edition", ""), repository == REPOSITORY_ID))
    return offers


def parse_summary(text: str) -> Transaction:
    """Return the transaction in the output of ``zypper --xmlout install --dry-run``."""
    transaction = empty_transaction()
    kinds = {"to-install": "install", "to-upgrade": "upgrade", "to-downgrade": "downgrade", "to-remove": "remove"}
    for summary in _xml(text).iter("install-summary"):
        for part in summary:
            kind = kinds.get(re.sub(r"-change-arch|-change-vendor", "", part.tag))
            for solvable in part.iter("solvable") if kind else ():
                if solvable.get("type", "package") == "package":
                    transaction[kind or ""].append({"name": solvable.get("name", ""), "full": solvable.get("edition", "")})
    return sorted_transaction(transaction)


def said(ran: Ran) -> str:
    """Return the errors and problems in zypper's output, or its end where it is no XML."""
    try:
        root = _xml(ran.out)
    except ElementTree.ParseError:
        return ran.tail()
    texts = [message.text or "" for message in root.iter("message") if message.get("type") in ("error", "warning")]
    texts += [(prompt.text or "") for prompt in root.iter("text")]
    texts += [(node.text or "") for node in root.iter("description")]
    return " ".join(" ".join(text.split()) for text in texts if text.strip()) or ran.tail()


def _xml(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)
