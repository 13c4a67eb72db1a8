# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""CRI-O's drop-in file, on a stand-in that reads and prints configurations as crio(8) and crio.conf.d(5) say."""
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.crio import DROP_IN, Crio
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.document import SPEC_DIRS
from nodes import FakeNode, runtime


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "crio.conf.d").mkdir()
    return tmp_path


def crio_on(folder: Path, version: tuple[int, int, int] = (1, 34, 1), pid: int = 0) -> Crio:
    return Crio(FakeNode(folder), "node-1", runtime(folder, "crio", version, pid))


def test_the_defaults_need_nothing(folder: Path) -> None:
    plan = crio_on(folder).plan(SPEC_DIRS, True)
    assert plan.files == () and plan.effective.spec_dirs == SPEC_DIRS


def test_folders_that_are_missing_are_added(folder: Path) -> None:
    (folder / "crio.conf.d" / "10-site.conf").write_text('[crio.runtime]\ncdi_spec_dirs = ["/opt/cdi", "/run/cdi"]\n')
    plan = crio_on(folder).plan(SPEC_DIRS, True)
    (file,) = plan.files
    assert file.path == str(folder / "crio.conf.d" / DROP_IN)
    assert (file.content or "").endswith('[crio.runtime]\ncdi_spec_dirs = ["/opt/cdi", "/run/cdi", "/etc/cdi"]\n')
    Path(file.path).write_text(file.content or "")
    assert crio_on(folder).plan(SPEC_DIRS, True).files == ()
    gone = crio_on(folder).plan(SPEC_DIRS, False)
    assert [file.content for file in gone.files] == [None] and gone.effective.spec_dirs == ("/opt/cdi", "/run/cdi")


def test_a_later_file_that_sets_it_otherwise_is_named(folder: Path) -> None:
    (folder / "crio.conf.d" / "zzz.conf").write_text('[crio.runtime]\ncdi_spec_dirs = ["/opt/cdi"]\n')
    plan = crio_on(folder).plan(SPEC_DIRS, True)
    assert [found.code for found in plan.findings] == ["CdiNotEffective"] and "zzz.conf" in plan.findings[0].cause and plan.files == ()


def test_a_broken_file_is_refused(folder: Path) -> None:
    (folder / "crio.conf").write_text("[crio\n")
    with pytest.raises(FleetError) as caught:
        crio_on(folder).plan(SPEC_DIRS, True)
    assert caught.value.finding.code == "CdiConfigBroken"


def test_one_that_is_too_old(folder: Path) -> None:
    with pytest.raises(FleetError) as caught:
        crio_on(folder, (1, 22, 5))
    assert caught.value.finding.code == "CdiRuntimeTooOld"


def test_the_running_daemon_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert crio_on(folder).running() is None
    assert crio_on(folder, pid=7).running() is None
    monkeypatch.setenv("CRIO_RUNNING", '["/old"]')
    found = crio_on(folder, pid=7).running()
    assert found is not None and found.spec_dirs == ("/old",) and not found.serves(SPEC_DIRS)
