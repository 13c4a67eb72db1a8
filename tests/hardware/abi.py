# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The structures that NVML fills: their sizes in pynvml, and whether this driver takes their version words and writes no more than their size."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.codes import NOT_SUPPORTED, code_name

from tests.hardware.rows import DIFFERS, OK, UNCHECKED, Row, compared

# nvml.h, on 64-bit systems. A version word is the size with the version in its top byte.
SIZES = {
    "c_nvmlGpuInstanceProfileInfo_t": 48, "c_nvmlGpuInstanceProfileInfo_v2_t": 152, "c_nvmlComputeInstanceProfileInfo_t": 36,
    "c_nvmlComputeInstanceProfileInfo_v2_t": 136, "c_nvmlGpuInstanceInfo_t": 24, "c_nvmlComputeInstanceInfo_t": 32, "c_nvmlDeviceAttributes": 40,
    "c_nvmlFieldValue_t": 40, "c_nvmlMemory_t": 24, "c_nvmlMemory_v2_t": 40, "nvmlPciInfo_t": 68, "c_nvmlGpuFabricInfo_v2_t": 36,
    "c_nvmlGpuFabricInfo_v3_t": 40,
}
WORDS = {
    "nvmlGpuInstanceProfileInfo_v2": 0x02000098, "nvmlComputeInstanceProfileInfo_v2": 0x02000088, "nvmlMemory_v2": 0x02000028,
    "nvmlGpuFabricInfo_v2": 0x02000024, "nvmlGpuFabricInfo_v3": 0x03000028,
}
_CANARY, _ROOM = 0xA5, 512


def judge_wrapper(pynvml: Any) -> Iterator[Row]:
    """Yield a row per structure and version word of pynvml."""
    for name, size in SIZES.items():
        structure = getattr(pynvml, name, None)
        yield Row(f"size of {name}", UNCHECKED, "pynvml has no such structure") if structure is None else \
            compared(f"size of {name}", ctypes.sizeof(structure), size, "nvml.h")
    for name, word in WORDS.items():
        given = getattr(pynvml, name, None)
        yield Row(f"version word {name}", UNCHECKED, "pynvml has no such word") if given is None else \
            compared(f"version word {name}", f"0x{given:08x}", f"0x{word:08x}", "nvml.h")


def judge_driver(pynvml: Any, index: int) -> Iterator[Row]:
    """Yield a row per versioned structure that can be asked of GPU ``index``: does the driver take the word and stay inside the size?"""
    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    queries: list[tuple[str, str, tuple[Any, ...], int]] = [
        ("GPU instance profile v2", "nvmlDeviceGetGpuInstanceProfileInfoV", (0,), 0x02000098),
        ("GPU instance profile v3", "nvmlDeviceGetGpuInstanceProfileInfoV", (0,), 0x03000098),
        ("memory v2", "nvmlDeviceGetMemoryInfo_v2", (), 0x02000028),
        ("fabric v2", "nvmlDeviceGetGpuFabricInfoV", (), 0x02000024),
        ("fabric v3", "nvmlDeviceGetGpuFabricInfoV", (), 0x03000028),
    ]
    for title, symbol, arguments, word in queries:
        what = f"GPU {index} fills {title} (0x{word:08x})"
        code, written = _ask(pynvml, symbol, device, arguments, word)
        size = word & 0xFFFFFF
        if code is None:
            yield Row(what, UNCHECKED, f"the driver has no {symbol}")
        elif code == NOT_SUPPORTED:
            yield Row(what, UNCHECKED, "this GPU does not support the query")
        elif code:
            yield Row(what, DIFFERS, f"the driver answers {code_name(code)}")
        else:
            yield Row(what, OK) if written <= size else Row(what, DIFFERS, f"the driver wrote {written} bytes, the structure has {size}")


def answers(pynvml: Any, index: int) -> Iterator[str]:
    """Yield what this driver does where its documentation is silent or contradicts itself."""
    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    symbol = "nvmlDeviceGetGpuInstanceProfileInfoV"
    bad, _written = _ask(pynvml, symbol, device, (0,), 0x7F000098)
    yield f"GPU {index}: a profile query with an unknown version word answers {_named(bad)}"
    codes = [_ask(pynvml, symbol, device, (enum,), 0x02000098)[0] for enum in range(32)]
    offered = [enum for enum, code in enumerate(codes) if code == 0]
    last = max(offered, default=-1)
    yield f"GPU {index}: profile enums {', '.join(map(str, offered)) or 'none'} are offered; the next ones answer {_runs(codes[last + 1:], last + 1)}"
    yield f"GPU {index}: field 199 (profiles can be listed while MIG mode is off) is {_field(pynvml, device, 199)}, field 184 (mode needs no reset) " \
        f"is {_field(pynvml, device, 184)}"


def _ask(pynvml: Any, symbol: str, device: Any, arguments: tuple[Any, ...], word: int) -> tuple[int | None, int]:
    """Return the code of one query, None where the driver lacks it, and up to where it wrote into the memory that it was given."""
    function = getattr(pynvml.nvmlLib, symbol, None)
    if function is None:
        return None, 0
    memory = (ctypes.c_ubyte * _ROOM)(*[_CANARY] * _ROOM)
    ctypes.cast(memory, ctypes.POINTER(ctypes.c_uint))[0] = word
    code = function(device, *arguments, memory)
    return code, max((place + 1 for place, value in enumerate(memory) if value != _CANARY), default=0)


def _named(code: int | None) -> str:
    return "nothing, for the driver lacks it" if code is None else code_name(code)


def _runs(codes: list[int | None], first: int) -> str:
    """Return the codes as runs, such as ``NOT_SUPPORTED from 10, INVALID_ARGUMENT from 18``."""
    starts = [place for place, code in enumerate(codes) if place == 0 or code != codes[place - 1]]
    return ", ".join(f"{_named(codes[place])} from {first + place}" for place in starts)


def _field(pynvml: Any, device: Any, number: int) -> str:
    value = pynvml.nvmlDeviceGetFieldValues(device, [number])[0]
    return code_name(value.nvmlReturn) if value.nvmlReturn else str(value.value.uiVal)
