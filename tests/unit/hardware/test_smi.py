# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvidia-smi's output taken apart, in the form in which boards print it, and nvidia-smi that is missing, old or silent."""
from __future__ import annotations

from pathlib import Path

from tests.hardware import smi

LGIP = """\
+-------------------------------------------------------------------------------+
| GPU instance profiles:                                                        |
| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                                Free/Total   GiB              CE    JPEG  OFA  |
|===============================================================================|
|   0  MIG 1g.10gb         19     4/7        9.75       No     16     1     0   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.10gb+me      20     1/1        9.75       No     16     1     0   |
|                                                               1     1     1   |
+-------------------------------------------------------------------------------+
|   1  MIG 1g.24gb+me.all  65     1/1        23.62      No     46     4     4   |
|                                                               1     4     1   |
+-------------------------------------------------------------------------------+
|   1  MIG 1g.24gb-me      67     4/4        23.62      No     46     0     0   |
|                                                               1     0     0   |
+-------------------------------------------------------------------------------+
"""
LGIPP = """\
GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID  9 Placements: {0,4}:4
GPU  0 Profile ID  5 Placement : {0}:4
GPU 10 Profile ID 65 Placements: {0,3,6,9}:3
"""
LGI = """\
+---------------------------------------------------------+
| GPU instances:                                          |
| GPU   Name               Profile  Instance   Placement  |
|                            ID       ID       Start:Size |
|=========================================================|
|   0  MIG 1g.10gb           19       13          6:1     |
+---------------------------------------------------------+
|   0  MIG 3g.40gb            9        2          0:4     |
+---------------------------------------------------------+
"""
LCI = """\
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   0     13       MIG 1g.10gb          0         0          0:1     |
+--------------------------------------------------------------------+
|   0      2       MIG 1c.3g.40gb       0         1          1:1     |
+--------------------------------------------------------------------+
"""
REPORT = """\

==============NVSMI LOG==============

Driver Version                            : 580.105.08
CUDA Version                              : 13.0

Attached GPUs                             : 2
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    Minor Number                          : 3
    GPU Recovery Action                   : None
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 2
        Pending                           : No
        Remapping Failure Occurred        : No
        Bank Remap Availability Histogram
            Max                           : 2560 bank(s)
    Temperature
        GPU Current Temp                  : 30 C
GPU 00000000:43:00.0
    Minor Number                          : 1
    Remapped Rows                         : N/A
"""


def test_profiles_take_two_lines_each() -> None:
    found = smi.parse_profiles(LGIP)
    assert sorted(found) == [(0, 19), (0, 20), (1, 65), (1, 67)]
    assert found[0, 19] == {"name": "1g.10gb", "count": 7, "memory": "9.75", "multiprocessors": 16, "decoders": 1, "encoders": 0, "copy_engines": 1,
                            "jpeg_engines": 1, "ofa_engines": 0}
    assert found[0, 20]["ofa_engines"] == 1
    assert (found[1, 65]["name"], found[1, 65]["jpeg_engines"]) == ("1g.24gb+me.all", 4)
    assert found[1, 67]["name"] == "1g.24gb-me"


def test_placements_come_in_the_singular_too() -> None:
    assert smi.parse_placements(LGIPP) == {
        (0, 19): [(start, 1) for start in range(7)], (0, 9): [(0, 4), (4, 4)], (0, 5): [(0, 4)], (10, 65): [(0, 3), (3, 3), (6, 3), (9, 3)],
    }


def test_instances() -> None:
    assert [(row["profile"], row["gpu_instance_id"], row["start"], row["size"]) for row in smi.parse_gpu_instances(LGI)] == \
        [("3g.40gb", 2, 0, 4), ("1g.10gb", 13, 6, 1)]
    assert [(row["gpu_instance_id"], row["compute_instance_id"], row["profile_id"], row["start"]) for row in smi.parse_compute_instances(LCI)] == \
        [(2, 1, 0, 1), (13, 0, 0, 0)]


def test_the_report_is_nested_by_indentation() -> None:
    found = smi.parse_report(REPORT)
    assert sorted(found) == ["00000000:1b:00.0", "00000000:43:00.0"]
    first = found["00000000:1b:00.0"]
    assert (first["Minor Number"], first["GPU Recovery Action"], first["MIG Mode"]["Pending"]) == ("3", "None", "Enabled")
    assert first["Remapped Rows"]["Uncorrectable Error"] == "2"
    assert first["Remapped Rows"]["Bank Remap Availability Histogram"] == {"Max": "2560 bank(s)"}
    assert "Max" not in first and "GPU Current Temp" not in first["Remapped Rows"]
    assert found["00000000:43:00.0"]["Remapped Rows"] == "N/A"


def program(folder: Path, script: str) -> str:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_fields_that_this_release_does_not_know_are_left_out(tmp_path: Path) -> None:
    found = smi.read(program(tmp_path, """
case "$1" in
*compute_cap*) echo 'Field "compute_cap" is not a valid field to query.'; exit 2 ;;
--query-gpu=*) fields=${1#*=}; echo "$fields" | tr , '\\n' | sed 's/^index$/0/' | paste -sd, ;;
*) exit 6 ;;
esac"""))
    assert found.gpus is not None and sorted({"index", *found.gpus[0]}) == sorted(set(smi.FIELDS) - {"compute_cap"})
    assert found.gpus[0]["uuid"] == "uuid"
    assert found.silent["compute_cap"] == "this nvidia-smi has no such field"
    assert found.silent["-q"] == "status 6"


def test_no_instances_is_an_answer_and_no_mig_is_none(tmp_path: Path) -> None:
    found = smi.read(program(tmp_path, """
case "$*" in
*-lgi) echo 'No GPU instances found: Not Found'; exit 6 ;;
*) echo 'No MIG-enabled devices found.'; exit 6 ;;
esac"""))
    assert found.gpu_instances == []
    assert found.compute_instances is None
    assert found.silent["mig -lci"] == "No MIG-enabled devices found. (status 6)"


def test_without_nvidia_smi_everything_is_silent() -> None:
    found = smi.read("/nowhere/nvidia-smi")
    assert found == smi.Smi(silent={"nvidia-smi": "there is no /nowhere/nvidia-smi"})
