# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Planning without a GPU: from a model's table and from facts."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.mig_profiles import MODELS
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.offline import forecast, gpus_of, offline_gpu
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.unit.mig.models import gpu_facts


def places(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((row["profile"], row["start"]) for row in rows)


def test_four_small_ones_beside_a_3g_need_the_lower_half() -> None:
    found = forecast("h100-80gb-hbm3", {"3g.40gb": 1, "1g.10gb": 4}, [{"profile": "3g.40gb", "start": 0}])
    assert found["kept"] == []
    assert places(found["destroyed"]) == [("3g.40gb", 0)]
    assert places(found["created"]) == [("1g.10gb", 0), ("1g.10gb", 1), ("1g.10gb", 2), ("1g.10gb", 3), ("3g.40gb", 4)]
    assert found["device_names"] == [*(f"gpu-0-mig-1g10gb-19-{start}" for start in range(4)), "gpu-0-mig-3g40gb-9-4"]
    assert len(found["plan"]) == found["mutating_calls"] == 12
    assert found["plan"][0] == "destroy compute instance 3c of 3g.40gb at start 0 on GPU 0 (NVIDIA H100 80GB HBM3, h100-80gb-hbm3)"


def test_what_can_stay_stays() -> None:
    found = forecast("h100-80gb-hbm3", {"3g.40gb": 1, "1g.10gb": 4}, [{"profile": "3g.40gb", "start": 4}])
    assert places(found["kept"]) == [("3g.40gb", 4)]
    assert found["destroyed"] == []
    assert found["mutating_calls"] == 8


@pytest.mark.parametrize("key", MODELS)
def test_every_intent_can_be_forecast_for_every_model_and_then_nothing_is_left_to_do(key: str) -> None:
    for desired in ("whole", "balanced", "all-1g"):
        found = forecast(key, desired)
        assert found["created"] and len(found["device_names"]) == len(found["created"])
        again = forecast(key, desired, [{"profile": row["profile"], "start": row["start"]} for row in found["created"]])
        assert again["mutating_calls"] == 0 and again["device_names"] == found["device_names"]


def test_instances_without_a_start_lie_where_the_planner_puts_them() -> None:
    assert forecast("a30", "balanced", "balanced")["plan"] == []


def test_divided_instances_of_now_are_seen() -> None:
    found = forecast("h100-80gb-hbm3", {"3g.40gb": 1}, [{"profile": "3g.40gb", "start": 0, "compute_instances": [2, 1]}])
    assert places(found["kept"]) == [("3g.40gb", 0)]
    assert found["mutating_calls"] == 3


def test_facts_are_planned_as_they_are_and_gpus_without_mig_are_passed_over() -> None:
    document = {"gpus": [gpu_facts("h100", 0, instances=[("3g.40gb", 0)]), gpu_facts("l40s", 1), gpu_facts("rtx", 2)]}
    found = forecast(document, "all-1g")
    assert {row["parent_uuid"] for row in found["destroyed"]} == {"GPU-h100-0"}
    assert {row["parent_uuid"] for row in found["created"]} == {"GPU-h100-0", "GPU-rtx-2"}
    assert "gpu-1" in found["device_names"]
    assert found["inferred"] == ""


def test_one_gpu_of_the_facts_will_do() -> None:
    assert places(forecast(gpu_facts("a30", 3), {"2g": 1})["created"])[0][0] == "2g.12gb"


def test_a_forecast_says_what_its_table_only_infers() -> None:
    assert forecast("h100-80gb-hbm3", "whole")["inferred"] == ""
    assert "placements" in forecast("b200", "whole")["inferred"]


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("v100", "whole"), r"v100: it is neither a GPU model .*\[UnknownGpuModel\]"),
    (([], "whole"), r"\[\]: it is neither a GPU model"),
    (({"gpus": [{"uuid": "GPU-0"}]}, "whole"), "it is neither a GPU model"),
    (({"gpus": None}, "whole"), "it is neither a GPU model"),
    (({"gpus": []}, "whole"), r"desired: a node without GPUs does not support MIG.*\[NotMigCapable\]"),
    ((gpu_facts("l40s"), "whole"), r"desired: GPU 0 \(NVIDIA L40S.*\[NotMigCapable\]"),
    ((gpu_facts("a30"), "whole", []), r"current: it is given beside facts.*\[InvalidLayout\]"),
    (("a30", 5), r"^desired: they are 5"),
    (("a30", [{"profile": "1g", "start": "x"}]), r"^desired\[0\]\.start: 'x' is not a number"),
    (("a30", {"3g.20gb": 1}), r"^desired: GPU 0 \(NVIDIA A30, a30\) offers no MIG profile 3g\.20gb.*4g\.24gb"),
    (("a30", {"2g": 3}), r"^desired: 2g\.12gb x3 cannot stand on .*\[ImpossibleLayout\]"),
    (("a30", "whole", "half"), r"^current: 'half' is not an intent"),
    (("a30", "whole", [{"profile": "2g", "start": 0}, {"profile": "1g", "start": 1}]), r"^current: .* cannot stand on .*\[ImpossibleLayout\]"),
])
def test_a_refusal_names_the_option(arguments: tuple, sentence: str) -> None:
    with pytest.raises(FleetError, match=sentence):
        forecast(*arguments)


def test_index_and_minor_of_an_offline_gpu_can_be_chosen() -> None:
    assert (offline_gpu("a30", 2, 5).index, offline_gpu("a30", 2, 5).minor) == (2, 5)
    assert gpus_of("a30")[0].instances == ()
