# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The commands of gpufleet-mig.pyz, which the unit gpufleet-mig.service and people run on a node."""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from ..converge.deadline import end_process_soon
from ..reasons import FleetError
from .engine import differences, make_layout
from .messages import complain, inform
from .record import OK, read_record
from .service import boot
from .settings import read_settings

SETTINGS = "/etc/gpufleet/mig-boot.json"
STATE_DIR = "/var/lib/gpufleet"
RECORD = "mig-boot-state.json"
# After this a call may hang in the driver for ever, and the process with it.
_HANGS = "PhaseTimeout"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    record = f"{options.state_dir}/{RECORD}"
    try:
        if options.command == "boot":
            return boot(options.settings, options.state_dir, record)
        if options.command == "status":
            return _status(record)
        settings = read_settings(options.settings)
        if options.command == "check":
            steps = differences(settings, options.state_dir)
            inform("The GPUs have the layout that is made at boot." if not steps else f"A boot would still have to {'; '.join(steps)}.")
            return 1 if steps else 0
        outcome = make_layout(settings, options.state_dir)
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()
        if outcome.get("reason") == _HANGS:
            end_process_soon()
    except FleetError as error:
        complain(str(error))
        if error.finding.code == _HANGS:
            end_process_soon()
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpufleet-mig.pyz", description="Makes the MIG layout of this node again, as the role gpufleet.dra.mig left it.")
    parser.add_argument("--settings", default=SETTINGS, help="what to make (%(default)s)")
    parser.add_argument("--state-dir", default=STATE_DIR, help="folder for the lock, the journal and the result (%(default)s)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("boot", help="make the layout; exit status 0: it is made, 1: it is not, 3: it is not, and the DRA plugin is kept off this node")
    commands.add_parser("check", help="tell what boot would have to do, and change nothing; exit status 0: nothing, 1: something, or it cannot be told")
    commands.add_parser("status", help="tell how the last boot ended; exit status 0: well, 1: not, or there was none")
    commands.add_parser("apply", help="the part of boot that touches the GPUs; prints its result as JSON")
    return parser


def _status(record_path: str) -> int:
    record = read_record(record_path)
    if not record:
        inform(f"There is no result of a run in {record_path}.")
        return 1
    sys.stdout.write(json.dumps(record, indent=2, sort_keys=True) + "\n")
    return 0 if record["result"] == OK else 1
