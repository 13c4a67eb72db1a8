# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvmlctl, nvidia-smi and the build."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.nvml.build import build
from tests.emulator.conftest import Machine
from tests.emulator.listings import BOARDS


def refuse(machine: Machine, *arguments: str) -> str:
    """Run nvmlctl, which must refuse with exit status 2 and one sentence; returns that."""
    done = machine.run([str(machine.folder / "nvmlctl"), *arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("nvmlctl: ") and done.stderr.endswith(".\n")
    return done.stderr


def test_unknown_model_names_the_known_ones_and_makes_nothing(nvml_machine: Callable[..., Machine], tmp_path: Path) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    before = (machine.directory / "state").read_bytes()
    message = refuse(machine, "create", "--replace", "--gpu", "h100-80gb-hbm3", "--gpu", "h999")
    assert "Unknown GPU model h999" in message
    assert all(model in message for model in BOARDS)
    assert (machine.directory / "state").read_bytes() == before
    refuse(machine, "--dir", str(tmp_path / "new"), "create", "--gpu", "h999")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("create", "--gpu", "h200-nvl"), "There is a machine in"),
        (("create", "--replace", "--gpu", "h200-nvl:17"), "at most 16 GPUs"),
        (("create", "--replace", "--gpu", "h200-nvl:x"), "'x' is not a number"),
        (("create", "--replace", "--gpu", "h200-nvl:2", "--minors", "1,1"), "2 different numbers"),
        (("repartition", "0", "3g.71gb"), "it offers 1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb"),
        (("repartition", "0", "3g.40gb@0,4g.40gb@0"), "do not fit"),
        (("repartition", "7", "3g.40gb"), "There is no GPU 7"),
        (("destroy", "0", "5"), "no GPU instance 5"),
        (("set", "0", "held=maybe"), "held=off|on"),
        (("--dir", "/nonexistent", "show"), "there is no machine in /nonexistent"),
        (("--library", "/usr/lib/x86_64-linux-gnu/libc.so.6", "show"), "is not the NVML emulator"),
        (("--library", "/nonexistent.so", "show"), "Cannot load the emulator's library"),
    ],
)
def test_refusals(nvml_machine: Callable[..., Machine], arguments: tuple[str, ...], words: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("repartition", "0", "2g.20gb@4")
    assert words in refuse(machine, *arguments)
    assert machine.layout() == [("2g.20gb", 4)]


def test_repartition_and_destroy(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    uuid = machine.show()["gpus"][1]["uuid"]
    machine.ctl("repartition", uuid, "3g.40gb@0,1g.10gb@6,2G.20GB")
    assert machine.layout(1) == [("3g.40gb", 0), ("2g.20gb", 4), ("1g.10gb", 6)]
    machine.ctl("destroy", "1", "2")
    assert ("3g.40gb", 0) not in machine.layout(1)
    machine.ctl("mode", "1", "off")
    assert machine.layout(1) == []
    assert machine.layout(0) == []


def test_models_are_listed(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h200-nvl")
    listed = {model["model"]: model["memory_mib"] for model in json.loads(machine.ctl("models", "--json"))}
    assert listed == {"l40s": 46068, **{model: board.memory_mib for model, board in BOARDS.items()}}
    assert [line.split()[0] for line in machine.ctl("models").splitlines()] == list(listed)


def test_boot_writes_the_proc_tree(nvml_machine: Callable[..., Machine], tmp_path: Path) -> None:
    machine = nvml_machine("h200-nvl:2", options=("--minors", "4,2"))
    machine.ctl("boot", "--proc-root", str(tmp_path / "driver" / "nvidia"))
    root = tmp_path / "driver"
    assert "595.91.07" in (root / "nvidia" / "version").read_text()
    information = (root / "nvidia" / "gpus" / "0000:3b:00.0" / "information").read_text()
    assert re.search(r"^Device Minor: +2$", information, re.MULTILINE)
    assert (root / "nvidia" / "capabilities" / "gpu4" / "mig").is_dir()
    assert (root / "nvidia-caps" / "mig-minors").exists()
    assert machine.show()["boots"] == 2


@pytest.mark.parametrize(("flavour", "words"), [("open", "NVIDIA UNIX Open Kernel Module for x86_64"), ("proprietary", "NVIDIA UNIX x86_64 Kernel Module")])
def test_a_module_of_another_version_is_named_and_the_library_refuses_it(
    nvml_machine: Callable[..., Machine], tmp_path: Path, flavour: str, words: str
) -> None:
    machine = nvml_machine("h200-nvl")
    machine.ctl("boot", "--proc-root", str(tmp_path / "nvidia"), "--module-version", "580.173.02", "--flavour", flavour)
    assert (tmp_path / "nvidia" / "version").read_text() == f"NVRM version: {words}  580.173.02  Release Build  (emulated)\n"
    done = machine.run([str(machine.folder / "nvidia-smi"), "-L"])
    assert (done.returncode, "Driver/library version mismatch" in done.stdout + done.stderr) == (18, True)
    machine.ctl("boot", "--proc-root", str(tmp_path / "nvidia"))
    assert "595.91.07" in (tmp_path / "nvidia" / "version").read_text()
    assert machine.run([str(machine.folder / "nvidia-smi"), "-L"]).returncode == 0


def test_a_module_version_that_the_state_cannot_hold_is_refused(nvml_machine: Callable[..., Machine], tmp_path: Path) -> None:
    machine = nvml_machine("h200-nvl")
    assert "load the kernel module" in refuse(machine, "boot", "--proc-root", str(tmp_path), "--module-version", "5" * 32)
    assert machine.show()["boots"] == 1


def test_nvidia_smi(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3", "a100-80gb-pcie")
    machine.ctl("repartition", "0", "3g.40gb@4,1g.10gb+me@0")
    gpus = machine.show()["gpus"]
    mig = {item["profile"]: item["compute_instances"][0]["uuid"] for item in gpus[0]["instances"]}

    def smi(*arguments: str) -> str:
        done = machine.run([str(machine.folder / "nvidia-smi"), *arguments])
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert smi("-L") == (
        f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {gpus[0]['uuid']})\n"
        f"  MIG 3g.40gb     Device  0: (UUID: {mig['3g.40gb']})\n"
        f"  MIG 1g.10gb+me  Device  1: (UUID: {mig['1g.10gb+me']})\n"
        f"GPU 1: NVIDIA A100 80GB PCIe (UUID: {gpus[1]['uuid']})\n"
    )
    assert smi("--version").splitlines() == [
        "NVIDIA-SMI version  : 595.91.07", "NVML version        : 13.595.91.07", "DRIVER version      : 595.91.07", "CUDA Version        : 13.2",
    ]
    assert "81559MiB Enabled" in smi() and "81920MiB Disabled" in smi()
    query = smi("-q")
    assert query.count("Product Name") == 2
    assert re.search(r"Attached GPUs +: 2\n", query)
    assert machine.run([str(machine.folder / "nvidia-smi"), "--bogus"]).returncode == 2


def test_build_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator_folder: Path) -> None:
    assert build() == emulator_folder
    modified = (emulator_folder / "libnvidia-ml.so.1").stat().st_mtime_ns
    assert (build() / "libnvidia-ml.so.1").stat().st_mtime_ns == modified
    monkeypatch.setenv("GPUFLEET_SANDBOX_CACHE", str(tmp_path))
    fresh = build()
    assert fresh.parent == tmp_path / "artifacts"
    assert (fresh / "nvmlctl").read_bytes() == (emulator_folder / "nvmlctl").read_bytes()
    assert sorted(path.name for path in fresh.parent.iterdir()) == sorted([fresh.name, "nvml.lock"])
