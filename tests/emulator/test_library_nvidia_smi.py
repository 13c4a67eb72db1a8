# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvidia-smi's queries. The expected tables are laid out as published output of real ones with recent drivers."""
from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.emulator.conftest import Machine

HOPPER, BLACKWELL, WITHOUT_MIG = "h100-80gb-hbm3", "rtx-pro-6000-server", "l40s"
PROFILES_HEAD = """\
+-------------------------------------------------------------------------------+
| GPU instance profiles:                                                        |
| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                                Free/Total   GiB              CE    JPEG  OFA  |
|===============================================================================|
"""
H100_PROFILES = PROFILES_HEAD + """\
|   0  MIG 1g.10gb         19     7/7        9.75       No     16     1     0   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.10gb+me      20     1/1        9.75       No     16     1     0   |
|                                                               1     1     1   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.20gb         15     4/4        19.62      No     26     1     0   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 2g.20gb         14     3/3        19.62      No     32     2     0   |
|                                                               2     2     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 3g.40gb          9     2/2        39.50      No     60     3     0   |
|                                                               3     3     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 4g.40gb          5     1/1        39.50      No     64     4     0   |
|                                                               4     4     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 7g.80gb          0     1/1        79.25      No     132    7     0   |
|                                                               8     7     1   |
+-------------------------------------------------------------------------------+
"""
H100_PLACEMENTS = """\
GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 15 Placements: {0,2,4,6}:2
GPU  0 Profile ID 14 Placements: {0,2,4}:2
GPU  0 Profile ID  9 Placements: {0,4}:4
GPU  0 Profile ID  5 Placement : {0}:4
GPU  0 Profile ID  0 Placement : {0}:8
"""
INSTANCES = """\
+---------------------------------------------------------+
| GPU instances:                                          |
| GPU   Name               Profile  Instance   Placement  |
|                            ID       ID       Start:Size |
|=========================================================|
|   0  MIG 2g.20gb           14        3          4:2     |
+---------------------------------------------------------+
|   0  MIG 3g.40gb            9        2          0:4     |
+---------------------------------------------------------+
"""
COMPUTE_INSTANCES = """\
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   0      3       MIG 1c.2g.20gb       0         0          0:1     |
+--------------------------------------------------------------------+
|   0      3       MIG 1c.2g.20gb       0         1          1:1     |
+--------------------------------------------------------------------+
|   0      2       MIG 3g.40gb          2         0          0:3     |
+--------------------------------------------------------------------+
"""


def smi(machine: Machine, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return machine.run([str(machine.folder / "nvidia-smi"), *arguments], **env)


def test_profiles_and_placements(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER, BLACKWELL)
    machine.ctl("mode", "0", "on")
    assert smi(machine, "mig", "-lgip", "-i", "0").stdout == H100_PROFILES
    assert smi(machine, "mig", "--list-gpu-instance-profiles", "-i", "0").stdout == H100_PROFILES
    assert smi(machine, "mig", "-i", "0", "-lgipp").stdout == H100_PLACEMENTS
    whole = smi(machine, "mig", "-lgip").stdout
    assert whole.startswith(H100_PROFILES) and whole.count("GPU instance profiles") == 1
    assert "|   1  MIG 1g.24gb+me.all  65     0/1        23.62      No     46     4     4   |\n" in whole, "without MIG mode nothing is free"
    assert "GPU  1 Profile ID  0 Placement : {0}:12\n" in smi(machine, "mig", "-lgipp").stdout


def test_instances(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    machine.ctl("repartition", "0", "3g.40gb@0,2g.20gb@4")
    machine.python("""
        instance = nvml.nvmlDeviceGetGpuInstanceById(device(), 3)
        nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0))
        for _ in range(2):
            nvml.nvmlGpuInstanceCreateComputeInstance(instance, 0)
    """)
    assert smi(machine, "mig", "-lgi").stdout == INSTANCES
    assert smi(machine, "mig", "-lci").stdout == COMPUTE_INSTANCES
    free = {line.split()[3]: line.split()[5] for line in smi(machine, "mig", "-lgip").stdout.splitlines() if " MIG " in line}
    assert free == {"1g.10gb": "1/7", "1g.10gb+me": "1/1", "1g.20gb": "1/4", "2g.20gb": "0/3", "3g.40gb": "0/2", "4g.40gb": "0/1", "7g.80gb": "0/1"}


def test_nothing_to_list(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER, WITHOUT_MIG)

    def said(*arguments: str) -> tuple[int, str]:
        done = smi(machine, "mig", *arguments)
        return done.returncode, done.stdout

    assert said("-lgi") == said("-lci") == (6, "No MIG-enabled devices found.\n")
    assert said("-lgip", "-i", "1") == (6, "No MIG-supported devices found.\n")
    machine.ctl("mode", "0", "on")
    assert said("-lgi") == (6, "No GPU instances found: Not Found\n")
    assert said("-lci") == (6, "No compute instances found: Not Found\n")


def test_placements_are_not_for_everybody(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    (machine.directory.parent / "dev").mkdir()
    for name in ("nvidiactl", "nvidia0"):
        (machine.directory.parent / "dev" / name).touch()
    done = smi(machine, "mig", "-lgipp", NVML_EMULATOR_DEV=str(machine.directory.parent / "dev"))
    assert (done.returncode, done.stdout) == (4, "Unable to get possible placements for GPU  0 Profile ID 19: Insufficient Permissions\n")


def test_fields(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER, WITHOUT_MIG)
    machine.ctl("mode", "0", "on")
    uuid = machine.show()["gpus"][0]["uuid"]
    fields = "index,uuid,name,pci.bus_id,driver_version,memory.total,mig.mode.current,mig.mode.pending"
    table = smi(machine, f"--query-gpu={fields}", "--format=csv", "-i", "0").stdout
    assert table == (
        "index, uuid, name, pci.bus_id, driver_version, memory.total [MiB], mig.mode.current, mig.mode.pending\n"
        f"0, {uuid}, NVIDIA H100 80GB HBM3, 00000000:19:00.0, 595.91.07, 81559 MiB, Enabled, Enabled\n"
    )
    assert smi(machine, "--query-gpu=index,memory.total,mig.mode.current", "--format=csv,noheader,nounits").stdout.splitlines() == [
        "0, 81559, Enabled", f"1, {machine.python('result = nvml.nvmlDeviceGetMemoryInfo(device(1)).total >> 20')}, [N/A]",
    ]
    machine.ctl("set", "0", "ecc=off")
    more = "pci.device_id,pci.sub_device_id,compute_cap,ecc.mode.current,ecc.mode.pending,ecc.errors.uncorrected.volatile.total"
    row = smi(machine, f"--query-gpu={more}", "--format=csv,noheader", "-i", "0").stdout.strip().split(", ")
    assert (row[0], row[2:]) == ("0x233010DE", ["9.0", "Disabled", "Enabled", "[N/A]"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--query-gpu=index,colour", "--format=csv"), 'Field "colour" is not a valid field to query.'),
        (("--query-gpu=index",), '"--format=" switch is missing'),
        (("mig",), "Invalid combination of input arguments: mig."),
        (("mig", "-cgi"), "Invalid combination of input arguments: mig -cgi."),
        (("mig", "-lgi", "19"), "Invalid combination of input arguments: 19."),
    ],
)
def test_what_it_does_not_know(nvml_machine: Callable[..., Machine], arguments: tuple[str, ...], words: str) -> None:
    done = smi(nvml_machine(HOPPER), *arguments)
    assert done.returncode == 2
    assert words in done.stdout + done.stderr
