# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reasons about reading a host's driver and asking its package sources."""
from __future__ import annotations

from .row import ERROR, Reason

ROWS = (
    Reason(
        "DriverCommandFailed", ERROR,
        "{command} failed: {error}",
        "Run it on the host, as root, and put right what it says.",
    ),
    Reason(
        "DriverViewUnsupported", ERROR,
        "the package sources cannot be asked: {why}",
        "Install what is missing, or set nvidia_driver_owner to operator where the GPU Operator installs the driver.",
    ),
    Reason(
        "DriverRepositoryUnreachable", ERROR,
        "{url} cannot be read: {error}",
        "Make the address reachable from the host, or set nvidia_driver_mirror_url (or nvidia_driver_repository_url and nvidia_driver_repository_key_url) to a "
        "mirror that is.",
    ),
    Reason(
        "DriverKeyMismatch", ERROR,
        "the signing key of {url} is not the one expected: {error}",
        "Find out why before anything is installed from there. For a mirror that signs with a key of its own set nvidia_driver_repository_key_url and "
        "nvidia_driver_repository_key_fingerprint.",
    ),
    Reason(
        "DriverVersionUnavailable", ERROR,
        "{url} does not offer driver {wanted}: {available}",
        "Set nvidia_driver_version to one of those that are offered, or bring the mirror up to date.",
    ),
    Reason(
        "DriverTransactionImpossible", ERROR,
        "the package manager finds no way to install driver {version}: {error}",
        "Put right what it names: usually a package source that is missing (EPEL for dkms, headers of the kernel) or a hold of another package.",
    ),
)
