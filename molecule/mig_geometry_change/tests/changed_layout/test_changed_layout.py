# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the change: the new layout stands, and nothing went that could stay."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from testinfra.host import Host

# Per host and GPU: profiles wanted, and how many instances have to go for them.
WANTED = {
    "mig-h100": [({"3g.40gb": 1, "1g.10gb": 4}, 1), ({"1g.10gb": 7}, 0)],
    "mig-a100": [({"4g.40gb": 1, "1g.10gb": 3}, 4)],
}
# Per host, how many instances of the first layout stay.
KEPT = {"mig-h100": 3, "mig-a100": 3}


@pytest.fixture
def name(host: Host) -> str:
    return host.backend.get_hostname()


def devices(text: str) -> set[str]:
    return set(re.findall(r"UUID: (MIG-[0-9a-f-]+)", text))


def test_every_gpu_has_the_changed_layout(name: str, layouts: list) -> None:
    assert [dict(Counter(profile for profile, _start in layout)) for layout in layouts] == [profiles for profiles, _gone in WANTED[name]]


def test_only_what_had_to_go_was_destroyed(name: str, gpus: list, calls: Callable) -> None:
    destroyed = Counter(call["gpu"] for call in calls("nvmlGpuInstanceDestroy"))
    assert [destroyed[gpu["uuid"]] for gpu in gpus] == [gone for _profiles, gone in WANTED[name]]


def test_what_stayed_kept_its_uuid(host: Host, name: str) -> None:
    before = devices(host.file("/run/devices-before").content_string)
    after = devices(host.check_output("nvidia-smi -L"))
    assert before and after
    assert len(before & after) == KEPT[name]


def test_mig_mode_changed_only_where_it_had_to(name: str, calls: Callable) -> None:
    assert len(calls("nvmlDeviceSetMigMode")) == (1 if name == "mig-h100" else 0)
