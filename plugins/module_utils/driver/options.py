# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the user wants of a driver: the variables of the role nvidia_driver, without their prefix."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..knowledge.driver_branches import OPEN, PROPRIETARY, VERSION, branch_of
from ..knowledge.driver_packages import DISTRIBUTION, NVIDIA
from ..reasons import FleetError, finding

AUTO = "auto"
HOST = "host"
OPERATOR = "operator"
PRESENT = "present"
ABSENT = "absent"

_CHOICES = {
    "state": (PRESENT, ABSENT), "owner": (HOST, OPERATOR), "flavour": (AUTO, OPEN, PROPRIETARY), "source": (NVIDIA, DISTRIBUTION),
    "imex": (AUTO, "true", "false"), "fabric_manager": (AUTO, "true", "false"),
}


@dataclass(frozen=True)
class Options:
    """The wishes, checked in form. ``subject`` names the host in findings; what the other fields mean is said in the role's argument specs.

    ``branch`` and ``version`` may be empty; one of them has to be given for a driver to be installed.
    """

    subject: str = "host"
    state: str = PRESENT
    owner: str = HOST
    branch: str = ""
    version: str = ""
    flavour: str = AUTO
    source: str = NVIDIA
    mirror_url: str = ""
    repository_url: str = ""
    repository_key_url: str = ""
    repository_key_fingerprint: str = ""
    imex: str = AUTO
    fabric_manager: str = AUTO
    allow_ended_branch: bool = False
    reboot_ok: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Return the options in ``given``; names that mean nothing here are passed over, as a role has more variables than these.

        Raises FleetError DriverOptionInvalid for a value that cannot be, DriverVersionNotOfBranch when branch and version contradict each other.
        """
        known = {field.name: given[field.name] for field in fields(cls) if given.get(field.name) is not None}
        subject = str(known.get("subject", cls.subject))
        texts: dict[str, Any] = {}
        for name, value in known.items():
            if name in ("allow_ended_branch", "reboot_ok"):
                texts[name] = _flag(subject, name, value)
            else:
                texts[name] = str(value).lower() if isinstance(value, bool) else str(value).strip()
        for name, choices in _CHOICES.items():
            if texts.get(name, choices[0]) not in choices:
                raise _invalid(subject, name, texts[name], "one of " + ", ".join(choices))
        branch, version = texts.get("branch", ""), texts.get("version", "")
        if branch and not (branch.isdigit() and branch.isascii() and len(branch) == 3):
            raise _invalid(subject, "branch", branch, "a driver branch such as 580")
        if version and not VERSION.fullmatch(version):
            raise _invalid(subject, "version", version, "a driver version such as 580.173.02")
        if version and branch and branch_of(version) != branch:
            raise FleetError(finding("DriverVersionNotOfBranch", subject, {"branch": branch, "version": version}, branch=branch, version=version))
        if version:
            texts["branch"] = branch_of(version)
        for name in ("mirror_url", "repository_url", "repository_key_url"):
            if texts.get(name) and "://" not in texts[name]:
                raise _invalid(subject, name, texts[name].rpartition("@")[2], "an address such as https://mirror.example.com/cuda")
        texts["repository_key_fingerprint"] = _fingerprint(subject, texts.get("repository_key_fingerprint", ""))
        return cls(**texts)


def _flag(subject: str, name: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "yes", "no", "1", "0", "on", "off"):
        raise _invalid(subject, name, str(value), "true or false")
    return text in ("true", "yes", "1", "on")


def _fingerprint(subject: str, text: str) -> str:
    """Return an OpenPGP fingerprint without blanks, in capitals: 40 digits (version 4) or 64 (version 6)."""
    plain = "".join(text.split()).upper().removeprefix("0X")
    if plain and (len(plain) not in (40, 64) or any(char not in "0123456789ABCDEF" for char in plain)):
        raise _invalid(subject, "repository_key_fingerprint", text, "a whole OpenPGP fingerprint of 40 or 64 hexadecimal digits")
    return plain


def _invalid(subject: str, name: str, value: str, allowed: str) -> FleetError:
    return FleetError(finding("DriverOptionInvalid", subject, {"option": name, "value": value}, option=f"nvidia_driver_{name}", value=value, allowed=allowed))
