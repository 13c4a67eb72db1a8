# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Makes artifacts and prints where they lie: ``python -m sandbox.artifacts [NAME...]``."""
from __future__ import annotations

import argparse
import sys

from . import ArtifactError, Progress, Settings, ensure, images, install_host_packages, node_layer, rootfs
from .binaries import BINARIES

_WHOLE = {"rootfs": rootfs, "node-layer": node_layer}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.artifacts", description="Fetch or build what the sandbox needs; print name and path.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", default=[*BINARIES, *_WHOLE, "images"],
        help=f"one of {', '.join([*BINARIES, *_WHOLE, 'images'])}; none means all",
    )
    parser.add_argument("--host-packages", action="store_true", help="only install the packages that this machine lacks, by apt-get")
    options = parser.parse_args(arguments)
    names = options.names
    progress = Progress.to_terminal()
    try:
        if options.host_packages:
            install_host_packages(progress)
            return 0
        settings = Settings.from_environment()
        found = ensure([name for name in names if name not in _WHOLE and name != "images"], settings, progress)
        found |= {name: make(settings, progress) for name, make in _WHOLE.items() if name in names}
        if "images" in names:
            found |= images(settings, progress)
    except ArtifactError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, path in found.items():
        print(name, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
