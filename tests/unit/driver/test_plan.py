# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of role nvidia_driver: what it asks, does, holds, remembers and refuses, for each package manager."""
from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver import files
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.plan import plan, verdict
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.addresses import sealed

from tests.unit.driver.hosts import REVISIONS, fresh, installed, package

KEY = {"repository_key_fingerprint": "AB" * 20}
SYSTEMS = ("debian12", "ubuntu2404", "el9", "el10", "sles15")
KEY_TEXT = "-----BEGIN PGP PUBLIC KEY BLOCK-----\nx\n-----END PGP PUBLIC KEY BLOCK-----\n"


def made(facts: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Return the plan for branch 580, with ``given`` on top."""
    return plan(facts, {"subject": "gpu1", "branch": "580", **KEY, **given}).as_dict()


def answered(facts: dict[str, Any], version: str, missing: tuple[str, ...] = (), remove: tuple[str, ...] = (), **given: Any) -> dict[str, Any]:
    """Return the facts with the answer of a repository that has every package at ``version``, to the question that the plan asks."""
    asked = made(facts, **given)["view"]
    manager = facts["host"]["package_manager"]
    full = REVISIONS[manager].format(version)
    there = {package["name"]: package["version"] for package in facts["packages"]}
    names = [name for name in asked["install"] if name not in missing]
    parts: dict[str, list[dict[str, str]]] = {"install": [], "upgrade": [], "downgrade": [], "remove": []}
    for name in names:
        if there.get(name) != version:
            kind = "install" if name not in there else "upgrade" if there[name] < version else "downgrade"
            parts[kind].append({"name": name, "full": full})
    parts["install"].append({"name": "dkms", "full": "3.0-1"})
    parts["remove"] = [{"name": name, "full": "1"} for name in remove]
    view = {"available": [version], "version": version, "key": KEY_TEXT, "packages": dict.fromkeys(names, full), "missing": list(missing), "transaction": parts}
    return {**facts, "view": view}


def carried_out(facts: dict[str, Any], done: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the facts of a host on which the role has carried out the plan ``done``, everything loaded and up."""
    system = {"debian": "debian12", "ubuntu": "ubuntu2404", "sles": "sles15"}.get(facts["host"]["distribution"]) or f"el{facts['host']['major']}"
    after = installed(system, version, done["target"]["flavour"])
    texts = {**facts["files"], **{one["path"]: one["content"] for one in [*done["files"], *done["files_after"]]}}
    stream = texts.get(files.DNF_STREAM)
    held = sorted({*done["hold"], *done["record"]["held"], *(package["name"] for package in after["packages"])})
    enabled = stream and stream.split("stream=")[1].split()[0]
    return {**after, "files": texts, "record": done["record"], "held": held, "stream": enabled, "trusted_keys": ["abababab"]}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_fresh_host_is_asked_then_planned_then_left_alone(system: str) -> None:
    facts = fresh(system)
    question = made(facts)
    assert question["view"]["branch"] == "580" and not question["packages"]["install"] and question["changes"]
    facts = answered(facts, "580.173.02")
    done = made(facts)
    assert done["view"] is None and not done["refusals"]
    joint = "-" if system.startswith("el") else "="
    assert done["packages"]["install"], "everything is named with its exact version, what comes along by itself is not"
    assert all(f"{joint}{REVISIONS[facts['host']['package_manager']].format('580.173.02')}" in spec for spec in done["packages"]["install"])
    assert not any(spec.startswith("dkms") for spec in done["packages"]["install"])
    assert {"name": "dkms", "full": "3.0-1"} in done["predicted"]["install"]
    assert "dkms" in done["record"]["installed"]
    assert done["record"]["version"] == "580.173.02" and done["record"]["previous"] is None
    again = made(carried_out(facts, done, "580.173.02"))
    assert not again["changes"] and again["view"] is None, {name: value for name, value in again.items() if value}


def test_without_a_version_a_newer_one_is_not_taken() -> None:
    facts = answered(fresh(), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    assert made(kept)["target"]["version"] == "580.173.02" and not made(kept)["changes"]


def test_packages_that_drifted_are_brought_back_to_the_version_on_record() -> None:
    facts = answered(fresh(), "580.173.02")
    drifted = carried_out(facts, made(facts), "580.173.02")
    drifted["packages"][0] = {**drifted["packages"][0], "version": "580.178.04", "full": "580.178.04-1"}
    question = made(drifted)
    assert question["view"]["version"] == "580.173.02"
    done = made(answered(drifted, "580.173.02"))
    assert [package["name"] for package in done["predicted"]["downgrade"]] == [drifted["packages"][0]["name"]]


@pytest.mark.parametrize(("system", "path", "says"), [
    ("debian12", files.APT_PREFERENCES, "Pin: version 580.173.02-*\nPin-Priority: 1001"),
    ("debian12", files.APT_UNATTENDED, '"libnvidia-"'),
    ("debian12", files.APT_SOURCES, f"Signed-By: {files.APT_KEY}"),
    ("el9", files.DNF_STREAM, "stream=580-open"),
    ("el9", files.DNF_LOCKS, "kmod-nvidia*-580.173.02-*.*"),
    ("el10", files.DNF_REPOSITORY, "gpgcheck=1"),
    ("sles15", files.ZYPPER_REPOSITORY, "gpgcheck=1"),
])  # fmt: skip
def test_the_version_is_pinned_before_the_packages_come(system: str, path: str, says: str) -> None:
    written = {one["path"]: one["content"] for one in made(answered(fresh(system), "580.173.02"))["files"]}
    assert says in written[path]
    assert files.RECORD not in written


def test_el10_has_no_streams() -> None:
    assert files.DNF_STREAM not in {one["path"] for one in made(answered(fresh("el10"), "580.173.02"))["files"]}


def test_zypper_locks_are_off_for_the_transaction_and_on_again_after_it() -> None:
    facts = answered(fresh("sles15"), "580.173.02")
    first = made(facts)
    assert [one["path"] for one in first["files_after"]] == [files.ZYPPER_LOCKS]
    kept = carried_out(facts, first, "580.173.02")
    kept["files"][files.ZYPPER_LOCKS] += "\ntype: package\nsolvable_name: kernel-default\n"
    done = made(answered(kept, "595.91.07", branch="595"), branch="595")
    before = next(one["content"] for one in done["files"] if one["path"] == files.ZYPPER_LOCKS)
    assert "nvidia" not in before and "kernel-default" in before, "a lock of the administrator's stays"
    after = done["files_after"][0]["content"]
    assert "solvable_name: nvidia-compute-G07" in after and "solvable_name: nvidia-*-G06*" in after and "kernel-default" in after
    assert "nvidia-open-driver-G06" in done["packages"]["remove_first"]


def test_locks_of_the_administrator_stay_in_dnfs_list() -> None:
    facts = fresh("el9", files={files.DNF_LOCKS: "kernel-0:5.14.0-1.*\n"})
    first = made(answered(facts, "580.173.02"))
    text = next(one["content"] for one in first["files"] if one["path"] == files.DNF_LOCKS)
    assert text.startswith("kernel-0:5.14.0-1.*\n") and "580.173.02" in text
    assert files.dnf_locks(text, [], "") == "kernel-0:5.14.0-1.*\n"
    assert first["record"]["replaced"][files.DNF_LOCKS] == "kernel-0:5.14.0-1.*\n"


def test_holds_are_put_on_everything_of_the_driver_also_where_somebody_took_one_off() -> None:
    facts = answered(fresh(), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    kept["held"].remove("nvidia-driver-cuda")
    done = made(kept)
    assert done["hold"] == ["nvidia-driver-cuda"] and done["changes"] and not done["packages"]["install"] and done["view"] is None


def test_upgrade_remembers_the_way_back_and_rollback_takes_it_once() -> None:
    facts = answered(fresh(), "580.173.02")
    old = carried_out(facts, made(facts), "580.173.02")
    upgrade = made(answered(old, "595.91.07", branch="595"), branch="595")
    assert upgrade["record"]["previous"] == {"branch": "580", "version": "580.173.02", "flavour": "open"}
    assert upgrade["reboot"]["required"] and "580.173.02" in upgrade["reboot"]["reasons"][0]
    new = carried_out(old, upgrade, "595.91.07")
    back = made(answered(new, "580.173.02", branch="595", rollback=True), branch="595", rollback=True)
    assert back["target"]["version"] == "580.173.02" and back["record"]["rolled_back"]
    assert [package["name"] for package in back["predicted"]["downgrade"]]
    there = carried_out(new, back, "580.173.02")
    assert not made(there, branch="595", rollback=True)["changes"], "a second rollback is none"
    cut_off = {**new, "record": back["record"]}
    assert made(cut_off, branch="595", rollback=True)["view"]["version"] == "580.173.02", "a rollback that was cut off goes on"


def test_what_the_old_driver_pulled_in_goes_with_it_and_its_hold_first() -> None:
    facts = answered(fresh("ubuntu2404"), "595.91.07", branch="595")
    new = carried_out(facts, made(facts, branch="595"), "595.91.07")
    new["packages"].append({**new["packages"][0], "name": "nvidia-firmware"})
    new["held"].append("nvidia-firmware")
    done = made({**answered(new, "580.173.02"), "packages": new["packages"]})
    gone = {*done["packages"]["remove_after"], *(package["name"] for package in done["predicted"]["remove"])}
    assert {"nvidia-dkms-open", "nvidia-firmware"} <= set(done["packages"]["remove_after"])
    assert "nvidia-dkms-open" in gone and "nvidia-dkms-open" in done["unhold"] and "nvidia-dkms-580-open" not in gone


def test_a_rollback_without_a_version_before_is_refused() -> None:
    facts = answered(fresh(), "580.173.02")
    refused = made(carried_out(facts, made(facts), "580.173.02"), rollback=True)
    assert [found["reason"] for found in refused["findings"]] == ["DriverNoPrevious"] and not refused["changes"]
    assert [found["reason"] for found in made(fresh(), rollback=True)["findings"]] == ["DriverNoPrevious"]


def test_a_run_that_was_cut_off_goes_on_to_its_own_version() -> None:
    facts = answered(fresh(), "580.173.02")
    half = {**fresh(), "record": made(facts)["record"], "broken_packages": ["nvidia-kernel-open-dkms"]}
    question = made(half)
    assert question["view"]["version"] == "580.173.02" and question["recover"]
    done = made(answered(half, "580.173.02"))
    assert done["record"]["installed"] == made(facts)["record"]["installed"]


def test_what_no_source_has_is_not_looked_for_again() -> None:
    host = fresh()
    host["pci"]["switches"] = [{"address": "0000:c0:00.0", "device": "22a3"}]
    done = made(answered(host, "580.173.02", missing=("libnvidia-nscq",)))
    assert done["record"]["unavailable"] == ["libnvidia-nscq"] and not done["refusals"]


def test_a_repository_that_lacks_the_module_is_refused() -> None:
    refused = made(answered(fresh(), "580.173.02", missing=("nvidia-kernel-open-dkms",)))
    assert [found["reason"] for found in refused["findings"]] == ["DriverPackagesMissing"] and not refused["changes"]


@pytest.mark.parametrize(("kubelet", "paused", "loaded", "refused"), [
    (True, False, True, True), (True, True, True, False), (False, False, True, False), (True, False, False, False),
])  # fmt: skip
def test_a_loaded_driver_is_not_changed_under_pods(kubelet: bool, paused: bool, loaded: bool, refused: bool) -> None:
    facts = answered(fresh(), "580.173.02")
    facts = carried_out(facts, made(facts), "580.173.02") if loaded else fresh()
    facts = {**facts, "cluster_hint": {"kubelet": kubelet}, "holders": [{"pid": 7, "command": "dcgm", "files": ["/dev/nvidia0"]}]}
    done = made(answered(facts, "595.91.07", branch="595"), branch="595", node_paused=paused)
    assert [found["reason"] for found in done["findings"]] == (["DriverNodeInService"] if refused else [])
    assert done["changes"] is not refused
    assert not refused or "dcgm (7)" in done["refusals"][0]


def test_a_node_in_service_that_needs_no_change_is_left_alone() -> None:
    facts = answered(fresh(), "580.173.02")
    kept = {**carried_out(facts, made(facts), "580.173.02"), "cluster_hint": {"kubelet": True}}
    assert not made(kept)["refusals"] and not made(kept)["changes"]


def test_a_reboot_is_asked_for_also_while_the_repository_would_have_to_be_asked() -> None:
    facts = answered(fresh(), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    kept["packages"].pop()
    kept["loaded"]["module"]["version"] = "580.178.04"
    assert made(kept)["view"] and made(kept)["reboot"]["required"]


def test_services_wait_for_the_reboot_and_imex_is_masked() -> None:
    facts = answered(fresh(), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    kept["services"] = {"nvidia-persistenced": {"present": True, "active": False, "enabled": True, "masked": False},
                        "nvidia-imex": {"present": True, "active": True, "enabled": True, "masked": False},
                        "nvidia-fabricmanager": {"present": True, "active": False, "enabled": True, "masked": False}}  # fmt: skip
    wanted = {one["name"]: one for one in made(kept)["services"]}
    assert wanted["nvidia-persistenced"]["state"] == "started"
    assert wanted["nvidia-imex"] == {"name": "nvidia-imex", "enabled": False, "masked": True, "state": "stopped"}
    assert wanted["nvidia-fabricmanager"]["enabled"] is False, "without switches it cannot run"
    kept["loaded"]["module"]["version"] = "580.178.04"
    assert "nvidia-persistenced" not in {one["name"] for one in made(kept)["services"]}, "it would fail until the host is rebooted"


def test_a_driver_that_is_not_loaded_is_loaded_without_a_reboot() -> None:
    facts = answered(fresh(), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    kept["loaded"]["module"] = None
    assert made(kept)["load"] and not made(kept)["reboot"]["required"] and made(kept)["view"] is None


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("found", [None, {"path": "/lib/modules/k/nvidia.ko", "version": "570.133.20", "flavour": "open", "signer": None}])
def test_a_module_that_dkms_passed_over_is_built_before_anything_is_loaded_or_started(system: str, found: dict[str, Any] | None) -> None:
    facts = answered(fresh(system), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    assert made(kept)["dkms"] == []
    kernel = kept["kernel"]["installed"][0]
    kernel["module"], kept["loaded"]["module"], kept["services"]["nvidia-persistenced"]["active"] = found, None, False
    again = made(kept)
    assert again["dkms"] == [kernel["release"]] and again["changes"] and again["view"] is None and not again["packages"]["install"]
    assert "started" not in {one["state"] for one in again["services"]}, "it would fail without the module"
    kernel["headers"] = False
    assert made(kept)["dkms"] == [] and made(kept)["view"], "the headers have to come first"


def test_dkms_builds_for_the_kernel_that_boots_next_and_for_the_running_one() -> None:
    facts = answered(fresh(), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    running = kept["kernel"]["running"]
    kept["kernel"]["next"] = "6.8.0-99-generic"
    kept["kernel"]["installed"].append({"release": "6.8.0-99-generic", "headers": True, "module": None})
    assert made(kept)["dkms"] == ["6.8.0-99-generic"]
    kept["kernel"]["installed"][0]["module"] = None
    assert made(kept)["dkms"] == ["6.8.0-99-generic", running]


def test_dkms_has_no_part_in_modules_that_come_built() -> None:
    asked = {"source": "distribution"}
    facts = answered(fresh("ubuntu2404"), "580.173.02", **asked)
    module = package("linux-modules-nvidia-580-server-open-generic", "6.8.0-90.91", origin="distribution")
    kept = {**facts, "view": None, "record": made(facts, **asked)["record"], "packages": [*installed("ubuntu2404", **asked)["packages"], module]}
    again = made(kept, **asked)
    assert not kept["kernel"]["installed"][0]["module"] and again["view"] is None and again["dkms"] == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_removal_takes_back_what_the_record_tells_and_nothing_else(system: str) -> None:
    facts = answered(fresh(system), "580.173.02")
    first = made(facts)
    kept = carried_out(facts, first, "580.173.02")
    done = made(kept, state="absent")
    assert sorted([*done["packages"]["remove_first"], *done["packages"]["remove_after"]]) == first["record"]["installed"]
    assert done["packages"]["remove_after"] == ["dkms"], "scripts of the driver's packages need it"
    assert set(done["files_absent"]) == {one["path"] for one in [*first["files"], *first["files_after"]]}
    assert done["changes"] and done["reboot"]["required"]
    assert done["forget_key"] == ("" if facts["host"]["package_manager"] == "apt" else "abababab")
    assert not made(fresh(system), state="absent")["changes"]


def test_removal_puts_back_what_a_file_held_before() -> None:
    found = {files.DNF_STREAM: files.dnf_stream("570-open"), files.DNF_LOCKS: "kernel-0:5.14.0-1.*\n"}
    facts = answered(fresh("el9", files=found, stream="570-open"), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    done = made(kept, state="absent")
    assert {one["path"]: one["content"] for one in done["files_after"]} == found


def test_zypper_locks_come_off_before_the_packages_go() -> None:
    facts = answered(fresh("sles15"), "580.173.02")
    done = made(carried_out(facts, made(facts), "580.173.02"), state="absent")
    assert [(one["path"], one["content"]) for one in done["files"]] == [(files.ZYPPER_LOCKS, "")]
    assert files.ZYPPER_LOCKS in done["files_absent"]


def test_a_driver_that_is_not_ours_stays_and_is_told() -> None:
    done = made(installed(), state="absent")
    assert [found["reason"] for found in done["findings"]] == ["DriverNotOurs"] and not done["changes"] and not done["refusals"]


def test_a_record_that_is_none_is_refused() -> None:
    refused = made(fresh(record={"format": 9}))
    assert [found["reason"] for found in refused["findings"]] == ["DriverRecordUnreadable"]


def test_the_operators_driver_is_left_to_it() -> None:
    assert not made(fresh(), owner="operator", branch="")["changes"]
    assert [found["reason"] for found in made(installed(), owner="operator")["findings"]] == ["DriverOnHost"]


def test_the_manifest_asks_also_where_all_is_installed() -> None:
    facts = answered(fresh(), "580.173.02")
    kept = carried_out(facts, made(facts), "580.173.02")
    assert made(kept)["view"] is None and made(kept, ask=True)["view"]["version"] == "580.173.02"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_password_of_the_mirror_stands_in_one_file_for_root_and_nowhere_else(system: str) -> None:
    mirror = {"mirror_url": "https://me:s3cret@mirror.example.com/cuda", "repository_key_url": "https://me:s3cret@mirror.example.com/key"}
    facts = answered(fresh(system), "580.173.02", **mirror)
    done = made(facts, **mirror)
    path = files.REPOSITORY_PATHS[facts["host"]["package_manager"]]
    secret = [one for one in done["files"] if one["secret"]]
    assert [(one["path"], one["mode"]) for one in secret] == [(path, "0600")] and "s3cret" in secret[0]["content"]
    assert all(one["mode"] == "0644" and "s3cret" not in one["content"] for one in done["files"] if not one["secret"])
    assert "s3cret" not in str({**done, "files": []})
    assert done["target"]["repository"].startswith("https://mirror.example.com/cuda/") and done["target"]["key"] == "https://mirror.example.com/key"
    # driver_info tells of files with the passwords sealed, in which another one is still seen.
    kept = carried_out(facts, done, "580.173.02")
    kept["files"] = {path: sealed(text) for path, text in kept["files"].items()}
    assert not made(kept, **mirror)["changes"]
    other = {name: value.replace("s3cret", "0ther") for name, value in mirror.items()}
    assert made(kept, **other)["view"], "the repository is asked anew"
    assert [one["path"] for one in made({**kept, "view": facts["view"]}, **other)["files"]] == [path]


def test_a_password_is_in_no_refusal() -> None:
    mirror = {"mirror_url": "https://me:s3cret@mirror.example.com/cuda"}
    missing = ("nvidia-kernel-open-dkms",)
    refused = [
        made(answered(fresh(), "580.173.02", missing=missing, **mirror), **mirror), made(fresh("el10"), **mirror, repository_key_fingerprint=""),
        made(fresh(), mirror_url="me:s3cret@mirror.example.com"),
    ]
    assert [one["findings"][0]["reason"] for one in refused] == ["DriverPackagesMissing", "DriverKeyUnknown", "DriverOptionInvalid"]
    assert "s3cret" not in str([(one["findings"], one["refusals"], one["warnings"], one["target"]) for one in refused])


def test_dnf_gets_user_and_password_beside_the_address_which_it_repeats_in_messages() -> None:
    text = files.repository("dnf", "https://me:p%40ss@mirror/el9/")
    assert "baseurl=https://mirror/el9/\n" in text and "username=me\npassword=p@ss\n" in text


def test_planning_changes_no_facts() -> None:
    facts = answered(fresh("sles15"), "580.173.02")
    before = copy.deepcopy(facts)
    made(facts)
    assert facts == before


def test_the_verdict_is_on_the_version_that_a_rollback_asks_for() -> None:
    facts = answered(fresh(), "580.173.02")
    old = carried_out(facts, made(facts), "580.173.02")
    upgrade = made(answered(old, "595.91.07", branch="595"), branch="595")
    new = carried_out(old, upgrade, "595.91.07")
    given = {"subject": "gpu1", "branch": "595", **KEY}
    assert verdict(new, given, False) == []
    assert [found.code for found in verdict(new, {**given, "rollback": True}, False)][:1] == ["DriverBranchWrong"]
    assert verdict(new, {"subject": "gpu1", "state": "absent"}, False) == []


def test_a_binary_key_gets_its_armour() -> None:
    assert files.key("AAAA\n") == "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"
    assert files.key(KEY_TEXT) == KEY_TEXT
    assert files.rpm_key_id("610C7B14E068A878070DA4E99CD0A493D42D0685") == "d42d0685"
