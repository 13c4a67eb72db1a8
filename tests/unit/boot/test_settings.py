# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of the boot service: its settings, and the result that it leaves."""
from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.boot.record import read_record, write_record
from ansible_collections.gpufleet.dra.plugins.module_utils.boot.settings import NodeAccess, read_settings
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

NODE = {"name": "n1", "server": "https://10.0.0.1:6443", "certificate": "/c.pem", "key": "/k.pem", "ca_pem": "PEM"}
SETTINGS: dict[str, Any] = {
    "version": 1, "layouts": [{"match": {"uuid": "GPU-1"}, "mode": "enabled", "instances": [{"profile": "3g.40gb", "start": 4}]}],
    "allow_reset": False, "ignore_health": False, "phase_timeout_s": 120, "wait_s": 60, "timeout_s": 300, "pause_node": NODE,
}


def written(folder: Path, document: Any) -> str:
    path = folder / "mig-boot.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def test_settings_are_read(tmp_path: Path) -> None:
    settings = read_settings(written(tmp_path, SETTINGS))
    assert settings.pause_node == NodeAccess("n1", "https://10.0.0.1:6443", "/c.pem", "/k.pem", None, "PEM")
    assert settings.gpu_uuids == {"GPU-1"} and len(settings.layout.rules) == 1
    assert read_settings(written(tmp_path, {**SETTINGS, "pause_node": None})).pause_node is None


@pytest.mark.parametrize(("document", "why"), [
    ("{", "Expecting property name"),
    ("[]", "indices"),
    ({**SETTINGS, "version": 2}, "it has version 2, this engine reads version 1"),
    ({key: value for key, value in SETTINGS.items() if key != "wait_s"}, "it has no 'wait_s'"),
    ({**SETTINGS, "layouts": [{"match": "all"}]}, ""),
    ({**SETTINGS, "pause_node": {**NODE, "password": "x"}}, "password"),
    ({**SETTINGS, "pause_node": {"name": "n1"}}, "missing"),
    ({**SETTINGS, "timeout_s": None}, "NoneType"),
])
def test_settings_that_cannot_be_used_are_a_sentence(tmp_path: Path, document: Any, why: str) -> None:
    with pytest.raises(FleetError, match=r"\[(BootSettingsUnusable|InvalidLayout)\]") as refused:
        read_settings(written(tmp_path, document))
    assert why in str(refused.value)


def test_missing_settings_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"nothing\.json: .*No such file or directory.*\[BootSettingsUnusable\]"):
        read_settings(str(tmp_path / "nothing.json"))


def test_a_result_is_written_whole_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.json"
    write_record(str(path), {"result": "ok", "executed": []})
    assert read_record(str(path)) == {"version": 1, "result": "ok", "executed": []}
    assert [item.name for item in path.parent.iterdir()] == ["state.json"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o004, "monitoring without root may read it"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 7}'])
def test_a_result_that_cannot_be_used_is_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    assert read_record(str(path)) == {}
    assert read_record(str(tmp_path / "missing.json")) == {}
