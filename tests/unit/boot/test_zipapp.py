# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The engine as one file: the same file for the same engine, and nothing needed beside it."""
from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from ansible_collections.gpufleet.dra.plugins.plugin_utils import zipapp

ROOT = Path(__file__).resolve().parents[3]
IMPORT_ALL = """
import importlib, sys, zipfile
sys.path.insert(0, sys.argv[1])
for name in sorted(zipfile.ZipFile(sys.argv[1]).namelist()):
    if name.endswith(".py") and name != "__main__.py":
        importlib.import_module(name[:-3].replace("/__init__", "").replace("/", "."))
outside = [name for name, module in sys.modules.items() if "site-packages" in (getattr(module, "__file__", None) or "")]
print(outside)
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engine") / "gpufleet-mig.pyz"
    path.write_bytes(zipapp.engine_archive())
    return path


def test_an_unchanged_engine_is_an_unchanged_file(monkeypatch: pytest.MonkeyPatch, engine: Path) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    os.utime(ROOT / "plugins" / "module_utils" / "boot" / "main.py")
    assert zipapp.engine_archive() == engine.read_bytes()


def test_it_holds_the_engine_and_pynvml_and_nothing_of_the_controller(engine: Path) -> None:
    with zipfile.ZipFile(engine) as archive:
        names = archive.namelist()
        assert archive.read("pynvml.py") == Path(str(metadata.distribution("nvidia-ml-py").locate_file("pynvml.py"))).read_bytes()
        assert {"__main__.py", "gpufleet_mig/boot/main.py", "gpufleet_mig/converge/run.py", "gpufleet_mig/reasons.py"} <= set(names)
        assert not [name for name in names if "/kube/" in name or "__pycache__" in name]


def test_every_module_in_it_imports_without_site_packages(engine: Path) -> None:
    done = subprocess.run([sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(engine)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_first_lines_are_read_by_a_python_that_is_too_old(engine: Path) -> None:
    with zipfile.ZipFile(engine) as archive:
        source = archive.read("__main__.py").decode()
    check = source.partition("\nfrom ")[0]
    ast.parse(source, feature_version=(3, 0))
    old = f"import sys\nclass Version(tuple): pass\nsys.version_info = Version((3, 8, 1))\n{check}"
    done = subprocess.run([sys.executable, "-I", "-c", old], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("gpufleet-mig: Python 3.8 is older than 3.9."), done.stderr


def test_a_controller_without_nvidia_ml_py_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipapp, "pynvml_archive", lambda: None)
    with pytest.raises(FleetError, match=r"controller: .*\[PynvmlMissing\]"):
        zipapp.engine_archive()
