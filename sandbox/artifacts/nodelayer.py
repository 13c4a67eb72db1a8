# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The layer that turns the plain Debian root file system into a GPU node: put over it as an overlay."""
from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from .commands import run
from .images import images
from .lookup import ensure
from .progress import QUIET, Progress
from .settings import SANDBOX, Settings
from .store import digest, file_digest, tree_digest

#: A tree that mirrors the host's root: units, configuration and scripts.
NODE_FILES = SANDBOX / "nodes" / "files"
NVML = SANDBOX / "nvml"
IMAGE_FOLDER = "opt/images"
_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet")
_LIBRARY_FOLDER = "usr/lib/x86_64-linux-gnu"
_RECIPE = 1  # raise it when the way of making it changes


def node_layer(settings: Settings, progress: Progress = QUIET) -> Path:
    """Return the folder with the layer: programs in /usr/local/bin, the emulated driver as Debian's packages lay it out, nvmlctl, the files of
    sandbox/nodes/files and the image archives in /opt/images. Hosts must not write into it. Raises ArtifactError when it cannot be made."""
    programs = ensure(_PROGRAMS, settings, progress)
    archives = images(settings, progress)
    from sandbox.nvml.build import build

    driver = build()
    key = digest(
        [
            _RECIPE,
            tree_digest(NODE_FILES),
            tree_digest(driver),
            tree_digest(NVML),
            {reference: archive.parent.name for reference, archive in archives.items()},
            {name: file_digest(path) for name, path in programs.items()},
        ]
    )
    found = settings.store.find("nodelayer", key)
    if found is not None:
        return found
    with progress.step("making the node layer"):
        return settings.store.publish("nodelayer", key, lambda place: _make(place, programs, archives, driver))


def _make(place: Path, programs: Mapping[str, Path], archives: Mapping[str, Path], driver: Path) -> None:
    shutil.copytree(NODE_FILES, place, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name, program in programs.items():
        _install(program, place / "usr/local/bin" / name)
    for archive in archives.values():
        _install(archive, place / IMAGE_FOLDER / archive.name)
    _install_driver(place, driver)


def _install_driver(place: Path, driver: Path) -> None:
    """Lay the emulated driver out as the Debian packages of the real one do; libcuda is there to be found and mounted, nothing calls it."""
    libraries = place / _LIBRARY_FOLDER
    (nvml,) = driver.glob("libnvidia-ml.so.*.*")
    version = nvml.name.removeprefix("libnvidia-ml.so.")
    _install(nvml, libraries / nvml.name)
    cuda = libraries / f"libcuda.so.{version}"
    run("making libcuda", ["gcc", "-shared", "-nostdlib", "-Wl,-soname,libcuda.so.1", "-o", cuda, "-x", "c", "/dev/null"])
    for library in (nvml, cuda):
        (libraries / (library.name.removesuffix(f".{version}") + ".1")).symlink_to(library.name)
    _install(driver / "nvidia-smi", place / "usr/bin/nvidia-smi")
    _install(driver / "nvmlctl", place / "usr/local/bin/nvmlctl")


def _install(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
