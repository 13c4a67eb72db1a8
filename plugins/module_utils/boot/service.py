# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command ``boot``: the engine in a process of its own, and what follows when it fails.

A broken driver can kill the process that calls it, or never return. This process calls no NVML, so it lives to say what happened and to keep the DRA plugin
off the node. Its exit status decides about the kubelet, whose unit requires this one: systemd takes MADE and PAUSED for success (SuccessExitStatus).
"""
from __future__ import annotations

import json
import platform
import subprocess
import sys
from contextlib import suppress
from typing import Any, Optional

from ..reasons import FleetError, finding
from .engine import failure_fields
from .messages import complain, inform, warn
from .node_api import NodeApi, NodeApiError
from .node_pause import PLUGIN_LABEL, pause_patch, resume_patch
from .record import FAILED, OK, boot_id, now, read_record, write_record
from .settings import BootSettings, NodeAccess, read_settings

MADE, NOT_MADE, PAUSED = 0, 1, 3  # exit statuses; 2 is argparse's
_KILL_GRACE_S = 5.0


def boot(settings_path: str, state_dir: str, record_path: str) -> int:
    """Make the layout, write to ``record_path`` how that went, and return the exit status.

    MADE; NOT_MADE: the kubelet must not start; PAUSED: it may, for the DRA plugin is kept off the node.
    """
    begin = now()
    plugin_kept_off = bool(read_record(record_path).get("plugin_kept_off"))
    node: Optional[NodeAccess] = None
    wait_s = 0.0
    try:
        settings = read_settings(settings_path)
        node, wait_s = settings.pause_node, settings.wait_s
        outcome = _engine(settings, settings_path, state_dir)
    except FleetError as error:
        outcome = failure_fields(error)
    for warning in outcome.get("warnings", []):
        warn(warning)
    if "reason" in outcome:
        complain(outcome["sentence"])
        status = PAUSED if node is not None and _pause(node, wait_s) else NOT_MADE
        plugin_kept_off = plugin_kept_off or status == PAUSED
    else:
        inform(f"The MIG layout is as it should be; done for it: {'; '.join(outcome['executed']) or 'nothing'}.")
        status = MADE
        if plugin_kept_off and node is not None:
            plugin_kept_off = not _resume(node, wait_s)
    result = FAILED if "reason" in outcome else OK
    fields = {"result": result, "boot_id": boot_id(), "started": begin, "finished": now(), "plugin_kept_off": plugin_kept_off, **outcome}
    try:
        write_record(record_path, fields)
    except OSError as error:
        warn(f"The result could not be written to {record_path}: {error.strerror or error}.")
    return status


def _engine(settings: BootSettings, settings_path: str, state_dir: str) -> dict[str, Any]:
    """Run the command ``apply`` and return what it says. Raises FleetError BootEngineEnded when it ends, or has to be ended, without a word."""
    command = [sys.executable, "-I", sys.argv[0], "--settings", settings_path, "--state-dir", state_dir, "apply"]
    # A program, not a module: there is no run_command here.
    # pylint: disable-next=ansible-bad-function
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        said, _none = process.communicate(timeout=settings.timeout_s)
    except subprocess.TimeoutExpired as late:
        process.kill()
        try:
            process.wait(_KILL_GRACE_S)
        except subprocess.TimeoutExpired:
            warn(f"Process {process.pid} hangs in the driver and cannot be ended.")
        # It may have said how it went, and hang on its way out.
        with suppress(ValueError):
            return dict(json.loads(late.output or b""))
        raise _ended(f"did not end within {settings.timeout_s:.0f} s") from None
    try:
        return dict(json.loads(said))
    except ValueError:
        status = process.returncode
        raise _ended(f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}") from None


def _ended(how: str) -> FleetError:
    return FleetError(finding("BootEngineEnded", platform.node(), how=how))


def _pause(node: NodeAccess, wait_s: float) -> bool:
    """Keep the plugin off the node; returns whether that is certain."""
    try:
        changed = NodeApi(node, wait_s).change(pause_patch)
    except NodeApiError as error:
        complain(str(FleetError(finding("BootPauseFailed", node.name, label=PLUGIN_LABEL, why=str(error)))))
        return False
    inform(f"The DRA plugin {'is' if changed else 'was already'} kept off Node {node.name} by its label {PLUGIN_LABEL}; the kubelet may start.")
    return True


def _resume(node: NodeAccess, wait_s: float) -> bool:
    """Let the plugin back that an earlier boot kept off; returns whether that is done. It is safe to leave to a later boot, or to a run of the role."""
    try:
        if NodeApi(node, wait_s).change(resume_patch):
            inform(f"The label {PLUGIN_LABEL} of Node {node.name} is again what it was before an earlier boot failed.")
    except NodeApiError as error:
        warn(f"The DRA plugin stays kept off Node {node.name}, as an earlier boot left it: {error}. Run the playbook gpufleet.dra.mig.")
        return False
    return True
