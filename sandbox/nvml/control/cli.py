# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvmlctl: makes and shows emulated machines, and does to them what happens to real ones."""
from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from . import calls, client_commands, fault_commands, kernel_module
from .knobs import parse, value_text
from .library import Emulator, EmulatorError

DEFAULT_DIRECTORY = "/proc/driver/nvml-emulator"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status is 2 for a refused request, which is told in one sentence."""
    options = _parser().parse_args(arguments)
    try:
        emulator = Emulator(options.dir, options.library)
        options.command(emulator, options)
    except EmulatorError as error:
        print(f"nvmlctl: {error}", file=sys.stderr)
        return 2
    return 0


def _models(emulator: Emulator, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(emulator.models(), indent=2))
        return
    for model in emulator.models():
        mark = f"  inferred: {model['inferred']}" if model["inferred"] else ""
        print(f"{model['model']:<22}{model['product']:<50}{model['memory_mib']:>6} MiB{mark}")


def _create(emulator: Emulator, options: argparse.Namespace) -> None:
    models = [name for spec in options.gpu for name in _expand(spec)]
    minors = [_number(text) for text in options.minors.split(",")] if options.minors else None
    if minors is not None and (len(minors) != len(models) or len(set(minors)) != len(minors)):
        raise EmulatorError(f"--minors needs {len(models)} different numbers, one per GPU.")
    state = Path(emulator.directory, "state")
    if state.exists() and not options.replace:
        raise EmulatorError(f"There is a machine in {emulator.directory} already; --replace makes a new one.")
    inferred = _inferred(emulator, models)
    if inferred and not options.inferred:
        raise EmulatorError(f"Partly inferred, so only with --inferred: {inferred}.")
    existed = state.parent.exists()
    if not existed:
        state.parent.mkdir(parents=True)
    try:
        emulator.create(options.seed, models, minors)
    except EmulatorError:
        if not existed:
            state.parent.rmdir()
        raise
    if inferred:
        print(f"nvmlctl: partly inferred: {inferred}.", file=sys.stderr)


def _inferred(emulator: Emulator, models: list[str]) -> str:
    """Those of the models that have numbers which were not seen on a board, and which numbers that are."""
    return ", ".join(f"{model['model']} ({model['inferred']})" for model in emulator.models() if model["model"] in models and model["inferred"])


def _expand(spec: str) -> list[str]:
    """MODEL or MODEL:COUNT as a list of model names."""
    name, _colon, count = spec.partition(":")
    return [name] * (_number(count) if count else 1)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise EmulatorError(f"{text!r} is not a number.")
    return int(text)


def _show(emulator: Emulator, options: argparse.Namespace) -> None:
    machine = emulator.show()
    if options.json:
        print(json.dumps(machine, indent=2))
        return
    print(f"driver {machine['module_version']}, loaded {machine['boots']} times")
    for gpu in machine["gpus"]:
        _show_gpu(gpu)


def _show_gpu(gpu: dict[str, Any]) -> None:
    mode = "on" if gpu["mig_current"] else "off"
    pending = "" if gpu["mig_current"] == gpu["mig_pending"] else f" (pending {'on' if gpu['mig_pending'] else 'off'})"
    knobs = "".join(f", {name}={value_text(name, value)}" for name, value in {**gpu["knobs"], **gpu["mig_knobs"]}.items() if value)
    knobs += f", {len(gpu['clients'])} clients" if gpu["clients"] else ""
    print(f"GPU {gpu['index']} {gpu['uuid']} {gpu['product']}, minor {gpu['minor']}, MIG {mode}{pending}{knobs}")
    for instance in gpu["instances"]:
        print(f"  GI {instance['gpu_instance_id']:<2} {instance['profile']:<16} memory slices {instance['start']}:{instance['size']}")
        for compute in instance["compute_instances"]:
            print(f"    CI {compute['compute_instance_id']} {compute['profile']:<16} {compute['uuid']}")


def _boot(emulator: Emulator, options: argparse.Namespace) -> None:
    proc = Path(options.proc_root or os.environ.get("NVML_EMULATOR_PROC") or Path(emulator.directory).parent / "nvidia")
    emulator.load_module(options.module_version)
    kernel_module.write_proc_tree(emulator, proc, options.module_version or "", options.flavour)
    if options.dev_root:
        kernel_module.make_device_nodes(emulator, Path(options.dev_root))


def _reload(emulator: Emulator, _options: argparse.Namespace) -> None:
    emulator.load_module()


def _reset(emulator: Emulator, options: argparse.Namespace) -> None:
    emulator.reset(emulator.gpu_index(options.gpu))


def _mode(emulator: Emulator, options: argparse.Namespace) -> None:
    emulator.set_mode(emulator.gpu_index(options.gpu), options.mode == "on")


def _repartition(emulator: Emulator, options: argparse.Namespace) -> None:
    instances: list[tuple[str, int | None]] = []
    for item in filter(None, options.instances.split(",")):
        name, at, start = item.partition("@")
        instances.append((name, _number(start) if at else None))
    emulator.repartition(emulator.gpu_index(options.gpu), instances)


def _destroy(emulator: Emulator, options: argparse.Namespace) -> None:
    emulator.destroy(emulator.gpu_index(options.gpu), options.gpu_instance)


def _set(emulator: Emulator, options: argparse.Namespace) -> None:
    settings = [parse(setting) for setting in options.settings]
    gpu = emulator.gpu_index(options.gpu)
    for knob, value in settings:
        emulator.set_knob(gpu, knob, value)


def _xid(emulator: Emulator, options: argparse.Namespace) -> None:
    emulator.xid(emulator.gpu_index(options.gpu), options.number, options.gpu_instance, options.compute_instance)


def _save(emulator: Emulator, options: argparse.Namespace) -> None:
    try:
        options.file.write_bytes(emulator.save())
    except OSError as error:
        raise EmulatorError(f"Cannot write {options.file}: {error.strerror}.") from error


def _restore(emulator: Emulator, options: argparse.Namespace) -> None:
    try:
        snapshot = options.file.read_bytes()
    except OSError as error:
        raise EmulatorError(f"Cannot read {options.file}: {error.strerror}.") from error
    emulator.restore(snapshot)


def _log(emulator: Emulator, options: argparse.Namespace) -> None:
    for entry in calls.read(Path(emulator.directory), options.since_marker, options.mutating):
        print(json.dumps(entry))


def _mark(emulator: Emulator, options: argparse.Namespace) -> None:
    calls.mark(Path(emulator.directory), options.name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nvmlctl", description="Control of emulated NVIDIA GPUs.")
    parser.add_argument("--dir", default=os.environ.get("NVML_EMULATOR_DIR") or DEFAULT_DIRECTORY, help="the emulator's directory")
    parser.add_argument("--library", help="path of the emulator's libnvidia-ml.so.1")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    models = _command(commands, "models", _models, "list the GPU models")
    models.add_argument("--json", action="store_true")

    create = _command(commands, "create", _create, "make a machine")
    create.add_argument("--gpu", action="append", default=[], metavar="MODEL[:COUNT]", help="GPUs, in PCI order; may be repeated")
    create.add_argument("--seed", default="machine", help="UUIDs and serials follow from it (default: %(default)s)")
    create.add_argument("--minors", metavar="N,...", help="device minors of the GPUs, where they differ from the indices")
    create.add_argument("--inferred", action="store_true", help="take models with numbers that were not seen on a board")
    create.add_argument("--replace", action="store_true", help="replace an existing machine")

    show = _command(commands, "show", _show, "show the machine")
    show.add_argument("--json", action="store_true")

    boot = _command(commands, "boot", _boot, "load the kernel module as at boot, with its /proc tree")
    boot.add_argument("--proc-root", help="where /proc/driver/nvidia is (default: nvidia beside the emulator's directory)")
    boot.add_argument("--dev-root", help="make device nodes below this directory")
    boot.add_argument("--module-version", metavar="VERSION", help="version of the kernel module (default: the library's)")
    boot.add_argument("--flavour", choices=list(kernel_module.FLAVOURS), default="open", help="of the kernel module (default: %(default)s)")

    _command(commands, "reload", _reload, "unload and load the kernel module")
    _gpu_command(commands, "reset", _reset, "reset a GPU")
    mode = _gpu_command(commands, "mode", _mode, "set MIG mode behind NVML's back")
    mode.add_argument("mode", choices=["on", "off"])
    repartition = _gpu_command(commands, "repartition", _repartition, "replace all instances behind NVML's back")
    repartition.add_argument("instances", metavar="PROFILE[@START],...")
    destroy = _gpu_command(commands, "destroy", _destroy, "destroy a GPU instance with its compute instances")
    destroy.add_argument("gpu_instance", type=int, metavar="GPU_INSTANCE")
    setting = _gpu_command(commands, "set", _set, "set knobs of a GPU")
    setting.add_argument("settings", nargs="+", metavar="KNOB=VALUE")

    xid = _gpu_command(commands, "xid", _xid, "post an XID event of a GPU")
    xid.add_argument("number", type=int, metavar="N")
    xid.add_argument("--gpu-instance", type=int, metavar="I")
    xid.add_argument("--compute-instance", type=int, metavar="C")

    client_commands.add_commands(commands)
    fault_commands.add_commands(commands)
    for name, function, description in (("save", _save, "write the machine to a file"), ("restore", _restore, "go back to a saved machine")):
        _command(commands, name, function, description).add_argument("file", type=Path, metavar="FILE")

    log = _command(commands, "log", _log, "print the call log as JSON lines")
    log.add_argument("--since-marker", action="store_true", help="only what came after the last marker")
    log.add_argument("--mutating", action="store_true", help="only calls that change something")
    mark = _command(commands, "mark", _mark, "put a marker into the call log")
    mark.add_argument("name", nargs="?", default="marker")
    return parser


def _command(commands: Any, name: str, function: Any, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=description, description=description)
    parser.set_defaults(command=function)
    return parser


def _gpu_command(commands: Any, name: str, function: Any, description: str) -> argparse.ArgumentParser:
    parser = _command(commands, name, function, description)
    parser.add_argument("gpu", metavar="GPU", help="index or UUID")
    return parser
