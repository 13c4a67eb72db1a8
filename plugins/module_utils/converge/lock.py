# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One writer per node: a lock file that the kernel releases when its holder dies."""
from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Optional

from ..reasons import FleetError, finding

_POLL_S = 0.5


class NodeLock:
    """The node's MIG lock (``state_dir``/mig.lock), held while a ``with`` block runs. The file names its last holder.

    Entering waits up to ``wait_s`` seconds for another holder. It raises FleetError LayoutLocked (with the holder's pid) or StateDirUnusable.
    """

    def __init__(self, state_dir: str, wait_s: float) -> None:
        self._path = Path(state_dir) / "mig.lock"
        self._wait_s = wait_s
        self._descriptor = -1
        self._kept = False

    def keep(self) -> None:
        """Hold the lock until this process is gone, for a call into the driver that may still be under way."""
        self._kept = True

    def __enter__(self) -> NodeLock:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FleetError(finding("StateDirUnusable", str(self._path), error=error.strerror or str(error))) from error
        try:
            self._acquire(time.monotonic() + self._wait_s)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(self, _type: Optional[type[BaseException]], _error: Optional[BaseException], _traceback: Optional[TracebackType]) -> None:
        if not self._kept:
            os.close(self._descriptor)

    def _acquire(self, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                    raise FleetError(finding("LayoutLocked", str(self._path), pid=holder)) from None
                time.sleep(_POLL_S)
