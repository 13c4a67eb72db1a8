# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one entry point of the sandbox: `python -m sandbox [--name NAME] COMMAND`."""
from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from . import artifacts, inventory, report, spec
from .environment import complete_path
from .errors import SandboxError
from .lifecycle import Sandbox
from .state import RunState

DEFAULT_NAME = "default"

#: Commands that pass the rest of their arguments on, whatever it looks like -> how many of their own come before it.
_PASSING_ON = {"kubectl": 0, "ssh": 1, "emulator": 1}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0, 1 for a failure that was told in a sentence, 2 for a wrong command line."""
    own, passed_on = _split(sys.argv[1:] if arguments is None else list(arguments))
    options = _parser().parse_args(own, argparse.Namespace(argv=passed_on))
    os.umask(0o022)
    os.environ["PATH"] = complete_path(os.environ.get("PATH", ""))
    try:
        if os.geteuid() != 0:
            raise SandboxError("it makes namespaces, cgroups and network links: run it as root.")
        settings = artifacts.Settings.from_environment()
        state = RunState(settings.cache, options.name)
        result: int = options.run(Sandbox(state, settings, artifacts.Progress.to_terminal()), options)
        sys.stdout.flush()
        return result
    except (SandboxError, artifacts.ArtifactError) as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read stdout has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split a command line before what is meant for another program: argparse would take its options for ours."""
    position = 0
    while position < len(arguments) and arguments[position].startswith("--name"):
        position += 1 if "=" in arguments[position] else 2
    command = arguments[position] if position < len(arguments) else ""
    end = position + 1 + _PASSING_ON[command] if command in _PASSING_ON else len(arguments)
    return arguments[:end], arguments[end:]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description="A GPU cluster on this machine, without a GPU.")
    parser.add_argument("--name", default=os.environ.get("GPUFLEET_SANDBOX", DEFAULT_NAME), help="which sandbox (default: %(default)s)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="start the sandbox, or what of it does not run")
    up.add_argument("--spec", type=Path, default=spec.DEFAULT_SPEC, help="YAML file with the nodes (default: %(default)s)")
    up.set_defaults(run=_up)

    commands.add_parser("down", help="end and delete the sandbox").set_defaults(run=_down)

    status = commands.add_parser("status", help="show what runs")
    status.add_argument("--json", action="store_true", help="as JSON")
    status.set_defaults(run=_status)

    logs = commands.add_parser("logs", help="show the end of logs")
    logs.add_argument("of", metavar="COMPONENT|NODE", nargs="?", help="whose (default: all)")
    logs.add_argument("--lines", type=int, default=20, help="how many lines of each log (default: %(default)s)")
    logs.set_defaults(run=_logs)

    hosts = commands.add_parser("inventory", help="print the hosts as an Ansible inventory script does")
    hosts.add_argument("--list", action="store_true", required=True)
    hosts.set_defaults(run=_inventory)

    kubeconfig = commands.add_parser("kubeconfig", help="make a kubeconfig for another user and print its path")
    identity = kubeconfig.add_mutually_exclusive_group(required=True)
    identity.add_argument("--user", help="user name in a client certificate")
    identity.add_argument("--service-account", metavar="NAMESPACE/NAME", help="an existing service account, with a bound token")
    kubeconfig.add_argument("--group", action="append", default=[], help="group of the user; may be repeated")
    kubeconfig.add_argument("--token-expires", type=int, default=3600, metavar="S", help="life of the token in seconds; negative: expired")
    kubeconfig.set_defaults(run=_kubeconfig)

    commands.add_parser("kubectl", help="run kubectl as the administrator", usage="%(prog)s ...").set_defaults(run=_kubectl)
    for name, run, text in (("ssh", _ssh, "log in to a node or run a command on it"), ("emulator", _emulator, "run nvmlctl on a node")):
        command = commands.add_parser(name, help=text, usage="%(prog)s NODE ...")
        command.add_argument("node", metavar="NODE")
        command.set_defaults(run=run)

    node = commands.add_parser("node", help="change one node").add_subparsers(required=True, metavar="ACTION")
    add = node.add_parser("add", help="add a node and wait until it is up")
    add.add_argument("node", metavar="NODE")
    add.add_argument("--gpus", default="", metavar="MODEL[:COUNT],...", help="its GPUs (default: none)")
    add.set_defaults(run=_node_add)
    for action, run, text in (
        ("remove", _node_remove, "cut a node's power and delete it with its Node object"),
        ("reboot", _node_reboot, "let a node reboot itself and wait until it is up"),
        ("kill", _node_kill, "cut a node's power"),
        ("start", _node_start, "boot a node that is off and wait until it is up"),
    ):
        command = node.add_parser(action, help=text)
        command.add_argument("node", metavar="NODE")
        command.set_defaults(run=run)
    return parser


def _up(sandbox: Sandbox, options: argparse.Namespace) -> int:
    sandbox.up(spec.load(options.spec))
    return 0


def _down(sandbox: Sandbox, options: argparse.Namespace) -> int:
    left = sandbox.down()
    for sentence in left:
        print(f"sandbox: {sentence}.", file=sys.stderr)
    return 1 if left else 0


def _status(sandbox: Sandbox, options: argparse.Namespace) -> int:
    document = report.status(sandbox.state)
    print(json.dumps(document, indent=2) if options.json else report.status_text(document))
    return 0


def _logs(sandbox: Sandbox, options: argparse.Namespace) -> int:
    for name in [options.of] if options.of else report.log_names(sandbox.state):
        print(report.log_text(sandbox.state, name, options.lines))
    return 0


def _inventory(sandbox: Sandbox, options: argparse.Namespace) -> int:
    print(json.dumps(inventory.document(sandbox.hosts(), sandbox.settings), indent=2))
    return 0


def _kubeconfig(sandbox: Sandbox, options: argparse.Namespace) -> int:
    plane = sandbox.require_plane()
    if options.user:
        print(plane.user_kubeconfig(options.user, options.group))
        return 0
    namespace, _, name = options.service_account.partition("/")
    print(plane.service_account_kubeconfig(namespace, name, options.token_expires))
    return 0


def _kubectl(sandbox: Sandbox, options: argparse.Namespace) -> int:
    sandbox.require_plane()
    state = sandbox.state
    environment = dict(os.environ, KUBECONFIG=str(state.admin_kubeconfig), KUBECACHEDIR=str(state.root / "kubectl-cache"))
    program = str(state.bin / "kubectl")
    os.execve(program, [program, *options.argv], environment)


def _ssh(sandbox: Sandbox, options: argparse.Namespace) -> int:
    return _on_node(sandbox, options.node, " ".join(options.argv))  # as ssh itself joins them


def _emulator(sandbox: Sandbox, options: argparse.Namespace) -> int:
    return _on_node(sandbox, options.node, shlex.join(["nvmlctl", *options.argv]))


def _on_node(sandbox: Sandbox, node: str, shell_command: str) -> int:
    hosts = sandbox.hosts()
    command = hosts.access.command(hosts.get(node).address, shell_command)
    os.execvp(command[0], command)


def _node_add(sandbox: Sandbox, options: argparse.Namespace) -> int:
    raw = {"name": options.node, "gpus": spec.parse_gpus(options.gpus)}
    sandbox.add_node(spec.parse_node(raw, "node add"))
    return 0


def _node_remove(sandbox: Sandbox, options: argparse.Namespace) -> int:
    with sandbox.changing_node(options.node) as (hosts, host):
        hosts.remove(host)
    return 0


def _node_reboot(sandbox: Sandbox, options: argparse.Namespace) -> int:
    with sandbox.changing_node(options.node) as (hosts, host), sandbox.progress.step(f"rebooting {host.name}"):
        hosts.reboot(host)
    return 0


def _node_kill(sandbox: Sandbox, options: argparse.Namespace) -> int:
    with sandbox.changing_node(options.node) as (hosts, host):
        hosts.power_cut(host)
    return 0


def _node_start(sandbox: Sandbox, options: argparse.Namespace) -> int:
    sandbox.start_node(options.node)
    return 0
