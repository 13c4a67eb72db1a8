# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPU reset. NVML has no call for it, so nvidia-smi of the same driver root does it."""
from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from ..reasons import FleetError, finding
from .library import library_candidates

_TIMED_OUT = (124, 137)  # exit statuses of coreutils' timeout: after TERM, after KILL
_KILL_AFTER_S = 5


def reset_gpus(uuids: Sequence[str], driver_root: str, run: Callable[[list[str]], tuple[int, str, str]], timeout_s: float = 120.0) -> None:
    """Reset GPUs, together when there are several; the caller must hold no NVML session.

    ``run`` runs a command and returns (exit status, stdout, stderr), as AnsibleModule.run_command does. The nvidia-smi of a driver container gets that
    driver's library: the host has none.
    Raises FleetError GpuResetFailed with what nvidia-smi said.
    """
    subject = ",".join(uuids)
    path = shutil.which("nvidia-smi") if driver_root == "/" else str(Path(driver_root) / "usr/bin/nvidia-smi")
    if path is None or not Path(path).exists():
        raise FleetError(finding("GpuResetFailed", subject, error=f"nvidia-smi was not found under driver root {driver_root}"))
    status, stdout, stderr = run(["timeout", "-k", str(_KILL_AFTER_S), f"{timeout_s:g}", *_with_library(driver_root), path, "-r", "-i", subject])
    if status in _TIMED_OUT:
        raise FleetError(finding("GpuResetFailed", subject, error=f"nvidia-smi did not end within {timeout_s:g} s"))
    if status != 0:
        said = " ".join((stdout + stderr).split()) or "no output"
        raise FleetError(finding("GpuResetFailed", subject, error=f"nvidia-smi -r ended with {status}: {said}"))


def reset_limit_s(phase_s: float) -> float:
    """Return the seconds that a reset may take, so that its own end comes before that of the phase which it is in."""
    return max(phase_s - 3 * _KILL_AFTER_S, phase_s / 2)


def _with_library(driver_root: str) -> list[str]:
    if driver_root == "/":
        return []
    folders = [str(path.parent) for path in library_candidates(driver_root) if path.exists()]
    return ["env", f"LD_LIBRARY_PATH={':'.join(folders)}"] if folders else []
