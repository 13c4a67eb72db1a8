# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvmlctl client: processes that use a GPU and stand in the way of changes."""
from __future__ import annotations

import argparse
import json
import os
import signal
from typing import Any

from .library import CLIENT_BLOCKS, CLIENT_KINDS, Emulator, EmulatorError


def add_commands(commands: Any) -> None:
    """Add ``client add``, ``client run``, ``client list`` and ``client remove``."""
    parser = commands.add_parser("client", help="processes that use a GPU", description="Clients: processes that use a GPU.")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    add = actions.add_parser("add", help="let a process use a GPU; prints the client's id")
    add.set_defaults(command=_add)
    add.add_argument("--pid", type=int, default=0, help="process id; only an unlisted client may have none")
    add.add_argument("--follow", action="store_true", help="the client ends with that process")
    run = actions.add_parser("run", help="use a GPU until this command is ended")
    run.set_defaults(command=_run)
    for command in (add, run):
        command.add_argument("gpu", metavar="GPU", help="index or UUID")
        command.add_argument("--kind", choices=CLIENT_KINDS, default="compute", help="the process list that names it (default: %(default)s)")
        command.add_argument("--gpu-instance", type=int, metavar="I", help="it uses this GPU instance, not the whole GPU")
        command.add_argument("--compute-instance", type=int, metavar="C", help="it uses this compute instance of the GPU instance")
        command.add_argument("--memory-mib", type=int, default=0, metavar="M", help="memory that it uses; 0: unknown (default)")
        command.add_argument("--blocks", default=",".join(CLIENT_BLOCKS), metavar="WHAT,...",
                             help="mode, reset, destroy (of what it uses), create (of the first instance), or nothing (default: %(default)s)")
    listing = actions.add_parser("list", help="list the clients")
    listing.set_defaults(command=_list)
    listing.add_argument("--json", action="store_true")
    remove = actions.add_parser("remove", help="remove a client")
    remove.set_defaults(command=_remove)
    remove.add_argument("client", metavar="ID|all")


def _use(emulator: Emulator, options: argparse.Namespace, pid: int, follow: bool) -> int:
    blocks = [name for name in options.blocks.split(",") if name and name != "nothing"]
    unknown = sorted(set(blocks) - set(CLIENT_BLOCKS))
    if unknown:
        raise EmulatorError(f"A client cannot block {', '.join(unknown)}: it may block {', '.join(CLIENT_BLOCKS)}, or nothing.")
    return emulator.add_client(
        emulator.gpu_index(options.gpu), pid=pid, follow=follow, kind=options.kind, gpu_instance=options.gpu_instance,
        compute_instance=options.compute_instance, memory_mib=options.memory_mib, blocks=blocks,
    )


def _add(emulator: Emulator, options: argparse.Namespace) -> None:
    print(_use(emulator, options, options.pid, options.follow))


def _run(emulator: Emulator, options: argparse.Namespace) -> None:
    """Blocked signals stay pending, so none is lost between the client's begin and sigwait."""
    ends = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    client = _use(emulator, options, os.getpid(), True)
    print(client, flush=True)
    signal.sigwait(ends)
    emulator.remove_client(client)


def _list(emulator: Emulator, options: argparse.Namespace) -> None:
    clients = [{"gpu": gpu["index"], **client} for gpu in emulator.show()["gpus"] for client in gpu["clients"]]
    if options.json:
        print(json.dumps(clients, indent=2))
        return
    for client in clients:
        print(_sentence(client))


def _sentence(client: dict[str, Any]) -> str:
    who = f"pid {client['pid']}" if client["pid"] else "no process"
    places = ("gpu", "GPU"), ("gpu_instance", "GPU instance"), ("compute_instance", "compute instance")
    where = ", ".join(f"{name} {client[key]}" for key, name in places if client[key] is not None)
    return f"{client['id']}: {who} ({client['kind']}) uses {where}; blocks {', '.join(client['blocks']) or 'nothing'}"


def _remove(emulator: Emulator, options: argparse.Namespace) -> None:
    if options.client != "all" and not options.client.isdecimal():
        raise EmulatorError(f"{options.client} is neither the id of a client nor 'all'.")
    emulator.remove_client(None if options.client == "all" else int(options.client))
