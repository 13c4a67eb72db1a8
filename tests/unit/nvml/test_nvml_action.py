# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the action plugins do on the controller: the archive with pynvml.py, and a sentence for a Python that cannot run the module."""
from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml import module_edge
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from ansible_collections.gpufleet.dra.plugins.plugin_utils import nvml_action


def test_the_archive_holds_the_installed_pynvml_and_is_the_same_each_time() -> None:
    first, second = nvml_action.pynvml_archive(), nvml_action.pynvml_archive()
    assert first is not None and first == second
    name, content = first
    assert name == f"nvidia_ml_py-{metadata.version('nvidia-ml-py')}.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["pynvml.py"]
        assert archive.read("pynvml.py") == Path(str(metadata.distribution("nvidia-ml-py").locate_file("pynvml.py"))).read_bytes()


def installed(tmp_path: Path, source: bytes, recorded: bytes) -> Any:
    (tmp_path / "pynvml.py").write_bytes(source)
    digest = base64.urlsafe_b64encode(hashlib.sha256(recorded).digest()).rstrip(b"=").decode()

    class Entry(str):
        hash = SimpleNamespace(mode="sha256", value=digest)

        def locate(self) -> Path:
            return tmp_path / self

    return SimpleNamespace(files=[Entry("pynvml.py")], version="13.0")


def test_a_changed_pynvml_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _name: installed(tmp_path, b"x = 1\n", b"x = 1\n"))
    assert nvml_action.pynvml_archive() is not None
    monkeypatch.setattr(metadata, "distribution", lambda _name: installed(tmp_path, b"x = 2\n", b"x = 1\n"))
    with pytest.raises(FleetError, match="PynvmlCorrupt"):
        nvml_action.pynvml_archive()


def test_a_controller_without_the_package_carries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert nvml_action.pynvml_archive() is None


# Recorded from ansible-core 2.21 and 2.16 with Python 3.8, 3.6 and 2.7 on the node.
OLD_PYTHONS = [
    ({"msg": "Ansible requires Python 3.9 or newer on the target. Current version: 3.8.18 (default, May  9 2026, 07:33:04) [GCC 12.2.0]"}, "3.8.18"),
    ({"msg": "ansible-core requires a minimum of Python version 3.9. Current version: 3.8.18 (default)"}, "3.8.18"),
    ({"module_stderr": "    from __future__ import annotations\n    ^\nSyntaxError: future feature annotations is not defined\n"}, "of this host"),
    ({"module_stderr": '  File "/t/AnsiballZ_nvml_info.py", line 40\n    zip_data: str,\n            ^\nSyntaxError: invalid syntax\n'}, "of this host"),
]


@pytest.mark.parametrize(("result", "found"), OLD_PYTHONS)
def test_a_python_too_old_to_start_the_module_is_named(result: dict[str, str], found: str) -> None:
    explained = nvml_action.explain_old_python({"failed": True, **result}, "node-1")
    assert "module_stderr" not in explained
    assert explained["reason"] == "PythonTooOld" and explained["msg"].startswith(f"node-1: Python {found} is older than 3.9.")


@pytest.mark.parametrize("result", [
    {"failed": True, "msg": "Shared connection closed"},
    {"failed": True, "reason": "NvmlLibraryMissing", "msg": "future feature annotations is not defined"},
    {"failed": False, "msg": "future feature annotations is not defined"},
])
def test_other_results_stay_as_they_are(result: dict[str, Any]) -> None:
    assert nvml_action.explain_old_python(dict(result), "node-1") == result


def test_the_module_itself_refuses_python_3_8(monkeypatch: pytest.MonkeyPatch) -> None:
    module_edge.require_python()
    monkeypatch.setattr(module_edge.sys, "version_info", (3, 8, 18))
    with pytest.raises(FleetError, match="PythonTooOld"):
        module_edge.require_python()
