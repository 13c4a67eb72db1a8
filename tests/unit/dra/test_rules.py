# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The driver's rules, one by one, against texts that real boards and the driver's documents show."""
from __future__ import annotations

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra import rules

GIB = 2**30
MIB = 2**20


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("595.58.03", "595.58.3"), ("580.105.08", "580.105.8"), ("9.0", "9.0.0"), ("12", "12.0.0"), ("595.91.07-beta1", "595.91.7-beta1"),
        ("1.2.3+build.5", "1.2.3+build.5"),
    ],
)  # fmt: skip
def test_lenient_version(text: str, version: str) -> None:
    assert rules.lenient_version(text) == version


@pytest.mark.parametrize("text", ["595.58.03.01", "", "abc", "1..2"])
def test_version_that_stops_the_plugin(text: str) -> None:
    with pytest.raises(rules.Unpublishable):
        rules.lenient_version(text)


@pytest.mark.parametrize(("number", "version"), [(13020, "13.2.0"), (12080, "12.8.0"), (11040, "11.4.0")])
def test_cuda_version(number: int, version: str) -> None:
    assert rules.cuda_version(number) == version


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [("00000000:65:00.0", "0000:65:00.0"), ("00000001:C1:00.0", "0001:c1:00.0"), ("0009:01:00.0", "0009:01:00.0")],
)
def test_pci_bus_id(bus_id: str, address: str) -> None:
    assert rules.pci_bus_id(bus_id) == address


@pytest.mark.parametrize("bus_id", ["00010000:65:00.0", "65:00.0", ""])
def test_pci_bus_id_that_stops_the_plugin(bus_id: str) -> None:
    with pytest.raises(rules.Unpublishable):
        rules.pci_bus_id(bus_id)


@pytest.mark.parametrize(
    ("enum", "memory_mib", "total_mib", "text"),
    [
        (0, 4864, 40960, "1g.5gb"), (4, 40192, 40960, "7g.40gb"),  # A100 40GB
        (0, 9728, 81920, "1g.10gb"), (9, 19968, 81920, "1g.20gb"), (2, 40192, 81920, "3g.40gb"),  # A100 80GB
        (7, 9984, 81559, "1g.10gb+me"), (4, 81152, 81559, "7g.80gb"),  # H100 80GB
        (0, 11008, 95830, "1g.12gb"), (2, 47488, 95830, "3g.47gb"), (4, 95360, 95830, "7g.94gb"),  # H100 NVL
        (0, 16384, 143771, "1g.18gb"), (1, 33280, 143771, "2g.35gb"), (2, 71168, 143771, "3g.71gb"), (4, 143360, 143771, "7g.141gb"),  # H200 NVL
        (15, 24192, 97887, "1g.24gb+me.all"), (13, 24192, 97887, "1g.24gb-me"), (11, 48512, 97887, "2g.48gb+gfx"), (3, 97280, 97887, "4g.96gb"),
    ],
)  # fmt: skip
def test_profile_text(enum: int, memory_mib: int, total_mib: int, text: str) -> None:
    assert rules.profile_text(enum, memory_mib, total_mib * MIB) == text


def test_profile_text_depends_on_the_total_memory() -> None:
    """A mock's round total gives a name that no board has (dra-driver facts: 192 GiB for a GB200)."""
    assert rules.profile_text(0, 20480, 192 * GIB) == "1g.24gb"
    assert rules.profile_text(0, 22528, 189471 * MIB) == "1g.23gb"


@pytest.mark.parametrize(("enum", "total"), [(17, 80 * GIB), (0, None), (0, 0)])
def test_profile_that_stops_the_plugin(enum: int, total: int | None) -> None:
    with pytest.raises(rules.Unpublishable):
        rules.profile_text(enum, 9984, total)


@pytest.mark.parametrize(
    ("profile", "ident", "start", "name"),
    [
        ("3g.40gb", 9, 0, "gpu-0-mig-3g40gb-9-0"), ("1g.10gb+me", 20, 4, "gpu-0-mig-1g10gb-me-20-4"),
        ("1g.24gb+me.all", 65, 3, "gpu-0-mig-1g24gb-meall-65-3"), ("1g.24gb-me", 67, 9, "gpu-0-mig-1g24gb-me-67-9"),
    ],
)  # fmt: skip
def test_mig_device_name(profile: str, ident: int, start: int, name: str) -> None:
    assert rules.mig_device_name(0, profile, ident, start) == name


def test_numbers_that_the_plugin_does_not_know() -> None:
    for rule, number in ((rules.brand, 17), (rules.architecture, 11), (rules.addressing_mode, 3)):
        with pytest.raises(rules.Unpublishable):
            rule(number)
    assert (rules.brand(14), rules.architecture(8), rules.addressing_mode(2)) == ("Nvidia", "Ada Lovelace", "ATS")
