# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a process may see and change, by the device nodes that it can open."""
from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulator.conftest import Machine

#: Minors of the capability devices by their fixed table: 15 GPU instances of 9 minors per GPU, from 3 on.
LOOK = """
result = {"gpus": [], "mig": [], "instances": []}
for index in range(nvml.nvmlDeviceGetCount()):
    gpu = device(index)
    result["gpus"].append(nvml.nvmlDeviceGetMinorNumber(gpu))
    for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)
        except nvml.NVMLError_NotFound:
            continue
        result["mig"].append([index, nvml.nvmlDeviceGetGpuInstanceId(mig)])
    for number in range(15):
        if code_of(nvml.nvmlDeviceGetGpuInstanceById, gpu, number) == 0:
            result["instances"].append([index, number])
    result["set_mode"] = code_of(nvml.nvmlDeviceSetMigMode, gpu, 1)
    result["placements"] = code_of(nvml.nvmlDeviceGetGpuInstancePossiblePlacements, gpu, 19, None, ctypes.byref(ctypes.c_uint()))
"""


def minor(gpu: int, gpu_instance: int, compute_instance: int | None = None) -> int:
    return 3 + gpu * 135 + gpu_instance * 9 + (0 if compute_instance is None else 1 + compute_instance)


def nodes(root: Path, *names: str) -> str:
    """A device folder with those files in it."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return str(root)


@pytest.fixture
def machine(nvml_machine: Callable[..., Machine]) -> Machine:
    """Two partitioned GPUs whose minors are not their indices: instances 1 and 2 (halves) on the first, 7 and 8 on the second."""
    made = nvml_machine("h100-80gb-hbm3:2", options=("--minors", "1,0"))
    made.ctl("boot")
    made.ctl("repartition", "0", "3g.40gb,3g.40gb")
    made.ctl("repartition", "1", "1g.10gb@4,1g.10gb@5")
    return made


def test_host_sees_everything(machine: Machine, tmp_path: Path) -> None:
    dev = nodes(tmp_path / "dev", "nvidiactl", "nvidia0", "nvidia1", "nvidia-caps/nvidia-cap1", "nvidia-caps/nvidia-cap2")
    assert machine.python(LOOK, NVML_EMULATOR_DEV=dev) == {
        "gpus": [1, 0], "mig": [[0, 1], [0, 2], [1, 7], [1, 8]], "instances": [[0, 1], [0, 2], [1, 7], [1, 8]],
        "set_mode": 0, "placements": 0,
    }


def test_container_sees_its_instance_and_nothing_else(machine: Machine, tmp_path: Path) -> None:
    caps = [f"nvidia-caps/nvidia-cap{number}" for number in (minor(0, 8), minor(0, 8, 0))]
    dev = nodes(tmp_path / "dev", "nvidiactl", "nvidia0", *caps)
    assert machine.python(LOOK, NVML_EMULATOR_DEV=dev) == {
        "gpus": [0], "mig": [[0, 8]], "instances": [[0, 8]], "set_mode": 4, "placements": 4,
    }
    uuids = {
        compute["uuid"]: (gpu["minor"], instance["gpu_instance_id"])
        for gpu in machine.show()["gpus"]
        for instance in gpu["instances"]
        for compute in instance["compute_instances"]
    }
    codes = machine.python(
        f"result = {{uuid: code_of(nvml.nvmlDeviceGetHandleByUUID, uuid) for uuid in {list(uuids)}}}", NVML_EMULATOR_DEV=dev
    )
    assert {uuids[uuid] for uuid, code in codes.items() if code == 0} == {(0, 8)}
    assert set(codes.values()) == {0, 6}


def test_gpu_instance_without_its_compute_instance_is_no_mig_device(machine: Machine, tmp_path: Path) -> None:
    dev = nodes(tmp_path / "dev", "nvidiactl", "nvidia0", f"nvidia-caps/nvidia-cap{minor(0, 8)}")
    seen = machine.python(LOOK, NVML_EMULATOR_DEV=dev)
    assert (seen["mig"], seen["instances"]) == ([], [[0, 8]])


def test_monitor_sees_all_and_changes_nothing(machine: Machine, tmp_path: Path) -> None:
    dev = nodes(tmp_path / "dev", "nvidiactl", "nvidia0", "nvidia1", "nvidia-caps/nvidia-cap2")
    seen = machine.python(LOOK, NVML_EMULATOR_DEV=dev)
    assert len(seen["mig"]) == 4
    assert (seen["set_mode"], seen["placements"]) == (4, 0)


def test_only_root_changes_anything(machine: Machine) -> None:
    machine.mark()
    assert machine.python("result = code_of(nvml.nvmlDeviceSetMigMode, device(), 0)", NVML_EMULATOR_UID="1000") == 4
    assert [(call["symbol"], call["rc"]) for call in machine.calls()] == [("nvmlDeviceSetMigMode", 4)]


@pytest.mark.parametrize(
    ("names", "code"),
    [
        pytest.param((), 9, id="no driver"),
        pytest.param(("nvidia0",), 9, id="no control node"),
        pytest.param(("nvidiactl",), 28, id="no GPU"),
        pytest.param(("nvidiactl", "nvidia0"), 0, id="one GPU"),
    ],
)
def test_init_by_nodes(machine: Machine, tmp_path: Path, names: tuple[str, ...], code: int) -> None:
    dev = nodes(tmp_path / "dev", *names)
    assert machine.python("result = code_of(nvml.nvmlInit)", init=False, NVML_EMULATOR_DEV=dev) == code


def test_init_without_gpus_if_the_caller_wants_so(machine: Machine, tmp_path: Path) -> None:
    dev = nodes(tmp_path / "dev", "nvidiactl")
    code = "nvml.nvmlInitWithFlags(nvml.NVML_INIT_FLAG_NO_GPUS)\nresult = nvml.nvmlDeviceGetCount()"
    assert machine.python(code, init=False, NVML_EMULATOR_DEV=dev) == 0


def test_no_machine_is_no_driver(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    (machine.directory / "state").unlink()
    assert machine.python("result = code_of(nvml.nvmlInit)", init=False) == 9
    done = machine.run([str(machine.folder / "nvidia-smi")])
    assert done.returncode == 9
    assert done.stderr.startswith("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")


@pytest.mark.skipif(os.geteuid() != 0, reason="making device nodes needs root")
def test_real_device_nodes(machine: Machine, tmp_path: Path) -> None:
    """Nodes with no kernel module behind them count as openable: the kernel judges permission first."""
    dev = tmp_path / "dev"
    machine.ctl("boot", "--dev-root", str(dev))
    names = {str(path.relative_to(dev)): path for path in dev.rglob("*") if path.is_char_device()}
    assert set(names) == {
        "nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps/nvidia-cap1", "nvidia-caps/nvidia-cap2",
    }
    numbers = {name: (os.major(path.stat().st_rdev), os.minor(path.stat().st_rdev)) for name, path in names.items()}
    assert numbers["nvidiactl"] == (195, 255)
    assert numbers["nvidia1"] == (195, 1)
    assert numbers["nvidia-caps/nvidia-cap2"] == (511, 2)
    assert stat.S_IMODE(names["nvidia-caps/nvidia-cap1"].stat().st_mode) == 0o400
    machine.ctl("repartition", "0", "1g.10gb")
    assert machine.python(LOOK, NVML_EMULATOR_DEV=str(dev))["set_mode"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_user_without_privilege_reads_only(emulator_folder: Path) -> None:
    """The state is mapped read-only then; a real user id, not NVML_EMULATOR_UID."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        shutil.copytree(emulator_folder, f"{place}/driver", symlinks=True)
        env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": f"{place}/driver", "NVML_EMULATOR_DIR": f"{place}/state"}
        subprocess.run([f"{place}/driver/nvmlctl", "create", "--gpu", "h100-80gb-hbm3"], env=env, check=True)

        def smi(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([f"{place}/driver/nvidia-smi", *arguments], env=env, user=65534, capture_output=True, text=True)

        assert smi("-L").stdout.startswith("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-")
        refused = smi("-r")
        assert (refused.returncode, refused.stdout) == (4, "Resetting GPU 00000000:19:00.0 requires root.\n")


def test_capability_files_follow_the_instances(machine: Machine) -> None:
    """As the kernel module keeps them: the minors of the table, one file per instance, nothing left behind."""
    capabilities = machine.directory.parent / "nvidia" / "capabilities"

    def files(gpu_minor: int) -> dict[str, int]:
        root = capabilities / f"gpu{gpu_minor}" / "mig"
        return {str(path.parent.relative_to(root)): int(path.read_text().split()[1]) for path in root.rglob("access")}

    assert files(1) == {
        "gi1": minor(1, 1), "gi1/ci0": minor(1, 1, 0), "gi2": minor(1, 2), "gi2/ci0": minor(1, 2, 0),
    }
    machine.python("""
        gpu = device(0)
        one = nvml.nvmlDeviceGetGpuInstanceById(gpu, 1)
        nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceGetComputeInstanceById(one, 0))
        two = nvml.nvmlDeviceGetGpuInstanceById(gpu, 2)
        nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceGetComputeInstanceById(two, 0))
        nvml.nvmlGpuInstanceDestroy(two)
    """)
    assert files(1) == {"gi1": minor(1, 1)}
    machine.python("nvml.nvmlGpuInstanceCreateComputeInstance(nvml.nvmlDeviceCreateGpuInstance(device(0), 9), 2)")
    assert files(1) == {"gi1": minor(1, 1), "gi2": minor(1, 2), "gi2/ci0": minor(1, 2, 0)}
    machine.ctl("reset", "0")
    assert files(1) == {}
    assert sorted(path.name for path in (capabilities / "gpu1" / "mig").iterdir()) == []
    table = (machine.directory.parent / "nvidia-caps" / "mig-minors").read_text().splitlines()
    assert {"config 1", "monitor 2", f"gpu1/gi2/access {minor(1, 2)}", f"gpu1/gi2/ci0/access {minor(1, 2, 0)}"} <= set(table)
    access = (capabilities / "mig" / "config").read_text()
    assert access == "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n"
