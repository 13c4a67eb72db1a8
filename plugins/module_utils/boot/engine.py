# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What touches the GPUs at boot: waits for the driver, then lets the MIG engine make the layout, under the same lock and journal as the module mig_layout."""
from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from ..converge.run import Policy, apply_layout, look
from ..nvml.codes import NvmlError
from ..nvml.reset import reset_gpus, reset_limit_s
from ..nvml.session import NvmlSession
from ..nvml.unreadable import as_fleet_error
from ..reasons import FleetError
from .settings import BootSettings

_HOST_DRIVER = "/"
_POLL_S = 1.0
# What of the engine's result goes into the state file.
_TOLD = ("changed", "executed", "device_names", "warnings")


def make_layout(settings: BootSettings, state_dir: str) -> dict[str, Any]:
    """Make the layout of ``settings``. Returns plain data for the state file; after a failure with reason, object, sentence and remedy. Raises nothing of ours.

    ``changed``, ``executed`` and ``device_names`` (None when the GPUs could not be read) are what is true in either case.
    """
    result: dict[str, Any] = {"changed": False, "executed": [], "device_names": None, "warnings": []}
    failure: dict[str, Any] = {}
    try:
        with _driver(settings) as session:
            apply_layout(session, settings.layout, _policy(settings, state_dir), result)
    except (FleetError, NvmlError) as error:
        failure = failure_fields(as_fleet_error(error))
    return {**{name: result[name] for name in _TOLD}, **failure}


def differences(settings: BootSettings, state_dir: str) -> list[str]:
    """Return what a boot would have to do now, as text; nothing is waited for or changed. Raises FleetError."""
    try:
        with NvmlSession(_HOST_DRIVER) as session:
            seen = look(session, settings.layout, _policy(settings, state_dir))
    except NvmlError as error:
        raise as_fleet_error(error) from error
    return [step["text"] for step in seen["plan"]] + [f"put device node {node} right" for node in seen["device_nodes"]["made"]]


def failure_fields(error: FleetError) -> dict[str, Any]:
    """Return what the state file says about a failure."""
    found = error.finding
    return {"reason": found.code, "object": found.subject, "sentence": found.sentence(), "remedy": found.remedy}


@contextmanager
def _driver(settings: BootSettings) -> Iterator[NvmlSession]:
    """Yield a session once the driver lists every GPU that the layout names.

    The unit may start before the driver has been loaded, or has found all of its GPUs. When the time is over, the engine gets what there is, and names the
    GPUs that are missing. Raises FleetError NvmlDriverNotLoaded.
    """
    deadline = time.monotonic() + settings.wait_s
    while True:
        last = time.monotonic() >= deadline
        with ExitStack() as stack:
            session = _opened(stack, last)
            if session is not None and (last or _present(session) >= settings.gpu_uuids):
                yield session
                return
        time.sleep(_POLL_S)


def _opened(stack: ExitStack, last: bool) -> NvmlSession | None:
    """Return a session that ``stack`` closes, or None while the driver is not loaded and there is time."""
    try:
        return stack.enter_context(NvmlSession(_HOST_DRIVER))
    except FleetError as error:
        if last or error.finding.code != "NvmlDriverNotLoaded":
            raise
    return None


def _present(session: NvmlSession) -> set[str]:
    """Return the UUIDs of the GPUs that answer."""
    found = set()
    for index in range(session.device_count()):
        with suppress(NvmlError):
            found.add(session.uuid(session.device_at(index)))
    return found


def _policy(settings: BootSettings, state_dir: str) -> Policy:
    reset = partial(reset_gpus, driver_root=_HOST_DRIVER, run=_run, timeout_s=reset_limit_s(settings.phase_timeout_s))
    return Policy(
        unlisted="keep", wait_s=settings.wait_s, reset=reset if settings.allow_reset else None, phase_timeout_s=settings.phase_timeout_s, state_dir=state_dir,
        ignore_health=settings.ignore_health,
    )


def _run(command: list[str]) -> tuple[int, str, str]:
    # A program, not a module: there is no run_command here.
    # pylint: disable-next=ansible-bad-function
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr
