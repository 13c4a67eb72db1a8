# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What boards print about themselves, to compare the emulator with: ``nvidia-smi`` and ``nvidia-smi mig -lgip`` as pasted in public threads."""
from __future__ import annotations

from typing import NamedTuple


class Board(NamedTuple):
    """One model. ``rows`` are lines of ``mig -lgip``: name, id, instances, memory in GiB as printed, SMs, engines (copy, decode, encode, JPEG, OFA).

    Rows that no board was seen to print are left out.
    """

    product: str
    memory_mib: int
    pci_device: int
    architecture: int
    capability: tuple[int, int]
    rows: str


HOPPER_ENGINES = ("1 1 0 1 0", "1 1 0 1 1", "1 1 0 1 0", "2 2 0 2 0", "3 3 0 3 0", "4 4 0 4 0", "8 7 0 7 1")


def hopper(rows: str) -> str:
    """Add the engines, which are the same on all these boards."""
    return "\n".join(f"{row} {engines}" for row, engines in zip(rows.strip().splitlines(), HOPPER_ENGINES, strict=False))


A100_80GB = """
    1g.10gb     19  7   9.50  14  1 0 0 0 0
    1g.10gb+me  20  1   9.50  14  1 1 0 1 1
    1g.20gb     15  4  19.50  14  1 1 0 0 0
    2g.20gb     14  3  19.50  28  2 1 0 0 0
    3g.40gb      9  2  39.25  42  3 2 0 0 0
    4g.40gb      5  1  39.25  56  4 2 0 0 0
    7g.80gb      0  1  78.50  98  7 5 0 1 1
"""
H200 = hopper("""
    1g.18gb     19  7   16.00   16
    1g.18gb+me  20  1   16.00   16
    1g.35gb     15  4   32.50   26
    2g.35gb     14  3   32.50   32
    3g.71gb      9  2   69.50   60
    4g.71gb      5  1   69.50   64
    7g.141gb     0  1  140.00  132
""")
BOARDS = {
    "a30": Board("NVIDIA A30", 24576, 0x20B7, 7, (8, 0), """
        1g.6gb      14  4   5.81  14  1 1 0 0 0
        1g.6gb+me   21  1   5.81  14  1 1 0 1 1
        2g.12gb      5  2  11.69  28  2 2 0 0 0
        2g.12gb+me   6  1  11.69  28  2 2 0 1 1
        4g.24gb      0  1  23.44  56  4 4 0 1 1
    """),
    "a100-40gb-sxm4": Board("NVIDIA A100-SXM4-40GB", 40960, 0x20B0, 7, (8, 0), """
        1g.5gb      19  7   4.75  14  1 0 0 0 0
        1g.5gb+me   20  1   4.75  14  1 1 0 1 1
        1g.10gb     15  4   9.62  14  1 1 0 0 0
        2g.10gb     14  3   9.62  28  2 1 0 0 0
        3g.20gb      9  2  19.50  42  3 2 0 0 0
        4g.20gb      5  1  19.50  56  4 2 0 0 0
        7g.40gb      0  1  39.25  98  7 5 0 1 1
    """),
    "a100-80gb-sxm4": Board("NVIDIA A100-SXM4-80GB", 81920, 0x20B2, 7, (8, 0), A100_80GB),
    "a100-80gb-pcie": Board("NVIDIA A100 80GB PCIe", 81920, 0x20B5, 7, (8, 0), A100_80GB),
    "h100-80gb-hbm3": Board("NVIDIA H100 80GB HBM3", 81559, 0x2330, 9, (9, 0), hopper("""
        1g.10gb     19  7   9.75   16
        1g.10gb+me  20  1   9.75   16
        1g.20gb     15  4  19.62   26
        2g.20gb     14  3  19.62   32
        3g.40gb      9  2  39.50   60
        4g.40gb      5  1  39.50   64
        7g.80gb      0  1  79.25  132
    """)),
    "h100-80gb-pcie": Board("NVIDIA H100 PCIe", 81559, 0x2331, 9, (9, 0), hopper("""
        1g.10gb     19  7   9.75   14
        1g.10gb+me  20  1   9.75   14
        1g.20gb     15  4  19.62   14
        2g.20gb     14  3  19.62   30
        3g.40gb      9  2  39.50   46
        4g.40gb      5  1  39.50   62
        7g.80gb      0  1  79.25  114
    """)),
    "h100-nvl-94gb": Board("NVIDIA H100 NVL", 95830, 0x2321, 9, (9, 0), hopper("""
        1g.12gb     19  7  10.75   16
        1g.12gb+me  20  1  10.75   16
        1g.24gb     15  4  21.62   26
        2g.24gb     14  3  21.62   32
        3g.47gb      9  2  46.38   60
        4g.47gb      5  1  46.38   64
        7g.94gb      0  1  93.12  132
    """)),
    "h200-sxm": Board("NVIDIA H200", 143771, 0x2335, 9, (9, 0), H200),
    "h200-nvl": Board("NVIDIA H200 NVL", 143771, 0x233B, 9, (9, 0), H200),
    "gh200-96gb": Board("NVIDIA GH200 480GB", 97871, 0x2342, 9, (9, 0), hopper("""
        1g.12gb     19  7  11.00   16
        1g.12gb+me  20  1  11.00   16
        1g.24gb     15  4  23.00   26
        2g.24gb     14  3  23.00   32
        3g.48gb      9  2  46.50   60
        4g.48gb      5  1  46.50   64
        7g.96gb      0  1  93.00  132
    """)),
    "gh200-144gb": Board("NVIDIA GH200 144G HBM3e", 146831, 0x2348, 9, (9, 0), hopper("""
        1g.18gb     19  7  17.50  16
        1g.18gb+me  20  1  17.50  16
        1g.36gb     15  4  35.25  26
        2g.36gb     14  3  35.25  32
    """)),
    "rtx-pro-6000-server": Board("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, 0x2BB5, 10, (12, 0), """
        1g.24gb         14  4  23.62   46  1 1 1 1 0
        1g.24gb+me      21  1  23.62   46  1 1 1 1 1
        1g.24gb+gfx     47  4  23.62   46  1 1 1 1 0
        1g.24gb+me.all  65  1  23.62   46  1 4 4 4 1
        1g.24gb-me      67  4  23.62   46  1 0 0 0 0
        2g.48gb          5  2  47.38   94  2 2 2 2 0
        2g.48gb+gfx     35  2  47.38   94  2 2 2 2 0
        2g.48gb+me.all  64  1  47.38   94  2 4 4 4 1
        2g.48gb-me      66  2  47.38   94  2 0 0 0 0
        4g.96gb          0  1  95.00  188  4 4 4 4 1
        4g.96gb+gfx     32  1  95.00  188  4 4 4 4 1
    """),
    "b200": Board("NVIDIA B200", 183359, 0x2901, 10, (10, 0), """
        1g.23gb     19  7  22.00  18  2 1 0 1 0
        1g.23gb+me  20  1  22.00  18  2 1 0 1 1
        1g.45gb     15  4  44.25  30  2 1 0 1 0
        2g.45gb     14  3  44.25  36  4 2 0 2 0
    """),
    "gb200": Board("NVIDIA GB200", 189471, 0x2941, 10, (10, 0), """
        1g.23gb     19  7  22.00  18  2 1 0 1 0
        1g.23gb+me  20  1  22.00  18  2 1 0 1 1
        1g.47gb     15  4  45.50  32  2 1 0 1 0
        2g.47gb     14  3  45.50  38  4 2 0 2 0
    """),
}
#: Models with numbers that are inferred, so that nvmlctl makes them only when told to.
INFERRED = ("a30", "gh200-144gb", "b200", "gb200")
#: Names of the profiles that no board was seen to print; from nvidia-mig-parted's configurations.
NAMES_ONLY = {
    "gh200-144gb": ["3g.72gb", "4g.72gb", "7g.144gb"], "b200": ["3g.90gb", "4g.90gb", "7g.180gb"], "gb200": ["3g.93gb", "4g.93gb", "7g.186gb"],
}
#: Placements by profile id, start:size as ``mig -lgipp`` prints them, and enum and compute slices.
ONES = [0, 1, 2, 3, 4, 5, 6]
SEVEN_SLICES = {
    19: (ONES, 1, 0, 1), 20: (ONES, 1, 7, 1), 15: ([0, 2, 4, 6], 2, 9, 1), 14: ([0, 2, 4], 2, 1, 2), 9: ([0, 4], 4, 2, 3), 5: ([0], 4, 3, 4),
    0: ([0], 8, 4, 7),
}
A30 = {14: ([0, 1, 2, 3], 1, 0, 1), 21: ([0, 1, 2, 3], 1, 7, 1), 5: ([0, 2], 2, 1, 2), 6: ([0, 2], 2, 8, 2), 0: ([0], 4, 3, 4)}
QUARTERS, HALVES = ([0, 3, 6, 9], 3), ([0, 6], 6)
RTX_PRO_6000 = {
    14: (*QUARTERS, 0, 1), 21: (*QUARTERS, 7, 1), 47: (*QUARTERS, 10, 1), 65: (*QUARTERS, 15, 1), 67: (*QUARTERS, 13, 1),
    5: (*HALVES, 1, 2), 35: (*HALVES, 11, 2), 64: (*HALVES, 16, 2), 66: (*HALVES, 14, 2), 0: ([0], 12, 3, 4), 32: ([0], 12, 12, 4),
}


def geometry(model: str) -> dict[int, tuple[list[int], int, int, int]]:
    """(starts, size, enum, compute slices) of the model's profiles by id."""
    return {"a30": A30, "rtx-pro-6000-server": RTX_PRO_6000}.get(model, SEVEN_SLICES)


def options(model: str) -> tuple[str, ...]:
    """Options of ``nvmlctl create`` without which it does not make the model."""
    return ("--inferred",) if model in INFERRED else ()
