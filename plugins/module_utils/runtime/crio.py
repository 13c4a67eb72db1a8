# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""CRI-O's CDI settings: as they are in effect, and the drop-in file that makes them right.

CRI-O has CDI always on since 1.23.2; only its folders can be set, by ``cdi_spec_dirs`` in ``[crio.runtime]``. It merges the files of its drop-in folder key
by key in the order of their names (crio.conf.d(5)).
"""
from __future__ import annotations

import os
import re
import shutil
import tempfile

from ..reasons import FleetError, finding
from .document import Cdi, FileChange, Plan, Runtime
from .node import Node
from .toml_reader import TomlError, entries

DROP_IN = "zz-gpufleet-dra-cdi.conf"
_OLDEST = (1, 23, 2)
_KEY = ("crio", "runtime", "cdi_spec_dirs")
_HEAD = "# Made by the Ansible role gpufleet.dra.cdi_runtime: lets devices be injected into containers by CDI.\n"


class Crio:
    """The configuration of one CRI-O. Methods raise FleetError with what a user can do about it."""

    def __init__(self, node: Node, subject: str, runtime: Runtime) -> None:
        self._node = node
        self._subject = subject
        self._runtime = runtime
        if runtime.version < _OLDEST:
            raise FleetError(finding("CdiRuntimeTooOld", subject, runtime=f"CRI-O {runtime.version_text}", oldest="CRI-O 1.23.2"))
        process = node.process(runtime.pid) if runtime.pid else None
        given = process.option("--config-dir", "-d") if process is not None else None
        self._folder = given or f"{os.path.dirname(runtime.config_file)}/crio.conf.d"

    def plan(self, wanted: tuple[str, ...], present: bool) -> Plan:
        """Return what makes CDI serve the ``wanted`` folders, or, without ``present``, what takes away what an earlier run wrote."""
        place = f"{self._folder}/{DROP_IN}"
        reads = (self._runtime.config_file, self._folder, *self._files())
        try:
            ours = self._node.read(place)
        except (OSError, UnicodeDecodeError) as error:
            raise FleetError(finding("CdiConfigBroken", self._subject, path=place, why=str(error))) from error
        if not present:
            return Plan(self._config(""), (FileChange(place, None, ours),) if ours is not None else (), (), reads)
        effective = self._config(None)
        if effective.serves(wanted):
            return Plan(effective, (), (), reads)
        dirs = ", ".join(f'"{folder}"' for folder in effective.with_dirs(wanted))
        content = f"{_HEAD}[crio.runtime]\ncdi_spec_dirs = [{dirs}]\n"
        if not self._config(content).serves(wanted):
            return Plan(effective, (), (finding("CdiNotEffective", self._subject, path=place, files=", ".join(self._files()) or "none"),), reads)
        return Plan(effective, (FileChange(place, content, ours),), (), reads)

    def running(self) -> Cdi | None:
        """Return the settings of the running daemon by its own words, None when it does not answer."""
        if not self._runtime.pid:
            return None
        shown = self._node.run([self._runtime.binary, "status", "config"])
        dirs = _spec_dirs(shown.out) if shown.status == 0 else None
        return None if dirs is None else Cdi(True, dirs, "crio status config")

    def _files(self) -> list[str]:
        try:
            return sorted(os.path.join(self._folder, name) for name in os.listdir(self._folder))
        except OSError:
            return []

    def _config(self, drop_in: str | None) -> Cdi:
        """Return what CRI-O makes of its files, with ``drop_in`` in its place when it is given. Raises FleetError CdiConfigBroken with CRI-O's words."""
        with tempfile.TemporaryDirectory(prefix="gpufleet-cdi-") as folder:
            for path in self._files():
                if os.path.isfile(path):
                    shutil.copy(path, folder)
            if drop_in is not None:
                with open(os.path.join(folder, DROP_IN), "w", encoding="utf-8") as stream:
                    stream.write(drop_in)
            # a main file that is not there is CRI-O's own default, but not when it is named
            main = ["--config", self._runtime.config_file] if os.path.exists(self._runtime.config_file) else []
            shown = self._node.run([self._runtime.binary, *main, "--config-dir", folder, "config"])
        if shown.status != 0:
            raise FleetError(finding("CdiConfigBroken", self._subject, path=self._runtime.config_file, why=shown.last_words))
        dirs = _spec_dirs(shown.out)
        if dirs is None:
            why = f"{self._runtime.binary} config shows no cdi_spec_dirs"
            raise FleetError(finding("CdiConfigBroken", self._subject, path=self._runtime.config_file, why=why))
        return Cdi(True, dirs, "crio config")


def _spec_dirs(shown: str) -> tuple[str, ...] | None:
    """Return cdi_spec_dirs of a configuration that CRI-O printed, None when it is not there. A setting that has its default value is commented out there."""
    for text in (shown, _uncommented(shown)):
        try:
            found = [entry.value for entry in entries(text) if entry.path[-1] == _KEY[-1]]
        except TomlError:
            continue
        if found and isinstance(found[-1], list):
            return tuple(str(folder) for folder in found[-1])
    return None


def _uncommented(shown: str) -> str:
    """Return just the commented setting cdi_spec_dirs, with the comment signs taken away."""
    found = re.search(r"^[ \t]*#[ \t]*cdi_spec_dirs[ \t]*=[ \t]*\[[^\]]*\]", shown, re.MULTILINE)
    return re.sub(r"^[ \t]*#[ \t]?", "", found[0], flags=re.MULTILINE) if found is not None else ""
