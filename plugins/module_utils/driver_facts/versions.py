# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Versions of packages: what is newer by dpkg's rules and by rpm's."""
from __future__ import annotations

import re
from functools import cmp_to_key
from itertools import zip_longest
from typing import Any, Callable

_DEB_PARTS = re.compile(r"(\D*)(\d*)")
_RPM_PARTS = re.compile(r"\d+|[A-Za-z]+|~|\^")


def deb_key() -> Callable[[str], Any]:
    """Return a sort key for Debian versions, oldest first."""
    return cmp_to_key(compare_deb)


def compare_deb(one: str, other: str) -> int:
    """Return -1, 0 or 1 as dpkg orders two versions (deb-version(7))."""
    for left, right in zip(_deb_split(one), _deb_split(other)):
        result = _compare_deb_part(left, right)
        if result:
            return result
    return 0


def compare_rpm(one: str, other: str) -> int:
    """Return -1, 0 or 1 as rpm orders two ``[epoch:]version[-release]``; a missing epoch is 0 (rpm-version(7))."""
    for left, right in zip(_rpm_split(one), _rpm_split(other)):
        result = _compare_rpm_part(left, right)
        if result:
            return result
    return 0


def _deb_split(full: str) -> tuple[str, str, str]:
    epoch, colon, rest = full.partition(":")
    if not colon:
        epoch, rest = "0", full
    version, _dash, revision = rest.rpartition("-")
    return (epoch, version, revision) if version else (epoch, rest, "")


def _rpm_split(full: str) -> tuple[str, str, str]:
    epoch, colon, rest = full.partition(":")
    if not colon:
        epoch, rest = "0", full
    version, _dash, release = rest.partition("-")
    return epoch, version, release


def _compare_deb_part(one: str, other: str) -> int:
    for (text, number), (other_text, other_number) in zip_longest(_DEB_PARTS.findall(one), _DEB_PARTS.findall(other), fillvalue=("", "")):
        left, right = [_deb_weight(char) for char in text], [_deb_weight(char) for char in other_text]
        # The end of a part stands after "~" and before everything else.
        length = max(len(left), len(right))
        left, right = left + [0] * (length - len(left)), right + [0] * (length - len(right))
        if left != right:
            return -1 if left < right else 1
        if int(number or 0) != int(other_number or 0):
            return -1 if int(number or 0) < int(other_number or 0) else 1
    return 0


def _deb_weight(char: str) -> int:
    if char == "~":
        return -1
    return ord(char) if char.isalpha() else ord(char) + 256


def _compare_rpm_part(one: str, other: str) -> int:
    for left, right in zip_longest(_RPM_PARTS.findall(one), _RPM_PARTS.findall(other)):
        if left == right:
            continue
        if "~" in (left, right):  # before everything, the end of the version included
            return -1 if left == "~" else 1
        if left is None or right is None:
            return -1 if left is None else 1
        if "^" in (left, right):  # right after the end, before anything else
            return -1 if left == "^" else 1
        if left.isdigit() != right.isdigit():
            return 1 if left.isdigit() else -1
        if left.isdigit() and int(left) != int(right):
            return -1 if int(left) < int(right) else 1
        if not left.isdigit():
            return -1 if left < right else 1
    return 0
