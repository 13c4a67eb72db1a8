# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A process may die between any two instructions: the machine is then the one before the call or the one after it."""
from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.emulator.conftest import PRELUDE, Machine

PTRACE_SINGLESTEP = 9
#: Traced by the test; stops before and after the calls that it steps through.
TRACED = PRELUDE + """
import signal
nvml.nvmlInit()
gpu = device()
instance, compute, place = nvml.c_nvmlGpuInstance_t(), nvml.c_nvmlComputeInstance_t(), placement(4, 4)
library = nvml.nvmlLib
library.nvmlDeviceCreateGpuInstanceWithPlacement, library.nvmlGpuInstanceCreateComputeInstance
library.nvmlComputeInstanceDestroy, library.nvmlGpuInstanceDestroy
if ctypes.CDLL(None).ptrace(0, 0, None, None) != 0:
    os._exit(77)
os.kill(os.getpid(), signal.SIGSTOP)
assert library.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, place, ctypes.byref(instance)) == 0
assert library.nvmlGpuInstanceCreateComputeInstance(instance, 2, ctypes.byref(compute)) == 0
assert library.nvmlComputeInstanceDestroy(compute) == 0
assert library.nvmlGpuInstanceDestroy(instance) == 0
os.kill(os.getpid(), signal.SIGSTOP)
"""
HEADER = struct.Struct("IIIIII")  # magic, layout, size of file and bank, active bank, changes; the two banks follow


def step(process: subprocess.Popen[str]) -> Iterator[None]:
    """Let the process run one instruction at a time until it stops itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    while True:
        if libc.ptrace(PTRACE_SINGLESTEP, process.pid, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
        _pid, status = os.waitpid(process.pid, 0)
        assert os.WIFSTOPPED(status), f"the traced process ended with {status}"
        if os.WSTOPSIG(status) != signal.SIGTRAP:
            return
        yield


def valid_bank(state: mmap.mmap) -> bytes:
    """The bytes of the bank that counts."""
    _magic, _layout, _file_size, size, active, _changes = HEADER.unpack_from(state)
    return state[HEADER.size + active * size : HEADER.size + (active + 1) * size]


def test_every_instruction_leaves_the_old_or_the_new_machine(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("mode", "0", "on")
    process = subprocess.Popen([sys.executable, "-c", TRACED], env=machine.env, text=True)
    try:
        _pid, status = os.waitpid(process.pid, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 77:
            pytest.skip("tracing is not allowed here")
        assert os.WIFSTOPPED(status)
        with open(machine.directory / "state", "rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as state:
            seen = [valid_bank(state)]
            header, steps = state[: HEADER.size], 0
            for steps, _ in enumerate(step(process), start=1):
                if state[: HEADER.size] != header or steps % 16 == 0:
                    header = state[: HEADER.size]
                    bank = valid_bank(state)
                    if bank != seen[-1]:
                        seen.append(bank)
    finally:
        process.kill()
        process.wait()
    assert steps > 10000
    # before, with the instance, with its compute instance, without that, without the instance: nothing in between was ever valid
    assert len(seen) == 5
    assert machine.layout() == []
