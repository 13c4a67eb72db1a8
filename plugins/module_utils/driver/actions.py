# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan: everything that the role does on a host, as data. The role's tasks carry it out without a decision of their own."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Optional

from ..knowledge.addresses import sealed
from ..knowledge.driver_packages import APT, ZYPPER
from ..reasons import ERROR, Finding

TRANSACTION_PARTS = ("install", "upgrade", "downgrade", "remove")


@dataclass
class Plan:
    """What to do on a host.

    ``view`` is what driver_info has to look at before there is a whole plan, None when nothing is left to ask. ``install`` are package specs with their
    exact versions; ``remove_first`` goes before them in a transaction of its own, ``remove_after`` after them. ``files`` and ``files_absent`` come before
    the packages, ``files_after`` when those are done or have failed. ``import_key`` is the path of a key that rpm has to trust, empty for none.
    ``dkms`` are the kernels that dkms is to build the module for, after the packages. ``load`` says that the driver can be loaded without a reboot.
    ``record`` is None for a host on which nothing is to be remembered.
    """

    findings: list[Finding] = field(default_factory=list)
    manager: str = ""
    target: dict[str, Any] = field(default_factory=dict)
    view: Optional[dict[str, Any]] = None
    recover: bool = False
    files: dict[str, str] = field(default_factory=dict)
    files_absent: list[str] = field(default_factory=list)
    files_after: dict[str, str] = field(default_factory=dict)
    import_key: str = ""
    forget_key: str = ""
    install: list[str] = field(default_factory=list)
    remove_first: list[str] = field(default_factory=list)
    remove_after: list[str] = field(default_factory=list)
    hold: list[str] = field(default_factory=list)
    unhold: list[str] = field(default_factory=list)
    services: list[dict[str, Any]] = field(default_factory=list)
    unmask: list[str] = field(default_factory=list)
    dkms: list[str] = field(default_factory=list)
    load: bool = False
    reboot_reasons: list[str] = field(default_factory=list)
    predicted: dict[str, list[dict[str, str]]] = field(default_factory=lambda: {part: [] for part in TRANSACTION_PARTS})
    record: Optional[dict[str, Any]] = None
    record_changes: bool = False

    def refused(self) -> bool:
        """Return whether a finding speaks against doing anything."""
        return any(found.severity == ERROR for found in self.findings)

    def packages_change(self) -> bool:
        """Return whether packages come or go."""
        return bool(self.install or self.remove_first or self.remove_after)

    def changes(self) -> bool:
        """Return whether the host changes at all."""
        parts = (
            self.view, self.recover, self.files, self.files_absent, self.files_after, self.packages_change(), self.hold, self.unhold, self.services,
            self.unmask, self.dkms, self.load, self.record_changes,
        )
        return any(map(bool, parts))

    def as_dict(self) -> dict[str, Any]:
        """Return the plan for the role's tasks; nothing but the findings and the target where it is refused."""
        refused = self.refused()
        return {
            "findings": [found.as_dict() for found in self.findings],
            "refusals": [found.sentence() for found in self.findings if found.severity == ERROR],
            "warnings": [found.sentence() for found in self.findings if found.severity != ERROR],
            "manager": self.manager,
            "target": self.target,
            "view": None if refused else self.view,
            "changes": not refused and self.changes(),
            "recover": self.recover,
            "files": _written(self.files),
            "files_absent": sorted(self.files_absent),
            "files_after": _written(self.files_after),
            "import_key": self.import_key,
            "forget_key": self.forget_key,
            "packages": {"install": self.install, "remove_first": self.remove_first, "remove_after": self.remove_after},
            "hold": self.hold,
            "unhold": self.unhold,
            "services": self.services,
            "unmask": self.unmask,
            "dkms": self.dkms,
            "load": self.load,
            "reboot": {"required": bool(self.reboot_reasons), "reasons": self.reboot_reasons},
            "predicted": self.predicted,
            "record": self.record,
            "record_changes": self.record_changes,
        }


def _written(files: dict[str, str]) -> list[dict[str, Any]]:
    """Return files as the role writes them. One with a password (``secret``) is for root alone, and its text is not shown."""
    secret = {path: sealed(content) != content for path, content in files.items()}
    return [{"path": path, "content": content, "mode": "0600" if secret[path] else "0644", "secret": secret[path]} for path, content in sorted(files.items())]


def specs(manager: str, packages: Iterable[dict[str, str]]) -> list[str]:
    """Return packages with their exact versions as the package manager takes them: ``name=version`` or ``name-epoch:version-release``.

    A package without ``full`` has its version in the name already, as the headers of one kernel have with dnf.
    """
    joint = "=" if manager in (APT, ZYPPER) else "-"
    return sorted(f"{package['name']}{joint}{package['full']}" if package["full"] else package["name"] for package in packages)
