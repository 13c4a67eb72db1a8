# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The layer that turns the plain Debian root file system into a GPU node: put over it as an overlay."""
from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from sandbox.nvml.build import BuildError, build

from . import glibc
from .errors import ArtifactError
from .images import images
from .lookup import ensure
from .progress import QUIET, Progress
from .rootfs import rootfs
from .settings import SANDBOX, Settings
from .store import digest, file_digest, tree_digest

#: A tree that mirrors the host's root: units, configuration and scripts.
NODE_FILES = SANDBOX / "nodes" / "files"
IMAGE_FOLDER = "opt/images"
_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet")
_LIBRARY_FOLDER = "usr/lib/x86_64-linux-gnu"
_RECIPE = 2  # raise it when the way of making it changes


def node_layer(settings: Settings, progress: Progress = QUIET) -> Path:
    """Return the folder with the layer: programs in /usr/local/bin, the emulated driver as Debian's packages lay it out, nvmlctl, the files of
    sandbox/nodes/files and the image archives in /opt/images. Hosts must not write into it. Raises ArtifactError when it cannot be made."""
    programs = ensure(_PROGRAMS, settings, progress)
    archives = images(settings, progress)
    driver = emulated_driver()
    glibc.check_runs_on(rootfs(settings, progress), [*sorted(driver.glob("*.so.*")), driver / "nvidia-smi"])
    key = digest(
        [
            _RECIPE,
            tree_digest(NODE_FILES),
            tree_digest(driver),
            {reference: archive.parent.name for reference, archive in archives.items()},
            {name: file_digest(path) for name, path in programs.items()},
        ]
    )
    found = settings.store.find("nodelayer", key)
    if found is not None:
        return found
    with progress.step("making the node layer"):
        return settings.store.publish("nodelayer", key, lambda place: make_layer(place, NODE_FILES, programs, archives, driver))


def make_layer(place: Path, files: Path, programs: Mapping[str, Path], archives: Mapping[str, Path], driver: Path) -> None:
    """Fill the folder ``place``: ``files`` mirrors the host's root; the rest is by name (programs) and image reference (archives)."""
    shutil.copytree(files, place, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name, program in programs.items():
        _install(program, place / "usr/local/bin" / name)
    for archive in archives.values():
        _install(archive, place / IMAGE_FOLDER / archive.name)
    _install_driver(place, driver)
    _set_modes(place)


def emulated_driver() -> Path:
    """Return the folder with the NVML emulator, built if it is not there. Raises ArtifactError with the compiler's words."""
    try:
        return build()
    except BuildError as error:
        raise ArtifactError(str(error)) from error


def _install_driver(place: Path, driver: Path) -> None:
    """Lay the emulated driver out as the Debian packages of the real one do."""
    for library in sorted(driver.glob("*.so.*")):
        _install(library, place / _LIBRARY_FOLDER / library.name)
    # for nvmlctl on hosts whose driver comes from packages: theirs is hidden until one is installed
    _install((driver / "libnvidia-ml.so.1").resolve(), place / "usr/local/lib/sandbox/libnvidia-ml.so.1")
    _install(driver / "nvidia-smi", place / "usr/bin/nvidia-smi")
    _install(driver / "nvmlctl", place / "usr/local/bin/nvmlctl")


def _install(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def _set_modes(place: Path) -> None:
    """Give everything the modes of a distribution's files, whatever the umask was when the checkout was made."""
    for path in place.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
