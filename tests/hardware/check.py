# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compares what this collection reads of the GPUs of this machine with nvidia-smi, with the offline tables and with nvml.h (see README.md).

Reads only. Ends with status 0 when nothing differs, 1 when something does, 2 when there is no GPU to look at.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / ".build" / "collections")]

from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.codes import NvmlError
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.inventory import survey
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.session import NvmlSession
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.hardware import abi, against_smi, smi
from tests.hardware.against_table import judge_table
from tests.hardware.readonly import make_read_only
from tests.hardware.rows import DIFFERS, Row, table


class NothingToCheck(Exception):
    """There is no GPU, or no way to it; the text says why."""


def check(driver_root: str, pynvml_path: str | None, program: str) -> dict[str, Any]:
    """Return the facts, the rows, what was seen besides, and the NVML functions that were used. Raises NothingToCheck."""
    try:
        library = make_read_only(driver_root, pynvml_path)
        with NvmlSession(driver_root, pynvml_path) as session:
            document = survey(session)
            if not document["gpus"]:
                raise NothingToCheck("NVML lists no GPU on this machine")
            printed = smi.read(program)
            import pynvml

            capable = [gpu["index"] for gpu in document["gpus"] if gpu["mig"]["capable"]]
            rows = [
                *(Row(f"GPU {gpu['index']} answers", DIFFERS, gpu["error"]) for gpu in document["unreadable_gpus"]),
                *against_smi.judge_fields(document, printed), *against_smi.judge_report(document, printed),
                *against_smi.judge_profiles(document, printed), *against_smi.judge_instances(document, printed),
                *judge_table(document), *abi.judge_wrapper(pynvml), *(row for index in capable for row in abi.judge_driver(pynvml, index)),
            ]
            seen = [line for index in capable for line in abi.answers(pynvml, index)]
    except (FleetError, NvmlError, ImportError) as error:
        raise NothingToCheck(str(error)) from error
    return {"facts": document, "rows": rows, "seen": seen, "functions": sorted(library.used)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver-root", default="/", help="where the driver is installed; /run/nvidia/driver for a driver container")
    parser.add_argument("--pynvml", help="folder or archive with pynvml.py, when it is not installed")
    parser.add_argument("--nvidia-smi", default="nvidia-smi", metavar="PROGRAM")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the facts, the rows and what was seen to this file")
    options = parser.parse_args(arguments)
    begin = time.monotonic()
    try:
        found = check(options.driver_root, options.pynvml, options.nvidia_smi)
    except NothingToCheck as error:
        print(f"Nothing was checked: {error}")
        return 2
    if options.json is not None:
        plain = {**found, "rows": [dataclasses.asdict(row) for row in found["rows"]]}
        options.json.write_text(json.dumps(plain, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    facts, differing = found["facts"], any(row.verdict == DIFFERS for row in found["rows"])
    print(f"driver {facts['driver_version']}, NVML {facts['nvml_version']}, {facts['library']}")
    print("\n".join(f"GPU {gpu['index']}: {gpu['product']}, {gpu['pci_device_id']}, {gpu['memory_mib']} MiB" for gpu in facts["gpus"]) + "\n")
    print(table(found["rows"]))
    print("\n" + "\n".join(found["seen"]))
    print(f"\n{len(found['functions'])} NVML functions were called, all of them queries; {time.monotonic() - begin:.0f} seconds")
    return int(differing)


if __name__ == "__main__":
    sys.exit(main())
