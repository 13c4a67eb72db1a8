# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nvidia-smi says: the queries that are run, and their output taken apart. Run as root, nvidia-smi makes missing device nodes, as it always does."""
from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SECONDS = 30  # one call; GPUs without persistence mode take seconds each to wake
NOT_GIVEN = ("", "[n/a]", "n/a", "[not supported]", "not supported", "[unknown error]", "[insufficient permissions]")
FIELDS = (
    "index", "uuid", "name", "pci.bus_id", "pci.device_id", "pci.sub_device_id", "driver_version", "memory.total", "compute_cap", "mig.mode.current",
    "mig.mode.pending", "ecc.mode.current", "ecc.mode.pending", "ecc.errors.uncorrected.volatile.total", "ecc.errors.uncorrected.aggregate.total",
)

_PROFILE = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)/(\d+)\s+([\d.]+)\s+\S+\s+(\d+)\s+(\d+)\s+(\d+)\s+\|")
_PROFILE_SECOND = re.compile(r"\|\s+(\d+)\s+(\d+)\s+(\d+)\s+\|")
_PLACEMENTS = re.compile(r"GPU\s+(\d+) Profile ID\s+(\d+) Placements?\s*:\s*\{([\d,]+)\}:(\d+)")
_GPU_INSTANCE = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s+\|")
_COMPUTE_INSTANCE = re.compile(r"\|\s+(\d+)\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s+\|")


@dataclass
class Smi:
    """What was read; a part that nvidia-smi would not give is None. ``silent`` says what was not given, and why.

    ``gpus``: per GPU index the fields that it knows. ``details``: per PCI bus id the report of -q. ``profiles``, ``placements``: per (GPU index, profile id).
    ``gpu_instances``, ``compute_instances``: sorted rows.
    """

    gpus: dict[int, dict[str, str]] | None = None
    details: dict[str, dict[str, Any]] | None = None
    profiles: dict[tuple[int, int], dict[str, Any]] | None = None
    placements: dict[tuple[int, int], list[tuple[int, int]]] | None = None
    gpu_instances: list[dict[str, Any]] | None = None
    compute_instances: list[dict[str, Any]] | None = None
    silent: dict[str, str] = field(default_factory=dict)


def read(program: str) -> Smi:
    """Run every query of nvidia-smi and return what it says. ``program`` is its name or path; without it everything is silent."""
    found = Smi()
    if shutil.which(program) is None:
        found.silent["nvidia-smi"] = f"there is no {program}"
        return found
    found.gpus = _gpus(program, found)
    found.details = _asked(program, ["-q"], found, parse_report)
    found.profiles = _asked(program, ["mig", "-lgip"], found, parse_profiles)
    found.placements = _asked(program, ["mig", "-lgipp"], found, parse_placements)
    found.gpu_instances = _asked(program, ["mig", "-lgi"], found, parse_gpu_instances, nothing="No GPU instances found", empty=[])
    found.compute_instances = _asked(program, ["mig", "-lci"], found, parse_compute_instances, nothing="No compute instances found", empty=[])
    return found


def _run(program: str, arguments: Sequence[str]) -> tuple[int, str]:
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def _asked(program: str, arguments: list[str], found: Smi, parse: Any, nothing: str | None = None, empty: Any = None) -> Any:
    """Return what ``parse`` makes of one call's output; ``empty`` where it says ``nothing``, None (and a note in ``silent``) where it gives nothing."""
    status, output = _run(program, arguments)
    if status == 0:
        return parse(output)
    if nothing is not None and nothing.lower() in output.lower():
        return empty
    found.silent[" ".join(arguments)] = _why(status, output)
    return None


def _why(status: int, output: str) -> str:
    """Return what nvidia-smi gives as its reason, as one short line."""
    return f"{output.strip().splitlines()[0][:100]} (status {status})" if output.strip() else f"status {status}"


def _gpus(program: str, found: Smi) -> dict[int, dict[str, str]] | None:
    """Return the fields of every GPU; releases differ in the fields they know, so refused ones are left out one by one."""
    fields = list(FIELDS)
    while fields:
        status, output = _run(program, [f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"])
        if status == 0:
            return parse_fields(fields, output)
        refused = next((name for name in fields if f'"{name}"' in output), None)
        if refused is None:
            found.silent["--query-gpu"] = _why(status, output)
            return None
        found.silent[refused] = "this nvidia-smi has no such field"
        fields.remove(refused)
    return None


def parse_fields(fields: Sequence[str], output: str) -> dict[int, dict[str, str]]:
    """Return {index: {field: text}} of ``--query-gpu`` as csv without header and units."""
    rows = [dict(zip(fields, (cell.strip() for cell in row), strict=True)) for row in csv.reader(output.splitlines()) if row]
    return {int(row["index"]): row for row in rows}


def parse_report(output: str) -> dict[str, dict[str, Any]]:
    """Return {PCI bus id: nested mapping} of ``-q``; each deeper indentation is a mapping under the line before it."""
    found: dict[str, dict[str, Any]] = {}
    stack: list[tuple[int, dict[str, Any]]] = []
    for line in output.splitlines():
        if line.startswith("GPU "):
            stack = [(0, found.setdefault(line[4:].strip().lower(), {}))]
        elif stack and line.strip():
            depth = len(line) - len(line.lstrip())
            while len(stack) > 1 and depth <= stack[-1][0]:
                stack.pop()
            key, colon, value = (part.strip() for part in line.partition(" : "))
            if colon:
                stack[-1][1][key] = value
            else:
                section: dict[str, Any] = {}
                stack[-1][1][key] = section
                stack.append((depth, section))
    return found


def parse_profiles(output: str) -> dict[tuple[int, int], dict[str, Any]]:
    """Return {(GPU index, profile id): name, count, memory in GiB as printed, SMs and engines} of ``mig -lgip``; each profile takes two lines."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    last: dict[str, Any] | None = None
    for line in output.splitlines():
        first, second = _PROFILE.match(line), _PROFILE_SECOND.match(line)
        if first:
            gpu, name, profile_id, _free, total, memory, multiprocessors, decoders, encoders = first.groups()
            last = {"name": name.lower(), "count": int(total), "memory": memory, "multiprocessors": int(multiprocessors), "decoders": int(decoders),
                    "encoders": int(encoders)}
            found[int(gpu), int(profile_id)] = last
        elif second and last is not None:
            last.update(zip(("copy_engines", "jpeg_engines", "ofa_engines"), map(int, second.groups()), strict=True))
            last = None
    return found


def parse_placements(output: str) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return {(GPU index, profile id): [(start, size), ...]} of ``mig -lgipp``."""
    return {
        (int(gpu), int(profile_id)): sorted((int(start), int(size)) for start in starts.split(","))
        for gpu, profile_id, starts, size in _PLACEMENTS.findall(output)
    }


def parse_gpu_instances(output: str) -> list[dict[str, Any]]:
    """Return the rows of ``mig -lgi``, sorted."""
    rows = [(int(gpu), int(instance), name.lower(), int(profile_id), int(start), int(size))
            for gpu, name, profile_id, instance, start, size in _GPU_INSTANCE.findall(output)]
    return [dict(zip(("gpu", "gpu_instance_id", "profile", "profile_id", "start", "size"), row, strict=True)) for row in sorted(rows)]


def parse_compute_instances(output: str) -> list[dict[str, Any]]:
    """Return the rows of ``mig -lci``, sorted. Their names are left out: drivers print one name for two profiles."""
    rows = [(int(gpu), int(instance), int(compute), int(profile_id), int(start), int(size))
            for gpu, instance, _name, profile_id, compute, start, size in _COMPUTE_INSTANCE.findall(output)]
    return [dict(zip(("gpu", "gpu_instance_id", "compute_instance_id", "profile_id", "start", "size"), row, strict=True)) for row in sorted(rows)]
