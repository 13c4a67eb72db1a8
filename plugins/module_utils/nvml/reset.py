# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPU reset. NVML has no call for it, so nvidia-smi of the same driver root does it."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ..reasons import FleetError, finding

_TIMEOUT_S = 120


def reset_gpu(uuid: str, driver_root: str = "/") -> None:
    """Reset one GPU; the caller must hold no NVML session. Raises FleetError GpuResetFailed with what nvidia-smi said."""
    path = shutil.which("nvidia-smi") if driver_root == "/" else str(Path(driver_root) / "usr/bin/nvidia-smi")
    if path is None or not Path(path).exists():
        raise FleetError(finding("GpuResetFailed", uuid, error=f"nvidia-smi was not found under driver root {driver_root}"))
    try:
        done = subprocess.run([path, "-r", "-i", uuid], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise FleetError(finding("GpuResetFailed", uuid, error=f"nvidia-smi did not end within {_TIMEOUT_S} s")) from None
    if done.returncode != 0:
        said = " ".join((done.stdout + done.stderr).split()) or "no output"
        raise FleetError(finding("GpuResetFailed", uuid, error=f"nvidia-smi -r ended with {done.returncode}: {said}"))
