# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""gpufleet-mig.pyz on an emulated machine: after a reboot the same instances stand at the same places, and every failure leaves a result that says why."""
from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.plugin_utils.zipapp import engine_archive

from tests.emulator.conftest import Machine
from tests.emulator.modules import run_module

H100, A100 = "h100-80gb-hbm3", "a100-80gb-pcie"
SMALL = [{"match": "all", "instances": {"3g.40gb": 1, "1g.10gb": 2}}]
MIX = [{"match": {"index": 0}, "instances": {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}}, {"match": {"index": 1}, "instances": "all-1g"}]


class BootService:
    """The engine on one machine, with settings for a layout that the module mig_layout has made there."""

    def __init__(self, machine: Machine, engine: Path) -> None:
        self.machine = machine
        self.folder = machine.directory.parent
        self.engine = engine
        self.settings = self.folder / "mig-boot.json"
        self.state_dir = self.folder / "gpufleet"

    def lay(self, layouts: list[dict[str, Any]], **settings: Any) -> None:
        """Make a layout with the module and write settings that make it again."""
        made = run_module(self.machine, "mig_layout", layouts=layouts)
        assert not made.get("failed"), made
        document = {
            "version": 1, "layouts": made["fixed_layouts"], "allow_reset": False, "ignore_health": False, "phase_timeout_s": 60, "wait_s": 0, "timeout_s": 60,
            "pause_node": None, **settings,
        }
        self.settings.write_text(json.dumps(document))

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-I", str(self.engine), "--settings", str(self.settings), "--state-dir", str(self.state_dir), *arguments]

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = self.machine.run(self.command(*arguments), **env)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads((self.state_dir / "mig-boot-state.json").read_text()))

    @property
    def instances(self) -> list[list[tuple[str, int]]]:
        return [self.machine.layout(gpu) for gpu in range(len(self.machine.show()["gpus"]))]


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engine") / "gpufleet-mig.pyz"
    path.write_bytes(engine_archive())
    return path


@pytest.fixture
def service(nvml_machine: Callable[..., Machine], engine: Path) -> BootService:
    """An H100 with a layout, and the settings for it."""
    made = BootService(nvml_machine(H100), engine)
    made.lay(SMALL)
    return made


def test_after_a_reboot_the_same_instances_stand_at_the_same_places(nvml_machine: Callable[..., Machine], engine: Path) -> None:
    service = BootService(nvml_machine(f"{H100}:2"), engine)
    service.lay(MIX)
    before, devices = service.instances, run_module(service.machine, "mig_layout", check=True, layouts=MIX)["device_names"]
    service.machine.ctl("boot")
    assert service.instances == [[], []]
    done = service.run("boot")
    assert done.returncode == 0 and done.stdout == "", done.stderr
    assert service.instances == before
    record = service.record
    assert record["result"] == "ok" and record["changed"] and record["device_names"] == devices and len(record["executed"]) == 24
    assert record["boot_id"] and record["started"] <= record["finished"] and not record["plugin_kept_off"]


def test_a_second_boot_changes_nothing(service: BootService) -> None:
    service.machine.mark()
    done = service.run("boot")
    assert (done.returncode, done.stderr) == (0, "The MIG layout is as it should be; done for it: nothing.\n")
    assert service.machine.calls() == [] and service.record["executed"] == []


def test_check_and_status_tell_and_change_nothing(service: BootService) -> None:
    assert service.run("status").returncode == 1
    assert (service.run("check").returncode, service.run("check").stderr) == (0, "The GPUs have the layout that is made at boot.\n")
    service.machine.ctl("boot")
    service.machine.mark()
    done = service.run("check")
    assert done.returncode == 1 and done.stderr.startswith("A boot would still have to enable MIG mode on GPU 0")
    assert service.machine.calls() == [] and service.instances == [[]]
    service.run("boot")
    done = service.run("status")
    assert done.returncode == 0 and json.loads(done.stdout) == service.record


def test_an_ampere_keeps_its_mode_and_gets_its_instances_back(nvml_machine: Callable[..., Machine], engine: Path) -> None:
    service = BootService(nvml_machine(A100), engine)
    service.lay([{"match": "all", "instances": "balanced"}])
    before = service.instances
    service.machine.ctl("boot")
    assert service.run("boot").returncode == 0
    assert service.instances == before and not any("MIG mode" in step for step in service.record["executed"])


def test_it_waits_for_a_driver_that_is_loaded_later(service: BootService) -> None:
    before = service.instances
    document = json.loads(service.settings.read_text())
    service.settings.write_text(json.dumps({**document, "wait_s": 30}))
    service.machine.ctl("boot")
    away = service.machine.directory.rename(service.folder / "unloaded")
    early = subprocess.Popen(service.command("boot"), env=service.machine.env, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    assert early.poll() is None
    away.rename(service.machine.directory)
    _stdout, said = early.communicate(timeout=30)
    assert early.returncode == 0, said
    assert service.instances == before


def test_a_driver_that_never_comes_is_told(service: BootService) -> None:
    service.machine.directory.rename(service.folder / "unloaded")
    done = service.run("boot")
    assert done.returncode == 1 and "the NVIDIA kernel driver is not loaded" in done.stderr
    record = service.record
    assert (record["result"], record["reason"], record["device_names"]) == ("failed", "NvmlDriverNotLoaded", None)
    assert record["sentence"] in done.stderr and record["remedy"] and record["object"]
    assert service.run("status").returncode == 1


def test_a_gpu_that_is_gone_is_told(nvml_machine: Callable[..., Machine], engine: Path) -> None:
    both = BootService(nvml_machine(f"{H100}:2"), engine)
    both.lay([{"match": "all", "instances": "whole"}])
    smaller = BootService(nvml_machine(H100), engine)
    smaller.settings.write_text(both.settings.read_text())
    gone = both.machine.show()["gpus"][1]["uuid"]
    smaller.machine.mark()
    done = smaller.run("boot")
    assert done.returncode == 1 and smaller.record["reason"] == "LayoutMatchesNothing" and gone.lower() in smaller.record["sentence"]
    assert smaller.machine.calls() == []


def test_a_failing_call_is_told_and_the_next_boot_finishes(service: BootService) -> None:
    before = service.instances
    service.machine.ctl("boot")
    service.machine.ctl("fault", "add", "--symbol", "nvmlDeviceCreateGpuInstanceWithPlacement", "--nth", "3", "--code", "UNKNOWN")
    done = service.run("boot", JOURNAL_STREAM="8:1")
    assert done.returncode == 1 and done.stderr.startswith("<3>"), "systemd takes it for an error"
    assert service.record["reason"] == "InstanceCreateFailed"
    assert service.run("boot").returncode == 0
    assert service.instances == before


def test_an_engine_that_is_killed_leaves_a_result_all_the_same(service: BootService) -> None:
    before = service.instances
    service.machine.ctl("boot")
    service.machine.ctl("fault", "add", "--symbol", "nvmlDeviceCreateGpuInstanceWithPlacement", "--nth", "2", "--kill")
    done = service.run("boot")
    assert done.returncode == 1 and service.record["reason"] == "BootEngineEnded"
    assert "was ended by signal 9" in service.record["sentence"]
    assert service.run("boot").returncode == 0
    assert service.instances == before


def test_an_engine_that_hangs_is_ended_in_time(service: BootService) -> None:
    service.settings.write_text(json.dumps({**json.loads(service.settings.read_text()), "timeout_s": 2}))
    service.machine.ctl("boot")
    service.machine.ctl("fault", "add", "--symbol", "nvmlDeviceSetMigMode", "--nth", "1", "--delay", "60")
    begin = time.monotonic()
    done = service.run("boot")
    assert time.monotonic() - begin < 15
    assert done.returncode == 1 and "did not end within 2 s" in service.record["sentence"]


def test_a_sick_gpu_is_not_partitioned_unless_that_is_asked_for(service: BootService) -> None:
    before = service.instances
    service.machine.ctl("boot")
    service.machine.ctl("set", "0", "remap-failed=on")
    assert service.run("boot").returncode == 1 and service.record["reason"] == "GpuUnhealthy"
    service.settings.write_text(json.dumps({**json.loads(service.settings.read_text()), "ignore_health": True}))
    assert service.run("boot").returncode == 0
    assert service.instances == before


def test_broken_settings_are_told(service: BootService) -> None:
    service.settings.write_text("{")
    done = service.run("boot")
    assert done.returncode == 1 and service.record["reason"] == "BootSettingsUnusable"
    assert service.run("check").returncode == 1


def test_a_result_that_cannot_be_written_does_not_hold_the_kubelet_back(service: BootService) -> None:
    (service.state_dir / "mig-boot-state.json").mkdir()
    done = service.run("boot")
    assert done.returncode == 0 and "The result could not be written" in done.stderr


def test_it_keeps_out_of_the_way_of_another_run(service: BootService) -> None:
    service.machine.ctl("boot")
    service.machine.mark()
    with (service.state_dir / "mig.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        done = service.run("boot")
    assert done.returncode == 1 and service.record["reason"] == "LayoutLocked" and "4711" in service.record["sentence"]
    assert service.machine.calls() == []
