# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One writer per node: a lock file that the kernel releases when its holder dies."""
from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..reasons import FleetError, finding

_POLL_S = 0.5


@contextmanager
def node_lock(state_dir: str, wait_s: float) -> Iterator[None]:
    """Hold the node's MIG lock (``state_dir``/mig.lock) while the block runs; wait up to ``wait_s`` seconds for another holder.

    Raises FleetError LayoutLocked (with the holder's pid) or StateDirUnusable.
    """
    path = Path(state_dir) / "mig.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise FleetError(finding("StateDirUnusable", str(path), error=error.strerror or str(error))) from error
    try:
        _acquire(descriptor, path, time.monotonic() + wait_s)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                raise FleetError(finding("LayoutLocked", str(path), pid=holder)) from None
            time.sleep(_POLL_S)
