# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""containerd's CDI settings: as they are in effect, and the drop-in file that makes them right.

What containerd would do is asked of containerd: every configuration, also one that does not exist yet, is laid into a private folder and read by
``containerd config dump``. So the dialect of the file (version 2, 3 or 4) and the way that it merges drop-in files are never guessed. They differ:

- 1.7 replaces a plugin's **whole section** by that of a later file, so a drop-in with two keys of the CRI plugin would take all its other settings
  away. There the drop-in is the section in effect without it, with the two keys changed.
- 2.x merges key by key, but up to 2.2 reads all files in the newest version that any of them names: a drop-in of version 3 beside a main file of
  version 2 loses the CRI settings of the latter. So the drop-in has the version of the main file.
"""
from __future__ import annotations

import fnmatch
import glob
import os
import re
import tempfile
from collections.abc import Sequence
from typing import Any

from ..reasons import Finding, FleetError, finding
from .document import Cdi, FileChange, Plan, Runtime
from .node import Node
from .toml_reader import TomlError, entries, values

DROP_IN = "zz-gpufleet-dra-cdi.toml"  # the last of its folder: of files that set the same, the last counts
DEFAULT_FOLDER = "/etc/containerd/conf.d"
_CRI = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime", 4: "io.containerd.cri.v1.runtime"}
_DISABLED = {"cri", *_CRI.values()}
_SECRET = ("password", "auth", "identitytoken")  # of a registry, below registry.configs and registry.auths
_OLDEST = (1, 7, 0)
_HEAD = "# Made by the Ansible role gpufleet.dra.cdi_runtime: lets devices be injected into containers by CDI.\n"

Values = dict[tuple[str, ...], Any]  # the values of a configuration by the path of their key


def newest_version(version: tuple[int, int, int]) -> int:
    """Return the newest configuration version that a containerd reads."""
    return 2 if version < (2, 0, 0) else 3 if version < (2, 3, 0) else 4


class Containerd:
    """The configuration of one containerd. Methods raise FleetError with what a user can do about it."""

    def __init__(self, node: Node, subject: str, runtime: Runtime) -> None:
        self._node = node
        self._subject = subject
        self._runtime = runtime
        if runtime.version < _OLDEST:
            raise FleetError(finding("CdiRuntimeTooOld", subject, runtime=f"containerd {runtime.version_text}", oldest="containerd 1.7"))
        self._path = runtime.config_file
        self._text = self._read(self._path)
        if self._text is None and runtime.embedded:
            raise FleetError(finding("CdiConfigBroken", subject, path=self._path, why=f"it is not there; {runtime.name} writes it at its first start"))
        self._main = {} if self._text is None else self._parsed(self._path, self._text)

    def plan(self, wanted: tuple[str, ...], present: bool) -> Plan:
        """Return what makes CDI serve the ``wanted`` folders, or, without ``present``, what takes away what an earlier run wrote."""
        place = self._place()
        now = self._dump(self._imports())
        effective = self._cdi(now)
        reads = (self._path, *self._imports(), *({os.path.dirname(place)} if place else ()))
        ours = self._read(place) if place else None
        if not present:
            after = self._cdi(self._dump([path for path in self._imports() if path != place])) if ours is not None else effective
            return Plan(after or Cdi(False, (), ""), tuple(self._removals(place, ours)), (), reads)
        if ours is None and effective is not None and effective.serves(wanted):
            return Plan(effective, (), (), reads)
        without = self._dump([path for path in self._imports() if path != place]) if ours is not None else now
        bare = self._cdi(without)
        problem = self._problem(bare, place)
        if problem is not None or place is None or bare is None:
            return Plan(effective or Cdi(False, (), ""), (), tuple(filter(None, [problem])), reads)
        content = self._drop_in(without, Cdi(True, bare.with_dirs(wanted), ""))
        if content == ours and effective is not None and effective.serves(wanted):
            return Plan(effective, (), (), reads)
        conflict = self._secrets(without, place) or self._conflict(without, content, place, wanted)
        if conflict is not None:
            return Plan(effective or bare, (), (conflict,), reads)
        files = [FileChange(place, content, ours)] if content != ours else []
        if self._text is None:
            files.append(FileChange(self._path, self._new_main(), None))
        return Plan(effective or bare, tuple(files), (), reads)

    # -- the parts of the configuration on disk ----------------------------------------------------------------------------------------------

    def _read(self, path: str) -> str | None:
        try:
            return self._node.read(path)
        except (OSError, UnicodeDecodeError) as error:
            raise FleetError(finding("CdiConfigBroken", self._subject, path=path, why=str(error))) from error

    def _parsed(self, path: str, text: str) -> Values:
        try:
            return values(text)
        except TomlError as error:
            raise FleetError(finding("CdiConfigBroken", self._subject, path=path, why=str(error))) from error

    def _patterns(self) -> list[str]:
        """Return the imports of the main file as absolute patterns; what a main file would import that is not there yet."""
        if self._text is None:
            return [f"{DEFAULT_FOLDER}/*.toml"]
        imports = self._main.get(("imports",), [])
        if not isinstance(imports, list):
            return []
        return [os.path.normpath(os.path.join(os.path.dirname(self._path), str(pattern))) for pattern in imports]

    def _imports(self) -> list[str]:
        """Return the files that the main file imports, in the order in which containerd reads them."""
        return [path for pattern in self._patterns() for path in _matches(pattern)]

    def _place(self) -> str | None:
        """Return where the drop-in goes: the last folder all of whose .toml files are imported; None when there is none."""
        folders = [os.path.dirname(pattern) for pattern in self._patterns() if os.path.basename(pattern) in ("*", "*.toml")]
        return f"{folders[-1]}/{DROP_IN}" if folders and "*" not in folders[-1] else None

    def _version(self) -> int:
        if self._text is None:
            return newest_version(self._runtime.version)
        version = self._main.get(("version",), 1)
        return version if isinstance(version, int) else 1

    def _new_main(self) -> str:
        return f'{_HEAD}version = {self._version()}\nimports = ["{DEFAULT_FOLDER}/*.toml"]\n'

    def _removals(self, place: str | None, ours: str | None) -> list[FileChange]:
        files = [FileChange(place, None, ours)] if place is not None and ours is not None else []
        if self._text is not None and self._text == self._new_main():
            others = [path for path in self._imports() if path != place]
            files += [FileChange(self._path, None, self._text)] if not others else []
        return files

    # -- what containerd makes of it ---------------------------------------------------------------------------------------------------------

    def _dump(self, imports: Sequence[str]) -> Values:
        """Return what containerd makes of the main file with just the ``imports``. Raises FleetError CdiConfigBroken with containerd's words."""
        with tempfile.TemporaryDirectory(prefix="gpufleet-cdi-") as folder:
            path = os.path.join(folder, "config.toml")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(self._with_imports(imports))
            # 2.0 brings older versions up only in the command migrate
            command = "migrate" if self._runtime.version[:2] == (2, 0) else "dump"
            shown = self._node.run([self._runtime.binary, "--config", path, "config", command])
        if shown.status != 0:
            raise FleetError(finding("CdiConfigBroken", self._subject, path=self._path, why=shown.last_words.replace(path, self._path)))
        return self._parsed(f"what {self._runtime.binary} config {command} shows", shown.out)

    def _with_imports(self, imports: Sequence[str]) -> str:
        """Return the main file with other imports. What is not there yet is an empty file of the newest version."""
        text = f"version = {self._version()}\n" if self._text is None else self._text
        statement = "imports = [" + ", ".join(_quoted(path) for path in imports) + "]"
        for entry in entries(text):
            if entry.path == ("imports",):
                return text[: entry.start] + statement + text[entry.end:]
        return f"{statement}\n{text}"

    def _cdi(self, dump: Values) -> Cdi | None:
        """Return the CDI settings in a dump, None when the CRI plugin is off: 2.x shows its settings also then."""
        disabled = dump.get(("disabled_plugins",), [])
        if isinstance(disabled, list) and _DISABLED & set(map(str, disabled)):
            return None
        for name in dict.fromkeys(_CRI.values()):
            dirs = dump.get(("plugins", name, "cdi_spec_dirs"))
            if dirs is not None:
                # a containerd that has no switch any more has CDI on
                enabled = dump.get(("plugins", name, "enable_cdi"), self._runtime.version >= (2, 0, 0))
                return Cdi(enabled is True, tuple(str(folder) for folder in dirs), "containerd config dump")
        return None

    def _problem(self, bare: Cdi | None, place: str | None) -> Finding | None:
        """Return what keeps a drop-in from making it right, None when nothing does."""
        if self._runtime.embedded and self._runtime.version < (2, 0, 0):
            # its section holds folders that change with every release, so it must not be repeated in a drop-in
            found = f"{self._runtime.name} with containerd {self._runtime.version_text}"
            return finding("CdiRuntimeTooOld", self._subject, runtime=found, oldest="one with containerd 2.0")
        if bare is None:
            return finding("CdiCriDisabled", self._subject, path=self._path)
        if self._version() not in _CRI:
            return finding("CdiConfigTooOld", self._subject, path=self._path, version=str(self._version()), newest=str(newest_version(self._runtime.version)))
        if place is None and self._runtime.embedded:
            folder = f"{os.path.dirname(self._path)}/config{'-v3' if self._version() > 2 else ''}.toml.d"
            return finding("CdiTemplateImportMissing", self._subject, path=self._path, line=f'imports = ["{folder}/*.toml"]', runtime=self._runtime.name)
        if place is None:
            return finding("CdiImportMissing", self._subject, path=self._path, line=f'imports = ["{DEFAULT_FOLDER}/*.toml"]')
        return None

    # -- the drop-in -------------------------------------------------------------------------------------------------------------------------

    def _drop_in(self, without: Values, cdi: Cdi) -> str:
        version = self._version()
        section = ("plugins", _CRI[version])
        settings: Values = {}
        if self._repeats():
            settings = {path: value for path, value in without.items() if path[: len(section)] == section}
        settings[(*section, "enable_cdi")] = True
        settings[(*section, "cdi_spec_dirs")] = list(cdi.spec_dirs)
        note = "# This containerd replaces the whole section by that of a later file, so what was in effect without this file is repeated here.\n"
        return f"{_HEAD}{note if len(settings) > 2 else ''}version = {version}\n{_written(settings)}"

    def _repeats(self) -> bool:
        """Return whether a drop-in has to repeat the whole section."""
        return self._runtime.version < (2, 0, 0)

    def _secrets(self, without: Values, place: str) -> Finding | None:
        """Refuse to repeat credentials: the drop-in travels through results and logs."""
        section = ("plugins", _CRI[self._version()])
        found = [".".join(path[2:]) for path, value in without.items() if path[:2] == section and path[-1] in _SECRET and value]
        return finding("CdiSectionHasSecrets", self._subject, path=self._path, drop_in=place, keys=", ".join(found)) if found and self._repeats() else None

    def _conflict(self, without: Values, content: str, place: str, wanted: tuple[str, ...]) -> Finding | None:
        """Return what would go wrong with the drop-in, as containerd itself reads it before it is there; None when nothing would."""
        with tempfile.TemporaryDirectory(prefix="gpufleet-cdi-") as folder:
            staged = os.path.join(folder, DROP_IN)
            with open(staged, "w", encoding="utf-8") as stream:
                stream.write(content)
            after = self._dump([staged if path == place else path for path in self._imports_with(place)])
        found = self._cdi(after)
        if found is None or not found.serves(wanted):
            return finding("CdiNotEffective", self._subject, path=place, files=", ".join(self._imports()) or "none")
        changed = sorted(
            ".".join(path) for path in {*without, *after}
            if path != ("imports",) and path[-1] not in ("enable_cdi", "cdi_spec_dirs") and without.get(path) != after.get(path)
        )
        return finding("CdiDropInConflict", self._subject, path=place, keys=", ".join(changed)) if changed else None

    def _imports_with(self, place: str) -> list[str]:
        """Return the imports as they will be with the drop-in in its place."""
        paths: list[str] = []
        for pattern in self._patterns():
            if os.path.dirname(pattern) == os.path.dirname(place) and "*" in os.path.basename(pattern):
                paths += sorted({*_matches(pattern), place})
            else:
                paths += _matches(pattern)
        return paths


def _matches(pattern: str) -> list[str]:
    """Return the files of one import as containerd finds them: a ``*`` stands for names with a leading dot too."""
    if "*" not in pattern:
        return [pattern]
    folder, name = os.path.split(pattern)
    if "*" in folder:
        return sorted(glob.glob(pattern))
    try:
        return sorted(os.path.join(folder, found) for found in os.listdir(folder) if fnmatch.fnmatchcase(found, name))
    except OSError:
        return []


def _quoted(text: str) -> str:
    """Return a TOML string."""
    escaped = "".join({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, char) for char in text)
    return f'"{escaped}"'


def _key(name: str) -> str:
    """Return a key as TOML, in quotes where it has to be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _value(value: object) -> str:
    """Return a value as TOML. A string here is a string; there are no dates in these configurations."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return str(value)


def _written(settings: Values) -> str:
    """Return settings as TOML, one table after the other."""
    tables: dict[tuple[str, ...], list[str]] = {}
    for path, value in settings.items():
        tables.setdefault(path[:-1], []).append(f"  {_key(path[-1])} = {_value(value)}\n")
    return "".join("\n[" + ".".join(map(_key, table)) + "]\n" + "".join(sorted(lines)) for table, lines in sorted(tables.items()))
