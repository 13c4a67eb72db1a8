# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The emulator's control functions, called in its libnvidia-ml.so.1.

The library owns the state format; everything here goes through it.
"""
from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterable
from typing import Any, Literal, NoReturn

BUFFER_BYTES = 512 * 1024
NO_PERMISSION, NOT_FOUND, INVALID_ARGUMENT = 4, 6, 2
IN_USE, RESET_REQUIRED, INSUFFICIENT_RESOURCES = 19, 16, 23
DRIVER_NOT_LOADED, VERSION_MISMATCH = 9, 18
NOT_SUPPORTED, NO_DATA, RESET_TYPE_NOT_SUPPORTED = 3, 21, 30
NO_INSTANCE = 0xFFFFFFFF
#: What nvidia-smi -r asks of the kernel module, by the names in the call log.
RESET_CALLS = ("nvmlEmulatorResetQuery", "nvmlEmulatorResetDevice")
CLIENT_KINDS = ("compute", "graphics", "mps", "unlisted")
CLIENT_BLOCKS = ("mode", "reset", "destroy", "create")


class EmulatorError(Exception):
    """A refused request, as one sentence."""


class Emulator:
    """One machine: the state in ``directory``, reached through the emulator's library."""

    def __init__(self, directory: str, library: str | None = None) -> None:
        """Load the library. Raises EmulatorError if there is none, or if it is not the emulator."""
        os.environ["NVML_EMULATOR_DIR"] = directory
        self.directory = directory
        self._library = _load(library)

    @property
    def driver_version(self) -> str:
        """Version of the emulated driver, such as 595.91.07."""
        return str(self._library.nvmlEmulatorDriverVersion().decode())

    def models(self) -> list[dict[str, Any]]:
        """The GPU models that the library knows."""
        found: list[dict[str, Any]] = []
        while True:
            text = ctypes.create_string_buffer(BUFFER_BYTES)
            if self._library.nvmlEmulatorModel(len(found), text, BUFFER_BYTES) != 0:
                return found
            found.append(json.loads(text.value))

    def create(self, seed: str, models: list[str], minors: list[int] | None) -> None:
        """Make a machine with GPUs of those models. Raises EmulatorError for an unknown model or an unwritable directory."""
        known = [model["model"] for model in self.models()]
        unknown = sorted(set(models) - set(known))
        if unknown:
            raise EmulatorError(f"Unknown GPU model {', '.join(unknown)}: the known ones are {', '.join(known)}.")
        names = (ctypes.c_char_p * len(models))(*(name.encode() for name in models))
        numbers = (ctypes.c_uint * len(models))(*minors) if minors is not None else None
        code = self._library.nvmlEmulatorCreate(seed.encode(), len(models), names, numbers)
        if code < 0:
            raise EmulatorError(f"Cannot write the machine to {self.directory}: {os.strerror(-code)}.")
        if code == INVALID_ARGUMENT:
            raise EmulatorError(f"A machine holds at most 16 GPUs, not {len(models)}.")
        self._check(code, "create a machine")

    def show(self) -> dict[str, Any]:
        """The whole machine."""
        text = ctypes.create_string_buffer(BUFFER_BYTES)
        self._check(self._library.nvmlEmulatorShow(text, BUFFER_BYTES), "read the machine")
        return dict(json.loads(text.value))

    def load_module(self, version: str | None = None) -> None:
        """What loading the kernel module does: instances are gone, and the MIG mode of Hopper and later.

        ``version``: of the module (default: the library's). Libraries of another version then refuse to work, as real ones do.
        """
        self._check(self._library.nvmlEmulatorLoadModule(version.encode() if version else None), "load the kernel module")

    def gpu_index(self, name: str) -> int:
        """Index of the GPU with that index or UUID. Raises EmulatorError if there is none."""
        gpus = self.show()["gpus"]
        for gpu in gpus:
            if name in (str(gpu["index"]), gpu["uuid"]):
                return int(gpu["index"])
        raise EmulatorError(f"There is no GPU {name}: the machine has {len(gpus)}, named by index or UUID.")

    def reset(self, gpu: int) -> None:
        """Reset a GPU."""
        self._check(self._library.nvmlEmulatorResetGpu(gpu), f"reset GPU {gpu}")

    def set_mode(self, gpu: int, enabled: bool) -> None:
        """Set MIG mode at once, behind NVML's back; off wipes the instances."""
        self._check(self._library.nvmlEmulatorSetMode(gpu, int(enabled)), f"set the MIG mode of GPU {gpu}")

    def repartition(self, gpu: int, instances: list[tuple[str, int | None]]) -> None:
        """Replace all instances by (profile name, start or None for the driver's choice), each with a whole compute instance."""
        offered = self._profiles(gpu)
        unknown = [name for name, _start in instances if name.lower() not in offered]
        if unknown:
            raise EmulatorError(f"GPU {gpu} has no profile {', '.join(unknown)}: it offers {', '.join(offered)}.")
        names = (ctypes.c_char_p * len(instances))(*(name.encode() for name, _start in instances))
        starts = (ctypes.c_int * len(instances))(*(-1 if start is None else start for _name, start in instances))
        code = self._library.nvmlEmulatorRepartition(gpu, len(instances), names, starts)
        self._check(code, f"repartition GPU {gpu}")

    def destroy(self, gpu: int, gpu_instance: int) -> None:
        """Destroy a GPU instance with all that is in it."""
        code = self._library.nvmlEmulatorDestroyInstance(gpu, gpu_instance)
        if code == NOT_FOUND:
            raise EmulatorError(f"GPU {gpu} has no GPU instance {gpu_instance}.")
        self._check(code, f"destroy GPU instance {gpu_instance} of GPU {gpu}")

    def set_knob(self, gpu: int, knob: str, value: int) -> None:
        """Set a knob of the GPU, or of the machine; the numbers are those of control/knobs.py."""
        code = self._library.nvmlEmulatorSetKnob(gpu, knob.encode(), value)
        if code == NOT_SUPPORTED:
            raise EmulatorError(f"GPU {gpu} is of a model that has no {knob}.")
        if code == INVALID_ARGUMENT:
            raise EmulatorError(f"{value} is too high for {knob}.")
        self._check(code, f"set {knob}")

    def xid(self, gpu: int, number: int, gpu_instance: int | None = None, compute_instance: int | None = None) -> None:
        """Post an XID event, of the whole GPU or of an instance."""
        self._check(self._library.nvmlEmulatorXid(gpu, number, _instance(gpu_instance), _instance(compute_instance)), "post an XID event")

    def add_client(
        self,
        gpu: int,
        *,
        pid: int = 0,
        follow: bool = False,
        kind: str = "compute",
        gpu_instance: int | None = None,
        compute_instance: int | None = None,
        memory_mib: int = 0,
        blocks: Iterable[str] = CLIENT_BLOCKS,
    ) -> int:
        """Let a process use the GPU, a GPU instance or a compute instance of it; returns the client's id.

        With ``follow`` the client ends with that process. ``kind`` is the process list that names it (CLIENT_KINDS), ``blocks`` what it
        stands in the way of (CLIENT_BLOCKS). Raises EmulatorError for what is not there.
        """
        made = ctypes.c_uint()
        mask = sum(1 << CLIENT_BLOCKS.index(name) for name in set(blocks))
        code = self._library.nvmlEmulatorClientAdd(
            gpu, pid, int(follow), CLIENT_KINDS.index(kind), _instance(gpu_instance), _instance(compute_instance), memory_mib, mask,
            ctypes.byref(made),
        )
        refusals = {
            NOT_FOUND: f"GPU {gpu} has no such instance",
            NO_DATA: f"there is no process {pid}",
            INVALID_ARGUMENT: "only an unlisted client may be without pid, and a compute instance needs its GPU instance",
            INSUFFICIENT_RESOURCES: "there are 64 clients already",
        }
        if code in refusals:
            raise EmulatorError(f"Cannot add a client: {refusals[code]}.")
        self._check(code, "add a client")
        return made.value

    def remove_client(self, client: int | None) -> None:
        """Remove the client with that id; None: all of them."""
        code = self._library.nvmlEmulatorClientRemove(client or 0)
        if code == NOT_FOUND:
            raise EmulatorError(f"There is no client {client}.")
        self._check(code, "remove the client")

    def add_fault(
        self,
        symbol: str = "*",
        *,
        gpu: int | None = None,
        calls: Literal["any", "mutating", "reading"] = "any",
        nth: int = 1,
        times: int = 1,
        code: int | None = None,
        kill: bool = False,
        delay: float | None = None,
        when: Literal["before", "after"] = "before",
    ) -> int:
        """Make the ``nth`` matching call from now on, and the ``times`` - 1 after it (0: all after it), fail. Returns the fault's id.

        Give one of ``code`` (an NVML return code), ``kill`` and ``delay`` (seconds). ``before``: the call has no effect; ``after``: it
        has taken effect already. A symbol without version suffix means all versions of the function, ``*`` any function. Raises
        EmulatorError for a fault that makes no sense.
        """
        if (code is not None) + kill + (delay is not None) != 1:
            raise EmulatorError("A fault either returns a code, or kills, or delays.")
        action = 1 if code is not None else 2 if kill else 3
        value = code if code is not None else round((delay or 0) * 1000)
        if not self._has_function(symbol):
            raise EmulatorError(f"The emulator has no function {symbol}.")
        numbers = (nth, times, value)
        if any(not 0 <= number < 2**32 for number in numbers):
            raise EmulatorError("The numbers of a fault are from 0 to 4294967295.")
        made = ctypes.c_uint()
        result = self._library.nvmlEmulatorFaultAdd(
            symbol.encode(), -1 if gpu is None else gpu, ("any", "mutating", "reading").index(calls), nth, times, action, value,
            ("before", "after").index(when), ctypes.byref(made),
        )
        if result == INVALID_ARGUMENT:
            raise EmulatorError("That is no fault: calls are counted from 1, and code 0 is none.")
        if result == INSUFFICIENT_RESOURCES:
            raise EmulatorError("There are 16 faults already; clear them first.")
        self._check(result, "inject a fault")
        return made.value

    def faults(self) -> list[dict[str, Any]]:
        """The injected faults, with the number of calls that matched (``seen``) and that were hit (``hits``)."""
        text = ctypes.create_string_buffer(BUFFER_BYTES)
        self._check(self._library.nvmlEmulatorFaultList(text, BUFFER_BYTES), "list the faults")
        return list(json.loads(text.value))

    def clear_faults(self) -> None:
        """Remove all injected faults."""
        self._check(self._library.nvmlEmulatorFaultClear(), "clear the faults")

    def save(self) -> bytes:
        """The machine as a snapshot for restore(). Faults and the call log are no part of it."""
        size = int(self._library.nvmlEmulatorSnapshotSize())
        data = ctypes.create_string_buffer(size)
        self._check(self._library.nvmlEmulatorSave(data, size), "save the machine")
        return data.raw

    def restore(self, snapshot: bytes) -> None:
        """Make a snapshot the machine again. Raises EmulatorError for one of another build of the emulator."""
        code = self._library.nvmlEmulatorRestore(snapshot, len(snapshot))
        if code == INVALID_ARGUMENT:
            raise EmulatorError("That is no snapshot of this version of the emulator.")
        self._check(code, "restore the machine")

    def gpu_instance_minor(self, gpu_minor: int, gpu_instance: int) -> int:
        """Minor of the capability device of a GPU instance."""
        return int(self._library.nvmlEmulatorGpuInstanceMinor(gpu_minor, gpu_instance))

    def compute_instance_minor(self, gpu_minor: int, gpu_instance: int, compute_instance: int) -> int:
        """Minor of the capability device of a compute instance."""
        return int(self._library.nvmlEmulatorComputeInstanceMinor(gpu_minor, gpu_instance, compute_instance))

    def _has_function(self, symbol: str) -> bool:
        """Whether calls of that name may come: an exported function with or without its version, any, or a step of a reset."""
        return symbol == "*" or symbol in RESET_CALLS or any(hasattr(self._library, symbol + version) for version in ("", "_v2", "_v3"))

    def _profiles(self, gpu: int) -> list[str]:
        key = self.show()["gpus"][gpu]["model"]
        return [profile["name"] for model in self.models() if model["model"] == key for profile in model["profiles"]]

    def _check(self, code: int, what: str) -> None:
        if code != 0:
            self._refuse(code, what)

    def _refuse(self, code: int, what: str) -> NoReturn:
        reasons = {
            NO_PERMISSION: f"{self.directory} may not be written by this user",
            DRIVER_NOT_LOADED: f"there is no machine in {self.directory}",
            VERSION_MISMATCH: f"the machine in {self.directory} was made by another version of the emulator",
            IN_USE: "the GPU is in use by another client",
            RESET_REQUIRED: "the GPU refuses resets",
            RESET_TYPE_NOT_SUPPORTED: "the GPUs linked with it must be reset together",
            INSUFFICIENT_RESOURCES: "the instances do not fit",
        }
        raise EmulatorError(f"Cannot {what}: {reasons.get(code, f'NVML error {code}')}.")


def _instance(number: int | None) -> int:
    return NO_INSTANCE if number is None else number


def _load(given: str | None) -> ctypes.CDLL:
    """The emulator's library: the given one, NVML_EMULATOR_LIBRARY, one beside this program, or what the loader finds."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "libnvidia-ml.so.1")
    path = given or os.environ.get("NVML_EMULATOR_LIBRARY") or (beside if os.path.exists(beside) else "libnvidia-ml.so.1")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise EmulatorError(f"Cannot load the emulator's library: {error}.") from error
    if not hasattr(library, "nvmlEmulatorDriverVersion"):
        raise EmulatorError(f"{path} is not the NVML emulator.")
    library.nvmlEmulatorDriverVersion.restype = ctypes.c_char_p
    return library
