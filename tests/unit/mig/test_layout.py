# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Our layouts and mig-parted's: what they mean, and one sentence for every mistake."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.layout import parse_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.parted import layout_from_options, parse_parted
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.plan import make_plan
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.resolve import resolve
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mig.models import gpu


def names(rules: Any, device: Any) -> list[str]:
    rule = rules.rule_for(device)
    return sorted(item.profile.name for item in resolve(rule, device).wanted)


def parted(specs: Any, **extra: Any) -> dict[str, Any]:
    return {"version": "v1", "mig-configs": {"mine": specs}, **extra}


# -- which GPU ---------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("match", "hits"), [
    ("all", [0, 1, 2]),
    ({"index": 1}, [1]),
    ({"index": ["0", 2]}, [0, 2]),
    ({"minor": 2}, [2]),
    ({"uuid": "gpu-H100-1"}, [1]),
    ({"pci_bus_id": "0000:42:00.0"}, [1]),
    ({"pci_bus_id": "42:00"}, [1]),
    ({"product": "*h100*"}, [0, 1]),
    ({"product": ["*H100*", "*RTX PRO*"]}, [0, 1, 2]),
    ({"pci_device_id": "0x2bb510de"}, [2]),
    ({"pci_device_id": 0x233010DE}, [0, 1]),
    ({"pci_device_id": "0x233010DE:0x16C110DE"}, [0, 1]),
    ({"pci_device_id": "0x233010DE:0x000010DE"}, []),
    ({"product": "*H100*", "index": [1, 2]}, [1]),
])
def test_match(match: Any, hits: list[int]) -> None:
    layout = parse_layouts([{"match": match, "mode": "disabled"}])
    devices = [gpu("h100", 0), gpu("h100", 1), gpu("rtx", 2)]
    assert [device.index for device in devices if layout.rule_for(device)] == hits


def test_first_rule_wins_in_layouts_and_last_in_mig_parted() -> None:
    ours = parse_layouts([{"match": {"index": 0}, "instances": {"7g.80gb": 1}}, {"match": "all", "instances": "all-1g"}])
    assert names(ours, gpu("h100", 0)) == ["7g.80gb"]
    assert names(ours, gpu("h100", 1)) == ["1g.10gb"] * 7
    theirs = parse_parted(parted([
        {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
        {"devices": [0], "mig-enabled": True, "mig-devices": {"7g.80gb": 1}},
    ]), None, "f.yaml")
    assert names(theirs, gpu("h100", 0)) == ["7g.80gb"]
    assert names(theirs, gpu("h100", 1)) == ["1g.10gb"] * 7


def test_a_rule_for_all_passes_over_gpus_without_mig_but_a_named_one_is_an_error() -> None:
    everything = parse_layouts([{"match": "all", "instances": "all-1g"}])
    assert not make_plan([gpu("l40s")], everything, "disable").changed
    with pytest.raises(FleetError, match="NotMigCapable"):
        make_plan([gpu("l40s")], parse_layouts([{"match": {"product": "*L40S*"}, "instances": "all-1g"}]), "keep")
    assert not make_plan([gpu("l40s")], parse_layouts([{"match": {"index": 0}, "mode": "disabled"}]), "keep").changed


def warnings(layout: Any, *devices: Any) -> list[tuple[str, str]]:
    return [(found.code, found.subject) for found in layout.findings(devices)]


FIRST, SECOND, OTHER = gpu("h100", 0), gpu("h100", 1), gpu("rtx", 2)


@pytest.mark.parametrize(("matches", "expected"), [
    (["all", {"index": 0}], [("LayoutEntryUnused", "layouts[1]"), ("LayoutEntriesOverlap", FIRST.label)]),
    ([{"index": 0}, "all"], []),  # how a fallback is written
    ([{"index": [0]}, {"index": [0, 1]}, {"product": "*RTX*"}], []),
    ([{"index": 0}, {"product": "*H100*"}], [("LayoutEntriesOverlap", FIRST.label)]),
    ([{"product": "*H100*"}, {"product": "*H100*"}], [("LayoutEntryUnused", "layouts[1]"), ("LayoutEntriesOverlap", FIRST.label),
                                                     ("LayoutEntriesOverlap", SECOND.label)]),
    ([{"product": "*A100*"}, {"product": "*H100*"}], []),  # for other nodes of the group
])
def test_entries_that_never_count_or_compete_are_reported(matches: list[Any], expected: list[tuple[str, str]]) -> None:
    rules = [{"match": match, "instances": {"1g": number + 1}} for number, match in enumerate(matches)]
    assert warnings(parse_layouts(rules), FIRST, SECOND, OTHER) == expected


def test_competitors_that_want_the_same_are_not_reported_but_any_others_of_a_mig_parted_file_are() -> None:
    same = [{"match": {"index": 0}, "instances": "whole"}, {"match": {"product": "*H100*"}, "instances": "whole"}]
    assert warnings(parse_layouts(same), FIRST, SECOND) == []
    theirs = parse_parted(parted([
        {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
        {"devices": [0], "mig-enabled": True, "mig-devices": {"7g.80gb": 1}},
        {"devices": [0], "mig-enabled": False},
    ]), None, "f.yaml")
    assert warnings(theirs, FIRST, SECOND) == [("LayoutEntryUnused", "f.yaml: mig-configs.mine[1]"), ("LayoutEntriesOverlap", FIRST.label)]


# -- what it gets ------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "instances", "expected"), [
    ("h100", "balanced", ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]),
    ("a30", "balanced", ["1g.6gb", "1g.6gb", "2g.12gb"]),
    ("rtx", "balanced", ["1g.24gb", "1g.24gb", "2g.48gb"]),
    ("h100", "whole", ["7g.80gb"]),
    ("rtx", "whole", ["4g.96gb"]),
    ("h100", "all-1g", ["1g.10gb"] * 7),
    ("rtx", "all-1g", ["1g.24gb"] * 4),
    ("h100", "all-1g.20gb", ["1g.20gb"] * 4),
    ("h100", "all-3g", ["3g.40gb"] * 2),
    ("h100", "all-1g+me", ["1g.10gb+me"]),
    ("rtx", "all-1g.24gb+me.all", ["1g.24gb+me.all"]),
    ("h100", {"MIG 3g.40gb": "1", "1G.10GB": 2, "2g.20gb": 0}, ["1g.10gb", "1g.10gb", "3g.40gb"]),
    ("h100", {"19": 1, "9": 1}, ["1g.10gb", "3g.40gb"]),
    ("h100", {"3g.39gb": 1}, ["3g.40gb"]),
    ("h100", ["1g.10gb", {"profile": "3g.40gb", "start": 4}, {"profile": "1g", "count": 2}], ["1g.10gb"] * 3 + ["3g.40gb"]),
    ("h100", {}, []),
])
def test_instances(model: str, instances: Any, expected: list[str]) -> None:
    assert names(parse_layouts([{"match": "all", "instances": instances}]), gpu(model)) == sorted(expected)


@pytest.mark.parametrize(("instances", "reason", "text"), [
    ({"1g.12gb": 1}, "UnknownProfile", "1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb"),
    ({"5g": 1}, "UnknownProfile", "no MIG profile 5g"),
    ({"1c.5g.40gb": 1}, "UnknownProfile", "no MIG profile 5g.40gb"),
    ({"3c.4g.40gb": 1}, "ImpossibleDivision", "it offers 1c x4, 2c x2, 4c x1"),
    ([{"profile": "3g.40gb", "compute_instances": [2, 2]}], "ImpossibleDivision", "2c and 2c"),
    ("all-5c.7g", "ImpossibleDivision", "5c"),
    ("all-9g", "UnknownProfile", "9g"),
    ([{"profile": "3g.40gb", "start": 2}], "ImpossibleLayout", "3g.40gb may start at 0, 4"),
    ({"3g.40gb": 2, "1g.10gb": 1}, "ImpossibleLayout", "9 memory slots of 8"),
    ({"7g.80gb": 1, "1g.10gb": 1}, "ImpossibleLayout", "7g.80gb x1, 1g.10gb x1"),
    ({"4g.40gb": 2}, "ImpossibleLayout", "cannot hold them"),
])
def test_what_a_gpu_cannot_do_is_refused_with_what_it_can(instances: Any, reason: str, text: str) -> None:
    with pytest.raises(FleetError) as caught:
        make_plan([gpu("h100")], parse_layouts([{"match": "all", "instances": instances}]), "keep")
    assert caught.value.finding.code == reason
    assert text in str(caught.value) and "layouts[0]" in str(caught.value)


def test_a_driver_that_lists_no_profiles_with_mig_off_is_named() -> None:
    device = gpu("h100", enabled=False)
    bare = type(device)(**{**vars(device), "profiles": ()})
    with pytest.raises(FleetError, match="ProfilesNotListed"):
        make_plan([bare], parse_layouts([{"match": "all", "instances": "all-1g"}]), "keep")


# -- mistakes in layouts -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("raw", "text"), [
    ("all-1g", "layouts: it is not a list"),
    (["all-1g"], "layouts[0]: it is not a mapping"),
    ([{"match": "all", "instances": {}, "mod": 1}], "unknown key 'mod'"),
    ([{"instances": {}}], "match is missing"),
    ([{"match": "every", "instances": {}}], "match is 'every'"),
    ([{"match": {}, "instances": {}}], "match is {}"),
    ([{"match": {"name": "x"}, "instances": {}}], "unknown key 'name'"),
    ([{"match": {"index": []}, "instances": {}}], "the list is empty"),
    ([{"match": {"index": "first"}, "instances": {}}], "'first' is not an NVML index"),
    ([{"match": {"index": True}, "instances": {}}], "True is not an NVML index"),
    ([{"match": {"pci_bus_id": "slot 3"}, "instances": {}}], "is not a PCI address"),
    ([{"match": {"pci_device_id": "2330"}, "instances": {}}], "is not a device and vendor id"),
    ([{"match": "all", "mode": "on", "instances": {}}], "the mode is 'on'"),
    ([{"match": "all"}], "instances are missing"),
    ([{"match": "all", "mode": "disabled", "instances": {"1g": 1}}], "although the mode is disabled"),
    ([{"match": "all", "instances": "max"}], "'max' is not an intent"),
    ([{"match": "all", "instances": 7}], "they are 7"),
    ([{"match": "all", "instances": {"1g": -1}}], "-1 is not a number from 0 to 64"),
    ([{"match": "all", "instances": {"1g": True}}], "True is not a number"),
    ([{"match": "all", "instances": {"1g": 0, "3g": "0"}}], "every count is 0"),
    ([{"match": "all", "instances": [{"profile": "1g", "count": 0}]}], "every count is 0"),
    ([{"match": "all", "instances": {"1g": 10**5000}}], "a huge number is not"),
    ([{"match": "all", "instances": {10**5000: 1}}], "a huge number is not a profile"),
    ([{"match": "all", "instances": {None: 1}}], "None is not a profile"),
    ([{"match": "all", "instances": [{"start": 4}]}], "Give a profile"),
    ([{"match": "all", "instances": [{"profile": "1g", "start": 0, "count": 2}]}], "Give one entry per start"),
])
def test_mistakes_in_layouts_are_named(raw: Any, text: str) -> None:
    with pytest.raises(FleetError) as caught:
        parse_layouts(raw)
    assert caught.value.finding.code == "InvalidLayout"
    assert text in str(caught.value)


@pytest.mark.parametrize("match", [{"index": 7}, {"index": [0, 7]}, {"uuid": "GPU-none"}, {"pci_bus_id": "0000:99:00.0"}, {"product": "*H200*"}])
def test_a_rule_for_a_gpu_that_is_not_there(match: Any) -> None:
    with pytest.raises(FleetError) as caught:
        make_plan([gpu("h100")], parse_layouts([{"match": match, "mode": "disabled"}]), "keep")
    assert caught.value.finding.code == "LayoutMatchesNothing"
    assert "NVIDIA H100 80GB HBM3" in str(caught.value)


def test_a_rule_for_another_model_is_fine_while_some_rule_means_this_node() -> None:
    layout = parse_layouts([{"match": {"product": "*A100*"}, "mode": "disabled"}, {"match": {"product": "*H100*"}, "instances": {}}])
    assert not make_plan([gpu("h100")], layout, "keep").changed


def test_unlisted_gpus_are_kept_or_disabled() -> None:
    layout = parse_layouts([{"match": {"index": 0}, "instances": {}}])
    devices = [gpu("h100", 0), gpu("h100", 1, instances=[("3g.40gb", 4)]), gpu("l40s", 2)]
    assert not make_plan(devices, layout, "keep").changed
    assert {step.gpu_uuid for step in make_plan(devices, layout, "disable").steps} == {"GPU-h100-1"}


# -- mig-parted --------------------------------------------------------------------------------------------------------------------------------------


def test_device_filter_devices_and_empty_mig_devices() -> None:
    layout = parse_parted(parted([
        {"device-filter": ["0x233010DE", "0x233110DE:0x16C110DE"], "devices": "all", "mig-enabled": True, "mig-devices": {"3g.40gb": 2}},
        {"device-filter": "0x2BB510DE", "devices": [1], "mig-enabled": True, "mig-devices": {}},
    ]), "mine", "f.yaml")
    assert names(layout, gpu("h100", 0)) == ["3g.40gb"] * 2
    assert layout.rule_for(gpu("rtx", 0)) is None
    assert names(layout, gpu("rtx", 1)) == []
    assert layout.rule_for(gpu("l40s", 2)) is None


@pytest.mark.parametrize(("document", "selected", "reason", "text"), [
    (["x"], None, "LayoutFileUnreadable", "it is not a mapping"),
    ({"mig-configs": {"a": []}}, None, "LayoutFileUnreadable", "its version is None"),
    ({"version": "v2", "mig-configs": {"a": []}}, None, "LayoutFileUnreadable", "its version is 'v2'"),
    ({"version": "v1"}, None, "LayoutFileUnreadable", "no mig-configs"),
    ({"version": "v1", "mig-configs": {"a": [], "b": []}}, None, "UnknownConfigName", "one of: a, b"),
    (parted([]), "others", "UnknownConfigName", "no configuration named others"),
    (parted([]), None, "InvalidLayout", "not a list of entries"),
    (parted(["x"]), None, "InvalidLayout", "mig-configs.mine[0]: it is not a mapping"),
    (parted([{"devices": "all", "mig-enabled": False, "mig-device": {}}]), None, "InvalidLayout", "unknown key 'mig-device'"),
    (parted([{"devices": "all"}]), None, "InvalidLayout", "mig-enabled is missing"),
    (parted([{"devices": "all", "mig-enabled": "yes"}]), None, "InvalidLayout", "not a boolean"),
    (parted([{"devices": 7, "mig-enabled": False}]), None, "InvalidLayout", "such as [7]"),
    (parted([{"mig-enabled": False}]), None, "InvalidLayout", "devices is None"),
    (parted([{"devices": [], "mig-enabled": False}]), None, "InvalidLayout", "the list is empty"),
    (parted([{"devices": "all", "device-filter": "0x2330", "mig-enabled": False}]), None, "InvalidLayout", "device-filter: '0x2330' is not"),
    (parted([{"devices": "all", "mig-enabled": False, "mig-devices": {"1g.10gb": 1}}]), None, "InvalidLayout", "although mig-enabled is false"),
    (parted([{"devices": "all", "mig-enabled": True}]), None, "InvalidLayout", "mig-devices: it is missing"),
    (parted([{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 0}}]), None, "InvalidLayout", "every count is 0"),
    (parted([{"devices": "all", "mig-enabled": True, "mig-devices": {"small": 1}}]), None, "InvalidLayout", "not a MIG profile name"),
])
def test_mistakes_in_mig_parted_files_are_named_with_the_file(document: Any, selected: str | None, reason: str, text: str) -> None:
    with pytest.raises(FleetError) as caught:
        parse_parted(document, selected, "conf/mig.yaml")
    assert caught.value.finding.code == reason
    assert text in str(caught.value) and str(caught.value).startswith("conf/mig.yaml")


def test_a_mig_parted_file_for_more_gpus_than_there_are_counts_for_those_that_there_are() -> None:
    layout = parse_parted(parted([{"devices": [0, 1, 2], "mig-enabled": True, "mig-devices": {"7g.80gb": 1}}]), None, "f.yaml")
    made = make_plan([gpu("h100", 0), gpu("h100", 1)], layout, "keep")
    assert len({step.gpu_uuid for step in made.steps}) == 2
    assert [(found.code, found.cause) for found in made.findings] == [("LayoutGpuAbsent", "it names GPUs that this node does not have (index 2)")]
    with pytest.raises(FleetError, match="LayoutMatchesNothing"):
        make_plan([gpu("rtx", 3)], layout, "keep")


def test_the_two_formats_exclude_each_other() -> None:
    params = {"layouts": [{"match": "all", "instances": {}}], "mig_parted_config": parted([]), "mig_parted_selected": None, "mig_parted_source": "f"}
    with pytest.raises(FleetError, match="both given"):
        layout_from_options(params)


def test_a_task_without_any_layout_is_refused_unless_it_turns_mig_off_everywhere() -> None:
    params = {"layouts": [], "mig_parted_config": None, "unlisted": "keep"}
    with pytest.raises(FleetError, match="nothing to make"):
        layout_from_options(params)
    assert layout_from_options({**params, "unlisted": "disable"}).rules == ()


# -- anything at all ---------------------------------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from([
    "match", "mode", "instances", "all", "enabled", "disabled", "index", "product", "profile", "start", "count", "1g.10gb", "3g", "balanced", "all-1g",
    "version", "v1", "mig-configs", "devices", "mig-enabled", "mig-devices", "device-filter", "0x233010DE", "*", "19",
])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.integers(), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(JSON, st.booleans())
def test_random_layouts_give_a_plan_or_a_sentence(raw: Any, theirs: bool) -> None:
    try:
        layout = parse_parted(raw, None, "random") if theirs else parse_layouts(raw)
        make_plan([gpu("h100"), gpu("rtx", 1)], layout, "keep")
    except FleetError as error:
        assert error.finding.remedy
