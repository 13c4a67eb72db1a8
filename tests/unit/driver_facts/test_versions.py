# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Versions in the order of dpkg and rpm."""
from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.versions import compare_deb, compare_rpm, deb_key

# As rpm 4.18's labelCompare orders them.
RPM = [
    ("1.0~rc1", "1.0", -1), ("1.0^git", "1.0", 1), ("1.0^git", "1.0.1", -1), ("3:1", "2:9", 1), ("5.14.0-70.el9", "5.14.0-427.el9", -1), ("1.0a", "1.0", 1),
    ("10", "9", 1), ("1.0~1", "1.0~2", -1), ("1.0.z", "1.0.1", -1), ("3:595.91.07-1.el9", "595.91.07-1.el9", 1), ("01", "1", 0), ("1.0-1", "1.0-1", 0),
    ("1.b", "1.a", 1),
]
DEB = [
    ("580.65.06-1", "580.126.09-1"), ("580.65.06-0ubuntu1", "580.65.06-0ubuntu0.24.04.2"), ("1:1.0-1", "2.0-1"), ("1.0~rc1-1", "1.0-1"), ("1.0", "1.0-1"),
    ("6.1.0-9-amd64", "6.1.0-30-amd64"), ("2.0", "2.0"), ("1.0+b1", "1.0"), ("1.0a", "1.0+"), ("5.15.0-1-generic", "5.15.0-1-aws"), ("1.0-0", "1.0"),
]


@pytest.mark.parametrize(("one", "other", "order"), RPM)
def test_rpm_order(one: str, other: str, order: int) -> None:
    assert (compare_rpm(one, other), compare_rpm(other, one)) == (order, -order)


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="dpkg tells what is right")
@pytest.mark.parametrize(("one", "other"), DEB)
def test_deb_order_is_dpkgs(one: str, other: str) -> None:
    def dpkg(relation: str) -> bool:
        return subprocess.run(["dpkg", "--compare-versions", one, relation, other], check=False).returncode == 0

    order = compare_deb(one, other)
    assert (order < 0, order == 0, order > 0) == (dpkg("lt"), dpkg("eq"), dpkg("gt"))
    assert compare_deb(other, one) == -order


def test_the_key_sorts_oldest_first() -> None:
    assert sorted(["580.178.04", "580.65.06", "580.173.02"], key=deb_key()) == ["580.65.06", "580.173.02", "580.178.04"]
