# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The private view of apt: own sources, lists, caches and preferences, and a copy of dpkg's status."""
from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..driver.files import managed_paths
from .fetch import key_mismatch, unreachable
from .node import Ran
from .offers import (
    DOWNLOAD_SECONDS,
    HOST_SOURCES,
    REPOSITORY_ID,
    SOLVE_SECONDS,
    Offer,
    Offers,
    Sources,
    Transaction,
    empty_transaction,
    impossible,
    sorted_transaction,
)
from .versions import compare_deb

_INST = re.compile(r"^Inst (?P<name>\S+)(?: \[(?P<old>[^\]]+)\])? \((?P<new>\S+) ", re.MULTILINE)
_REMOVED = re.compile(r"^(?:Remv|Purg) (?P<name>\S+) \[(?P<old>[^\]]+)\]", re.MULTILINE)
_MADISON = re.compile(r"^\s*(?P<name>\S+) \| +(?P<full>\S+) \| (?P<source>.+?) Packages\s*$", re.MULTILINE)
# How apt says that a signature is missing, bad or by a key that is not the one given.
_SIGNATURE = re.compile(r"NO_PUBKEY|BADSIG|EXPKEYSIG|REVKEYSIG|is not signed|not signed by|invalid signature|Missing key|cannot verify", re.IGNORECASE)
# A preferences file of NVIDIA's pinning packages holds another branch than the one asked about.
_PINNING_FILE = re.compile(r"nvidia-driver-pinning|gpufleet-nvidia-driver")
# What the host's configuration has apt run after an update, such as a script that sets the time of the last one, which is not the host's here.
_WITHOUT_HOOKS = "".join(
    f"#clear {name};\n" for name in (
        "APT::Update::Pre-Invoke", "APT::Update::Post-Invoke", "APT::Update::Post-Invoke-Success", "APT::Update::Post-Invoke-Stats", "AptCli::Hooks",
    )
)
# States of an installation that was cut off, and what it becomes when dpkg --configure -a or a reinstallation has cleared it.
_UNFINISHED = {"half-installed": "not-installed", "unpacked": "installed", "half-configured": "installed", "triggers-awaited": "installed"}


class AptSources(Sources):
    """See :class:`Sources`."""

    def offers(self, names: Sequence[str]) -> Offers:
        """Return what is offered of ``names``."""
        self._prepare()
        self._update()
        return parse_madison(self.node.query(["apt-cache", *self._options(), "madison", *names]), self.url)

    def transaction(self, specs: Mapping[str, str], version: str, pins: Sequence[str], remove: Sequence[str]) -> Transaction:
        """Return what the installation would do."""
        preferences = f"Package: {' '.join(pins)}\nPin: version {version}-*\nPin-Priority: 1001\n"
        (self.folder / "preferences.d" / "00-view").write_text(preferences, encoding="utf-8")
        wanted = [*(f"{name}={full}" for name, full in specs.items()), *(f"{name}-" for name in remove)]
        how = ["--simulate", "--assume-yes", "--allow-downgrades", "--allow-change-held-packages", "--no-install-recommends"]
        ran = self.node.run(["apt-get", *self._options(), *how, "install", *wanted], SOLVE_SECONDS)
        if ran.rc:
            raise impossible(self.node, version, unmet(ran))
        return parse_simulation(ran.out)

    def _options(self) -> list[str]:
        settings = {
            "Dir::Etc::SourceList": "/dev/null", "Dir::Etc::SourceParts": self.folder / "sources.list.d", "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": self.folder / "preferences.d", "Dir::State::Lists": self.folder / "lists", "Dir::Cache": self.folder / "cache",
            "Dir::State::status": self.folder / "status", "Dir::State::extended_states": self.folder / "extended_states", "Debug::NoLocking": "true",
            "Dir::Log": self.folder / "log",
            # The user _apt may not enter the folder.
            "APT::Sandbox::User": "root", "Acquire::Languages": "none", "APT::Get::Show-User-Simulation-Note": "false", "Acquire::Retries": "1",
        }
        return [f"-c={self.folder / 'apt.conf'}", *(f"-o{name}={value}" for name, value in settings.items())]

    def _prepare(self) -> None:
        for name in ("sources.list.d", "preferences.d", "lists/partial", "cache/archives/partial", "log", "own.d"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "apt.conf").write_text(_WITHOUT_HOOKS, encoding="utf-8")
        status = self.node.text("/var/lib/dpkg/status") or ""
        updates = [self.node.text(f"/var/lib/dpkg/updates/{name}") or "" for name in self.node.names("/var/lib/dpkg/updates") if name.isdigit()]
        (self.folder / "status").write_text(finished_status(status, updates), encoding="utf-8")
        (self.folder / "extended_states").write_text(self.node.text("/var/lib/apt/extended_states") or "", encoding="utf-8")
        if self.repository is not None:
            key = self.folder / "key.asc"
            key.write_text(self.key, encoding="ascii")
            source = f"deb [signed-by={key}] {self.repository['url']} /\n"
            for folder in ("own.d", "sources.list.d"):
                (self.folder / folder / f"{REPOSITORY_ID}.list").write_text(source, encoding="utf-8")
        if self.with_host:
            self._copy_host()

    def _copy_host(self) -> None:
        """Copy the host's sources and preferences but for those that the role writes, and link what apt has read of its sources already."""
        managed = managed_paths("apt")
        for base, folder in (("/etc/apt/sources.list", "sources.list.d"), ("/etc/apt/preferences", "preferences.d")):
            paths = [base, *(f"{base}.d/{name}" for name in self.node.names(f"{base}.d"))]
            for number, path in enumerate(paths):
                skip = path in managed or (folder == "preferences.d" and _PINNING_FILE.search(path))
                if not skip and self.node.at(path).is_file():
                    name = f"{number:03d}-{Path(path).name}"
                    name += ".list" if path == "/etc/apt/sources.list" else ""
                    shutil.copyfile(self.node.at(path), self.folder / folder / name)
        for name in self.node.names("/var/lib/apt/lists"):
            if self.node.at(f"/var/lib/apt/lists/{name}").is_file() and name != "lock":
                (self.folder / "lists" / name).symlink_to(self.node.at(f"/var/lib/apt/lists/{name}"))

    def _update(self) -> None:
        """Read the indices: the driver's repository must answer, then all sources as a real installation would read them."""
        strict = ["-oAPT::Update::Error-Mode=any"]
        if self.repository is not None:
            own = [f"-oDir::Etc::SourceParts={self.folder / 'own.d'}", "-oAPT::Get::List-Cleanup=false"]
            ran = self.node.run(["apt-get", *self._options(), *own, *strict, "update"], DOWNLOAD_SECONDS)
            if ran.rc and _SIGNATURE.search(ran.err):
                raise key_mismatch(self.node, self.url, complaints(ran))
            if ran.rc:
                raise unreachable(self.node, self.url, complaints(ran))
        if self.with_host:
            ran = self.node.run(["apt-get", *self._options(), "update"], DOWNLOAD_SECONDS)
            if ran.rc:
                raise unreachable(self.node, HOST_SOURCES, complaints(ran))


def complaints(ran: Ran) -> str:
    """Return the errors and warnings in apt's output, or its end where it has none."""
    lines = [line[2:].strip() for line in ran.err.splitlines() if line.startswith(("E:", "W:"))]
    return " ".join(lines) or ran.tail()


def unmet(ran: Ran) -> str:
    """Return what apt says about dependencies that cannot be met, without the explanations around it."""
    _before, _title, listed = ran.out.partition("The following packages have unmet dependencies:")
    return f"{listed} {complaints(ran)}".strip()


def finished_status(status: str, updates: Sequence[str]) -> str:
    """Return dpkg's status file as it will be once what was interrupted is cleared, so that a transaction can be made out.

    ``updates`` are the journal files beside it, which a power cut leaves; each holds the newer record of a package.
    """
    records = {}
    for text in (status, *updates):
        for record in filter(str.strip, re.split(r"\n{2,}", text)):
            fields = dict(re.findall(r"^(Package|Architecture): *(.*)$", record, re.MULTILINE))
            records[(fields.get("Package"), fields.get("Architecture"))] = re.sub(
                r"^Status: (\S+) \S+ (\S+)$", lambda found: f"Status: {found.group(1)} ok {_UNFINISHED.get(found.group(2), found.group(2))}",
                record.strip("\n"), flags=re.MULTILINE,
            )
    return "\n\n".join(records.values()) + "\n\n" if records else ""


def parse_madison(text: str, url: str) -> Offers:
    """Return the offers in ``apt-cache madison``'s output, which has the newest first."""
    offers: Offers = {}
    own = url.rstrip("/").replace("file:///", "file:/")  # as apt writes it
    for found in _MADISON.finditer(text):
        offer = Offer(found.group("full"), found.group("source").startswith(own))
        offers.setdefault(found.group("name"), []).append(offer)
    return offers


def parse_simulation(text: str) -> Transaction:
    """Return the transaction in the output of ``apt-get --simulate``; names without the host's own architecture."""
    transaction = empty_transaction()
    for found in _INST.finditer(text):
        old, new = found.group("old"), found.group("new")
        order = compare_deb(old, new) if old else -1
        if order:
            kind = "install" if not old else "upgrade" if order < 0 else "downgrade"
            transaction[kind].append({"name": found.group("name"), "full": new})
    for found in _REMOVED.finditer(text):
        transaction["remove"].append({"name": found.group("name"), "full": found.group("old")})
    return sorted_transaction(transaction)
