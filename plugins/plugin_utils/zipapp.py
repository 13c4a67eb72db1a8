# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One copy of the MIG engine as one file: a zip archive that any Python from 3.9 on runs (`python3 gpufleet-mig.pyz`), with nvidia-ml-py inside."""
from __future__ import annotations

import io
import zipfile
from pathlib import Path

from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding
from ansible_collections.gpufleet.dra.plugins.plugin_utils.nvml_action import pynvml_archive

_PACKAGE = "gpufleet_mig"
# Everything of module_utils but what runs on the controller (kube).
_ROOMS = ("boot", "converge", "dra", "mig", "nvml", "reason_rows")
_FILES = ("reasons.py",)
# No newer syntax than Python 3.0 knows, so that an old Python gets as far as the sentence.
_MAIN = f"""\
import sys

if sys.version_info < (3, 9):
    sys.exit("gpufleet-mig: Python %d.%d is older than 3.9. Name a newer one by mig_boot_python. [PythonTooOld]" % sys.version_info[:2])

from {_PACKAGE}.boot.main import main

sys.exit(main())
"""


def engine_archive() -> bytes:
    """Return the archive. It depends on the content of its files alone, so an unchanged engine is an unchanged file.

    Raises FleetError PynvmlMissing when the controller has no nvidia-ml-py, or PynvmlCorrupt.
    """
    packed = pynvml_archive()
    if packed is None:
        raise FleetError(finding("PynvmlMissing", "controller", error="it is not installed beside ansible-core"))
    with zipfile.ZipFile(io.BytesIO(packed[1])) as archive:
        pynvml = {name: archive.read(name) for name in archive.namelist()}
    contents = {"__main__.py": _MAIN.encode(), f"{_PACKAGE}/__init__.py": b"", **pynvml, **_engine_sources()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(contents):
            # ZipInfo has a fixed date. Deflated, for nodes read it at every boot from what may be a slow disk.
            archive.writestr(zipfile.ZipInfo(name), contents[name], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _engine_sources() -> dict[str, bytes]:
    utils = Path(__file__).resolve().parent.parent / "module_utils"
    paths = [*(utils / name for name in _FILES), *(path for room in _ROOMS for path in (utils / room).rglob("*.py"))]
    return {f"{_PACKAGE}/{path.relative_to(utils).as_posix()}": path.read_bytes() for path in paths}
