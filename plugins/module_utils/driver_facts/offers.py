# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the private views of apt, dnf and zypper have in common."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..knowledge.addresses import without_credentials
from ..reasons import FleetError, finding
from .node import Node

REPOSITORY_ID = "gpufleet-view"
"""Name of the driver's repository within a view."""

HOST_SOURCES = "the host's own package sources"

DOWNLOAD_SECONDS = 600.0
SOLVE_SECONDS = 180.0


class Offer(NamedTuple):
    """A version of a package that a source offers, and whether that is the driver's repository. ``full`` is empty where the name asked for has it already."""

    full: str
    from_repository: bool


Offers = dict[str, list[Offer]]
"""By package name, newest first."""

Transaction = dict[str, list[dict[str, str]]]
"""``install``, ``upgrade``, ``downgrade`` and ``remove``; each a list of name and full version, sorted by name. For ``remove`` the version that goes."""


def empty_transaction() -> Transaction:
    """Return a transaction that does nothing."""
    return {"install": [], "upgrade": [], "downgrade": [], "remove": []}


def sorted_transaction(transaction: Transaction) -> Transaction:
    """Return a transaction with its lists sorted."""
    return {kind: sorted(packages, key=lambda package: (package["name"], package["full"])) for kind, packages in transaction.items()}


class Sources(ABC):
    """The package sources of a host, seen through a private configuration below ``folder``.

    ``repository`` is the driver's (kind, url, key_url, fingerprint, distribution_repos) or None, ``key`` its verified signing key as armoured text,
    ``stream`` the module stream to enable where there are any, ``lifted`` the locks of the role's own, which it lifts for its transactions.
    """

    def __init__(
        self, node: Node, folder: Path, repository: Mapping[str, Any] | None, key: str, stream: str | None, lifted: Sequence[str] = (),
    ) -> None:
        self.node = node
        self.folder = folder
        self.repository = repository
        self.key = key
        self.stream = stream
        self.lifted = frozenset(lifted)

    @property
    def url(self) -> str:
        """Return the address of the driver's repository as it may be shown, or the words for the host's own sources."""
        return without_credentials(self.repository["url"]) if self.repository else HOST_SOURCES

    @property
    def with_host(self) -> bool:
        """Return whether the host's own package sources are asked."""
        return self.repository is None or bool(self.repository["distribution_repos"])

    @abstractmethod
    def offers(self, names: Sequence[str]) -> Offers:
        """Return what is offered of ``names``. Raises FleetError DriverRepositoryUnreachable or DriverKeyMismatch."""

    @abstractmethod
    def transaction(self, specs: Mapping[str, str], version: str, pins: Sequence[str], remove: Sequence[str]) -> Transaction:
        """Return what installing ``specs`` (name to package version) would do, packages that ``pins`` match held to the driver's ``version``.

        Raises FleetError DriverTransactionImpossible.
        """


def impossible(node: Node, version: str, error: str) -> FleetError:
    """Return the error about a transaction that the package manager does not make."""
    return FleetError(finding("DriverTransactionImpossible", node.name, {"version": version}, version=version, error=error))


def unsupported(node: Node, why: str) -> FleetError:
    """Return the error about a host whose package sources cannot be asked."""
    return FleetError(finding("DriverViewUnsupported", node.name, {}, why=why))
