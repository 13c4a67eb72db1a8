# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is in a stub package: files and scripts, by the parts of a driver."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.nodes.kernel_module import nvidia_module
from sandbox.nvml.build import build

from .stub import Stub

FILES = Path(__file__).resolve().parent / "files"
#: On a host: in PAUSE/<package> is a number of seconds that the package's script sleeps when it is configured; PAUSE/<package>.now shows that it does.
PAUSE = "/etc/stub-driver/pause"
#: On a host: the package's script fails when it is configured.
FAIL = "/etc/stub-driver/fail"

_UNIT = """\
[Unit]
Description={description}
After=emulated-nvidia-driver.service

[Service]
ExecStart=/usr/bin/{program}

[Install]
WantedBy=multi-user.target
"""
_PREFERENCES = """\
Package: src:*nvidia*:any src:cuda-drivers:any libnvidia* libcuda1 nvidia* cuda-drivers* firmware-nvidia-gsp libnvsdm
Pin: version {version}
Pin-Priority: 1000
"""


@dataclass(frozen=True)
class Entry:
    """A file of a package (``link`` is empty) or a symbolic link. ``path`` has no leading slash."""

    path: str
    content: bytes = b""
    mode: int = 0o644
    link: str = ""


@dataclass(frozen=True)
class Scripts:
    """Shell lines to run after a package was put in, and before it goes; ``ldconfig`` runs after both."""

    configure: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    ldconfig: bool = False


@dataclass(frozen=True)
class Layout:
    """What differs by system: the folder of libraries, and the kernel whose modules are prebuilt."""

    libraries: str
    kernel: str


def entries(stub: Stub, layout: Layout) -> list[Entry]:
    """Return the files of a package; one without parts has a file that says what it is, as the real ones have in /usr/share/doc."""
    found = [Entry(f"usr/share/stub-driver/{stub.name}", f"A stub for tests: {stub.name} {stub.full_version}\n".encode())]
    for part in stub.parts:
        found += PARTS[part](stub.driver, layout)
    return found


def scripts(stub: Stub) -> Scripts:
    """Return what a package runs."""
    configure: list[str] = []
    remove: list[str] = []
    ldconfig = False
    for part in stub.parts:
        if part.startswith(("module-build-", "module-open", "module-proprietary")):
            configure.append(f"dkms install -m nvidia -v {stub.driver}")
            remove.append(f"dkms remove -m nvidia -v {stub.driver} --all")
        elif part == "prebuilt":
            configure.append("for kernel in /lib/modules/*; do depmod --all ${kernel##*/} 2>/dev/null; done")
        elif part in ("library", "cuda", "nscq", "nvsdm"):
            ldconfig = True
    return Scripts(tuple(configure), tuple(remove), ldconfig)


def pausing(name: str) -> list[str]:
    """Return shell lines with which a package's script sleeps or fails where the host asks for it, so that a test can cut the power then."""
    return [
        f"if [ -e {PAUSE}/{name} ]; then touch {PAUSE}/{name}.now; sleep $(cat {PAUSE}/{name}); rm -f {PAUSE}/{name}.now; fi",
        f"if [ -e {FAIL}/{name} ]; then echo 'told to fail' >&2; exit 1; fi",
    ]


def _shared(name: str) -> Callable[[str, Layout], list[Entry]]:
    def make(version: str, layout: Layout) -> list[Entry]:
        library = build(driver_version=version) / f"{name}.so.{version}"
        folder = layout.libraries
        return [Entry(f"{folder}/{library.name}", library.read_bytes(), 0o755), Entry(f"{folder}/{name}.so.1", link=library.name)]

    return make


def _empty_library(name: str) -> Callable[[str, Layout], list[Entry]]:
    def make(version: str, layout: Layout) -> list[Entry]:
        return [Entry(f"{layout.libraries}/{name}.so.{version}", f"{name} {version}\n".encode(), 0o755)]

    return make


def _daemon(program: str, unit: str, description: str, *more: Entry) -> Callable[[str, Layout], list[Entry]]:
    def make(version: str, _layout: Layout) -> list[Entry]:
        text = _UNIT.format(description=description, program=program)
        return [_program(program, version), Entry(f"usr/lib/systemd/system/{unit}.service", text.encode()), *more]

    return make


def _program(name: str, version: str) -> Entry:
    return Entry(f"usr/bin/{name}", (FILES / name).read_text().replace("@VERSION@", version).encode(), 0o755)


def _source(flavour: str) -> Callable[[str, Layout], list[Entry]]:
    def make(version: str, layout: Layout) -> list[Entry]:
        folder = f"usr/src/nvidia-{version}"
        text = f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\nAUTOINSTALL="yes"\n'
        return [Entry(f"{folder}/dkms.conf", text.encode()), Entry(f"{folder}/nvidia.ko", nvidia_module(version, flavour, layout.kernel))]

    return make


def _prebuilt(version: str, layout: Layout) -> list[Entry]:
    return [Entry(f"usr/lib/modules/{layout.kernel}/updates/nvidia.ko", nvidia_module(version, "open", layout.kernel))]


def _pin(with_version: bool) -> Callable[[str, Layout], list[Entry]]:
    def make(version: str, _layout: Layout) -> list[Entry]:
        number = version.split(".", 1)[0]
        name, pinned = (version, f"{version}-*") if with_version else (number, f"{number}.*")
        return [Entry(f"etc/apt/preferences.d/nvidia-driver-pinning-{name}", _PREFERENCES.format(version=pinned).encode())]

    return make


def _nothing(_version: str, _layout: Layout) -> list[Entry]:
    return []


def _headers(_version: str, layout: Layout) -> list[Entry]:
    source = f"usr/src/linux-headers-{layout.kernel}"
    text = b"# Stands for the headers of the running kernel.\n"
    return [Entry(f"{source}/Makefile", text), Entry(f"usr/lib/modules/{layout.kernel}/build", link=f"/{source}")]


def _dkms(_version: str, _layout: Layout) -> list[Entry]:
    return [Entry("usr/sbin/dkms", (FILES / "dkms").read_bytes(), 0o755)]


PARTS: dict[str, Callable[[str, Layout], list[Entry]]] = {
    "library": _shared("libnvidia-ml"),
    "cuda": _shared("libcuda"),
    "smi": lambda version, _layout: [Entry("usr/bin/nvidia-smi", (build(driver_version=version) / "nvidia-smi").read_bytes(), 0o755)],
    "module-open": _source("open"),
    "module-proprietary": _source("proprietary"),
    "module-source-open": _source("open"),
    "module-source-proprietary": _source("proprietary"),
    "module-build-open": _nothing,
    "module-build-proprietary": _nothing,
    "prebuilt": _prebuilt,
    "firmware": lambda version, _layout: [Entry(f"usr/lib/firmware/nvidia/{version}/gsp_ga10x.bin", f"firmware {version}\n".encode())],
    "modprobe": lambda version, _layout: [_program("nvidia-modprobe", version)],
    "persistenced": _daemon("nvidia-persistenced", "nvidia-persistenced", "NVIDIA Persistence Daemon"),
    "fabricmanager": _daemon("nv-fabricmanager", "nvidia-fabricmanager", "NVIDIA fabric manager service",
                             Entry("usr/share/nvidia/nvswitch/fabricmanager.cfg", b"LOG_LEVEL=4\n")),
    "imex": _daemon("nvidia-imex", "nvidia-imex", "NVIDIA IMEX service"),
    "nscq": _empty_library("libnvidia-nscq"),
    "nvsdm": _empty_library("libnvsdm"),
    "pin-branch": _pin(False),
    "pin-version": _pin(True),
    "dkms": _dkms,
    "headers": _headers,
}
