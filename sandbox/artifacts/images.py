# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The container images of the sandbox, made on this machine from Debian's files and our own builds; none is pulled.

``sandbox.local/pause:1`` (pod sandbox), ``sandbox.local/busybox:1` (test pods, with nvml-probe), ``sandbox.local/dra-driver-nvidia-gpu`` and
``sandbox.local/gpu-operator` (what the GPU Operator stand-in runs).
"""
from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from . import glibc
from .archive import Image
from .binaries import BINARIES
from .commands import run
from .errors import ArtifactError
from .lookup import ensure, version_of
from .progress import QUIET, Progress
from .rootfs import rootfs
from .settings import SANDBOX, Settings
from .store import digest, file_digest, tree_digest

REGISTRY = "sandbox.local"
SOURCES = SANDBOX / "images"
OPERATOR_CHART = SANDBOX / "gpu_operator" / "chart" / "Chart.yaml"
_PROGRAMS = ("gpu-kubelet-plugin", "nvidia-cdi-hook", "gpu-operator")
_LIBRARY_FOLDER = "lib/x86_64-linux-gnu"
#: What NVIDIA's libraries and tools, mounted into a container by CDI, expect of its C library.
_DRIVER_NEEDS = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")


def images(settings: Settings, progress: Progress = QUIET) -> dict[str, Path]:
    """Return the docker archive of each image, by image reference. Raises ArtifactError when one cannot be made."""
    root = rootfs(settings, progress)
    programs = ensure(_PROGRAMS, settings, progress)
    references = image_references(settings)
    recipe = [tree_digest(SOURCES), *(file_digest(Path(__file__).with_name(name)) for name in ("images.py", "archive.py"))]
    key = digest([recipe, root.parent.name, references, [file_digest(path) for path in programs.values()]])
    place = settings.store.find("images", key)
    if place is None:
        with progress.step("making the container images"):
            place = settings.store.publish("images", key, lambda folder: _make(folder, root, programs, references))
    return {reference: place / f"{name}.tar" for name, reference in references.items()}


def image_references(settings: Settings) -> dict[str, str]:
    """Return image references by short name."""
    driver = version_of(BINARIES["gpu-kubelet-plugin"], settings)
    return {
        "pause": f"{REGISTRY}/pause:1",
        "busybox": f"{REGISTRY}/busybox:1",
        "dra-driver-nvidia-gpu": f"{REGISTRY}/dra-driver-nvidia-gpu:v{driver}",
        "gpu-operator": f"{REGISTRY}/gpu-operator:{chart_version()}",
    }


def chart_version() -> str:
    """Return the version of the GPU Operator stand-in's chart. Raises ArtifactError when the chart says none."""
    match = re.search(r"^version: *[\"']?([^\s\"']+)", OPERATOR_CHART.read_text(), re.MULTILINE)
    if match is None:
        raise ArtifactError(f"{OPERATOR_CHART} has no version.")
    return match.group(1)


def _make(folder: Path, root: Path, programs: Mapping[str, Path], references: Mapping[str, str]) -> None:
    probe = compile_program(SOURCES / "nvml-probe.c", folder / "nvml-probe", "-ldl")
    pause = compile_program(SOURCES / "pause.c", folder / "pause", "-static")
    glibc.check_runs_on(root, [probe, *programs.values()])
    fill: dict[str, Callable[[Image], None]] = {
        "pause": lambda image: image.files.update({"pause": (pause.read_bytes(), 0o755)}),
        "busybox": lambda image: _with_programs(image, root, {"usr/bin/nvml-probe": probe}),
        "dra-driver-nvidia-gpu": lambda image: _with_programs(
            image,
            root,
            {
                "usr/bin/gpu-kubelet-plugin": programs["gpu-kubelet-plugin"],
                "usr/bin/nvidia-cdi-hook": programs["nvidia-cdi-hook"],
                "bin/bash": root / "bin/bash",
            },
        ),
        "gpu-operator": lambda image: _with_programs(image, root, {"usr/bin/gpu-operator": programs["gpu-operator"]}),
    }
    shell = {"Cmd": ["sh"], "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
    config = {"pause": {"Entrypoint": ["/pause"]}, "gpu-operator": {**shell, "Entrypoint": ["/usr/bin/gpu-operator"], "Cmd": []}}
    for name, reference in references.items():
        image = Image(reference, config.get(name, shell))
        fill[name](image)
        image.write(folder / f"{name}.tar")
    probe.unlink()
    pause.unlink()


def compile_program(source: Path, target: Path, *options: str) -> Path:
    """Compile one C file into ``target`` and return it. Raises ArtifactError with the compiler's words when that fails."""
    run(f"compiling {source.name}", ["gcc", "-std=c11", "-O2", "-s", "-Wall", "-Wextra", "-o", target, source, *options])
    return target


def _with_programs(image: Image, root: Path, programs: Mapping[str, Path]) -> None:
    """Fill ``image`` with busybox, the C library and ``programs`` (path in the image to file) with the libraries that they need."""
    image.folders |= {"dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/sbin", "usr/lib64", "var"}
    image.links["var/run"] = "../run"
    image.files["etc/passwd"] = (b"root:x:0:0:root:/root:/bin/sh\n", 0o644)
    busybox = root / "bin/busybox"
    image.files["bin/busybox"] = (busybox, 0o755)
    for applet in run("listing busybox's programs", [busybox, "--list"]).split():
        if applet != "busybox":
            image.links[f"bin/{applet}"] = "busybox"
    image.links["usr/bin/env"] = "/bin/busybox"
    for name, program in programs.items():
        image.links.pop(name, None)
        image.files[name] = (program, 0o755)
    needed = {"ld-linux-x86-64.so.2", *_DRIVER_NEEDS}
    for program in programs.values():
        needed |= shared_libraries(program, root)
    for library in needed:
        place = "lib64" if library.startswith("ld-linux") else _LIBRARY_FOLDER
        image.files[f"{place}/{library}"] = (root / _LIBRARY_FOLDER / library, 0o755)


def shared_libraries(program: Path, root: Path) -> set[str]:
    """Return the names of the shared libraries that ``program`` and its libraries need, all found below ``root``.

    Raises ArtifactError for one that is not there.
    """
    found: set[str] = set()
    waiting = [program]
    while waiting:
        for name in _needed(waiting.pop()):
            library = root / _LIBRARY_FOLDER / name
            if name in found:
                continue
            if not library.exists():
                raise ArtifactError(f"{program.name} needs {name}, which the root file system {root} does not have.")
            found.add(name)
            waiting.append(library)
    return found


def _needed(program: Path) -> list[str]:
    told = subprocess.run(["readelf", "--dynamic", "--wide", str(program)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", told.stdout)
