# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Makes the machine from which a transition starts."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.nvml.control.library import RESET_REQUIRED, Emulator
from tests.emulator.faults.transitions import OFF, Transition

_PID = 4711
_CLIENTS = {"*": "compute", "!": "unlisted"}


class _Part(NamedTuple):
    """A GPU instance to be.

    ``division`` is None for one compute instance over all of it, else (slices, start) of each. ``client`` is the kind of one that uses it.
    """

    profile: str
    start: int
    division: tuple[tuple[int, int], ...] | None
    client: str | None


def build_machine(transition: Transition, folder: Path) -> Emulator:
    """Return the machine as the transition finds it, made in ``folder``, which must not exist."""
    folder.mkdir(parents=True)
    emulator = Emulator(str(folder))
    emulator.create("faults", [model for model, _content in transition.gpus], None)
    for index, (_model, content) in enumerate(transition.gpus):
        if content != OFF:
            parts = [_parse(word) for word in content.split()]
            emulator.set_mode(index, True)
            emulator.repartition(index, [(part.profile, part.start) for part in parts])
            divided = [(part.start, part.division) for part in parts if part.division is not None]
            if divided:
                _in_child(lambda index=index, divided=divided: _divide(index, dict(divided)))
            busy = {part.start: part.client for part in parts if part.client is not None}
            for instance in emulator.show()["gpus"][index]["instances"]:
                kind = busy.get(instance["start"])
                if kind is not None:
                    compute = None if kind == "unlisted" else instance["compute_instances"][0]["compute_instance_id"]
                    emulator.add_client(index, pid=_PID, kind=kind, gpu_instance=instance["gpu_instance_id"], compute_instance=compute)
        if transition.after_reset:
            emulator.set_knob(index, "activation", RESET_REQUIRED)
    return emulator


def _parse(word: str) -> _Part:
    """Return the part that a word such as ``3g.40gb@4:2c@0+1c@2*`` means."""
    client = _CLIENTS.get(word[-1])
    place, colon, division = word.rstrip("*!").partition(":")
    profile, _at, start = place.partition("@")
    if not colon:
        return _Part(profile, int(start), None, client)
    pieces = [] if division == "-" else [piece.split("c@") for piece in division.split("+")]
    return _Part(profile, int(start), tuple((int(slices), int(at)) for slices, at in pieces), client)


def _in_child(work: Callable[[], None]) -> None:
    """NVML stays closed in this process, from which the runs are forked."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("the machine could not be made")


def _divide(gpu: int, divisions: dict[int, tuple[tuple[int, int], ...]]) -> None:
    """Replace the compute instance of the GPU instances at these starts."""
    import pynvml as nvml

    nvml.nvmlInit()
    device = nvml.nvmlDeviceGetHandleByIndex(gpu)
    for gpu_instance_id in range(16):
        try:
            instance = nvml.nvmlDeviceGetGpuInstanceById(device, gpu_instance_id)
        except nvml.NVMLError:
            continue
        division = divisions.get(nvml.nvmlGpuInstanceGetInfo(instance).placement.start)
        if division is None:
            continue
        nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0))
        for slices, start in division:
            profile_id = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}[slices]
            place: Any = nvml.c_nvmlComputeInstancePlacement_t(start, slices)
            nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement(instance, profile_id, ctypes.byref(place))
    nvml.nvmlShutdown()
