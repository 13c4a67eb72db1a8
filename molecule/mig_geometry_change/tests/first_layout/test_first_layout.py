# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the first converge, and a second one that had nothing to do."""
from __future__ import annotations

from testinfra.host import Host

WANTED = {
    # 3g + 2g + 1g + 1g stands only with the 3g in the upper half.
    "mig-h100": [[("1g.10gb", 0), ("1g.10gb", 1), ("2g.20gb", 2), ("3g.40gb", 4)], None],
    "mig-a100": [[("1g.10gb", start) for start in range(7)]],
}


def test_every_gpu_has_its_layout(host: Host, layouts: list) -> None:
    assert layouts == WANTED[host.backend.get_hostname()]


def test_every_instance_has_one_compute_instance_of_its_size(gpus: list) -> None:
    instances = [item for gpu in gpus for item in gpu["instances"]]
    assert instances
    for item in instances:
        assert [compute["profile"] for compute in item["compute_instances"]] == [item["profile"]]
