# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The offline tables: consistent in themselves, named by the rule that drivers follow, and the same as the planner's tests have them."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.mig_profiles import MODELS, KnownModel, known_model, model_of_board
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.offline import offline_gpu
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.unit.mig.models import A30, RTX_PRO_6000, SEVEN_SLICE_H100


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_a_table_is_consistent(model: KnownModel) -> None:
    assert len({profile.id for profile in model.profiles}) == len({profile.enum for profile in model.profiles}) == len(model.profiles)
    assert model.source
    for profile in model.profiles:
        assert profile.name.startswith(f"{profile.compute_slices}g.")
        assert max(profile.starts) + profile.size <= model.slots
        fitting = 1 if "+me" in profile.name else sum(start % profile.size == 0 for start in profile.starts)
        assert profile.count == fitting, profile.name
        if profile.memory_mib is None:
            assert "memory" in model.inferred
        else:
            assert profile.memory_mib <= model.memory_mib * profile.size / model.slots


@pytest.mark.parametrize("key", MODELS)
def test_the_dra_driver_computes_the_names_of_the_table(key: str) -> None:
    assert [profile.dra_name for profile in offline_gpu(key).profiles] == [profile.name for profile in MODELS[key].profiles]


@pytest.mark.parametrize(("key", "table"), [("h100-80gb-hbm3", SEVEN_SLICE_H100), ("rtx-pro-6000-server", RTX_PRO_6000), ("a30", A30)])
def test_the_tables_are_those_written_down_for_the_planner(key: str, table: list) -> None:
    assert [(p.name, p.id, p.enum, p.compute_slices, p.size, p.starts, p.count) for p in MODELS[key].profiles] == \
        [(*row[:5], tuple(row[5]), row[6]) for row in table]


def test_boards_of_one_pci_id_belong_to_one_model() -> None:
    ids = [device for model in MODELS.values() for device in model.pci_device_ids]
    assert len(ids) == len(set(ids))


def test_a_board_is_recognised_by_its_pci_id() -> None:
    assert model_of_board("0x233b10de").key == "h200-nvl"
    assert model_of_board("0x20F310DE").key == "a100-80gb-sxm4"
    assert model_of_board("0x26B910DE") is None


def test_an_unknown_model_is_answered_with_all_keys() -> None:
    with pytest.raises(FleetError, match=r"^h100: it is neither a GPU model .* h100-80gb-hbm3, .*\[UnknownGpuModel\]$"):
        known_model("h100")


def test_the_documentation_lists_the_models() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "mig-layouts.md").read_text(encoding="utf-8")
    listed = re.findall(r"`([a-z0-9-]+)`", " ".join(text.partition("Known models:")[2].partition("\n\n")[0].split()))
    assert sorted(listed) == sorted(MODELS)
