# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvmlctl fault: make calls fail, kill their callers, or be slow."""
from __future__ import annotations

import argparse
import json
from typing import Any

from .codes import CODES, code_number
from .library import Emulator, EmulatorError


def add_commands(commands: Any) -> None:
    """Add ``fault add``, ``fault list`` and ``fault clear``."""
    parser = commands.add_parser("fault", help="make calls fail", description="Injected faults: the Nth call that matches fails.")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    add = actions.add_parser("add", help="inject a fault", description="Inject a fault. Calls of all processes of the machine count, from now on.")
    add.set_defaults(command=_add)
    add.add_argument("--symbol", required=True, help="NVML function (without version suffix: all versions of it), or '*' for any")
    add.add_argument("--gpu", metavar="GPU", help="only calls on this GPU, by index or UUID")
    which = add.add_mutually_exclusive_group()
    which.add_argument("--mutating", dest="calls", action="store_const", const="mutating", help="only calls that change something")
    which.add_argument("--reading", dest="calls", action="store_const", const="reading", help="only calls that change nothing")
    add.add_argument("--nth", type=int, default=1, metavar="N", help="the Nth matching call, 1 is the next one (default: %(default)s)")
    add.add_argument("--times", type=int, default=1, metavar="K", help="this many calls in a row; 0: all from then on (default: %(default)s)")
    what = add.add_mutually_exclusive_group(required=True)
    what.add_argument("--code", metavar="CODE", help="the call returns this NVML code, by name or number")
    what.add_argument("--kill", action="store_true", help="the calling process is killed (SIGKILL)")
    what.add_argument("--delay", type=float, metavar="SECONDS", help="the call takes this much longer; no lock is held meanwhile")
    add.add_argument("--when", choices=["before", "after"], default="before",
                     help="before: the call has no effect; after: it has taken effect already (default: %(default)s)")
    listing = actions.add_parser("list", help="list the faults with what they saw and hit")
    listing.set_defaults(command=_list)
    listing.add_argument("--json", action="store_true")
    actions.add_parser("clear", help="remove all faults").set_defaults(command=_clear)


def _add(emulator: Emulator, options: argparse.Namespace) -> None:
    code = code_number(options.code) if options.code else None
    if options.code and code is None:
        raise EmulatorError(f"{options.code} is not an NVML error code: give a number but 0, or one of {', '.join(CODES)}.")
    gpu = emulator.gpu_index(options.gpu) if options.gpu is not None else None
    print(emulator.add_fault(
        options.symbol, gpu=gpu, calls=options.calls or "any", nth=options.nth, times=options.times, code=code, kill=options.kill,
        delay=options.delay, when=options.when,
    ))


def _list(emulator: Emulator, options: argparse.Namespace) -> None:
    faults = emulator.faults()
    if options.json:
        print(json.dumps(faults, indent=2))
        return
    for fault in faults:
        print(_sentence(fault))


def _sentence(fault: dict[str, Any]) -> str:
    actions = {"code": f"fails with code {fault.get('code')}", "kill": "kills its caller", "delay": f"takes {fault.get('milliseconds')} ms more"}
    calls = "" if fault["calls"] == "any" else f"{fault['calls']} "
    where = "" if fault["gpu"] is None else f" on GPU {fault['gpu']}"
    until = {0: " and every later one", 1: ""}.get(fault["times"], f" and the {fault['times'] - 1} after it")
    return (
        f"{fault['id']}: {calls}call {fault['nth']} of {fault['symbol']}{where}{until} {actions[fault['action']]} {fault['when']} its effect;"
        f" {fault['seen']} seen, {fault['hits']} hit"
    )


def _clear(emulator: Emulator, _options: argparse.Namespace) -> None:
    emulator.clear_faults()
