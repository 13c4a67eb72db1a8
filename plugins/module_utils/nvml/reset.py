# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPU reset. NVML has no call for it, so nvidia-smi of the same driver root does it."""
from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from ..reasons import FleetError, finding

_TIMEOUT_S = 120
_TIMED_OUT = 124  # exit status of coreutils' timeout


def reset_gpu(uuid: str, driver_root: str, run: Callable[[list[str]], tuple[int, str, str]]) -> None:
    """Reset one GPU; the caller must hold no NVML session.

    ``run`` runs a command and returns (exit status, stdout, stderr), as AnsibleModule.run_command does.
    Raises FleetError GpuResetFailed with what nvidia-smi said.
    """
    path = shutil.which("nvidia-smi") if driver_root == "/" else str(Path(driver_root) / "usr/bin/nvidia-smi")
    if path is None or not Path(path).exists():
        raise FleetError(finding("GpuResetFailed", uuid, error=f"nvidia-smi was not found under driver root {driver_root}"))
    status, stdout, stderr = run(["timeout", str(_TIMEOUT_S), path, "-r", "-i", uuid])
    if status == _TIMED_OUT:
        raise FleetError(finding("GpuResetFailed", uuid, error=f"nvidia-smi did not end within {_TIMEOUT_S} s"))
    if status != 0:
        said = " ".join((stdout + stderr).split()) or "no output"
        raise FleetError(finding("GpuResetFailed", uuid, error=f"nvidia-smi -r ended with {status}: {said}"))
