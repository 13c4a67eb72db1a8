# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Random and hostile layout files where something could happen: on GPUs, and as bytes on the controller."""
from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.action.mig_layout import ActionModule
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.parted import layout_from_options
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.plan import make_plan
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.emulator.modules import COLLECTIONS, ROOT
from tests.unit.mig.models import gpu

REFUSED, APPLIED = 100, 50
GOOD = b"version: v1\nmig-configs:\n  mine:\n    - {devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2}}\n"
BOMB = b"".join(b"x%d: &x%d [%s]\n" % (level, level, b", ".join([b"*x%d" % (level - 1)] * 9 if level else [b"lol"] * 9)) for level in range(12))


def test_fuzzed_layouts_on_gpus_are_applied_or_refused_without_a_trace(nvml_machine: Any, tmp_path: Path) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    command = [sys.executable, "-m", "tests.emulator.faults.fuzzed_runs", str(tmp_path / "fuzzed"), str(REFUSED), str(APPLIED)]
    done = machine.run(command, PYTHONPATH=f"{COLLECTIONS}:{ROOT}", NVML_EMULATOR_LIBRARY=str(machine.folder / "libnvidia-ml.so.1"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    print(report["reasons"])
    assert report["violations"] == []
    assert sum(report["reasons"].values()) == REFUSED + APPLIED and report["reasons"]["applied"] == APPLIED


CONFIGS = b"version: v1\nmig-configs: "
FILES: dict[str, bytes] = {
    "good": GOOD,
    "with a mark": b"\xef\xbb\xbf" + GOOD,
    "windows": GOOD.replace(b"\n", b"\r\n"),
    "yes": GOOD.replace(b"true", b"yes"),
    "anchors": CONFIGS + b"\n  mine:\n    - &e {devices: all, mig-enabled: true, mig-devices: &d {1g.10gb: 2}}\n    - *e\n",
    "json": b'{"version": "v1", "mig-configs": {"mine": []}}',
    "latin-1": GOOD + b"# caf\xe9\n",
    "utf-16": GOOD.decode().encode("utf-16"),
    "cut in a character": "version: é".encode()[:-1],
    "surrogate": b'version: "\\ud800"\n',
    "zeros": b"\x00" * 64,
    "control": GOOD + b"\x1b[2J",
    "elf": b"\x7fELF\x02\x01\x01" * 9,
    "cut": GOOD[:-20],
    "tabs": GOOD.replace(b"    -", b"\t-"),
    "nothing": b"",
    "space": b" \n\n",
    "comment": b"# nothing\n",
    "only a mark": b"---\n",
    "two documents": GOOD + b"---\n" + GOOD,
    "scalar": b"v1\n",
    "list": b"- v1\n",
    "python object": b"!!python/object/apply:os.system ['true']\n",
    "unknown tag": b"version: !vault x\n",
    "set": CONFIGS + b"!!set {a, b}\n",
    "binary": CONFIGS + b"{mine: !!binary gICA}\n",
    "date as name": CONFIGS + b"{2026-01-01: []}\n",
    "date as content": CONFIGS + b"{mine: 2026-01-01}\n",
    "no date": b"version: 2026-99-99\n",
    "no integer": b"version: !!int x\n",
    "no float": b"version: !!float x\n",
    "digits": b"version: " + b"9" * 5000,
    "not a number": b"version: .nan\n",
    "sexagesimal": GOOD.replace(b": 2", b": 1:30"),
    "octal": GOOD.replace(b": 2", b": 0700"),
    "merge": b"a: &a {version: v1}\n<<: *a\nmig-configs: {mine: []}\n",
    "bad merge": b"<<: 1\n",
    "list as key": b"? [a, b]\n: c\n",
    "unknown alias": b"version: *no\n",
    "itself": CONFIGS + b"&a {mine: [*a]}\n",
    "bomb": BOMB + CONFIGS + b"*x11\n",
    "bomb as entries": BOMB + CONFIGS + b"{mine: *x11}\n",
    "deep": b"[" * 3_000,
    "deep and closed": b"[" * 2_000 + b"]" * 2_000,
    "deep blocks": b"".join(b" " * level + b"a:\n" for level in range(1_500)),
    "long name": CONFIGS + b"{" + b"a" * 500_000 + b": []}\n",
    "many names": CONFIGS + b"{" + b", ".join(b"c%d: []" % number for number in range(20_000)) + b"}\n",
    "twice": b"version: v1\nversion: v2\n",
    "numbers as names": CONFIGS + b"{1: [{devices: all, mig-enabled: true, mig-devices: {19: 1}}]}\n",
    "huge": b"#" * (64 << 20),
}
PLANS = ("good", "with a mark", "windows", "yes", "anchors")


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    """4 GiB for this process: what unfolds without end shall fail here, and not take the machine along."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("bounded_memory")
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_bytes_is_a_plan_or_a_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mig-parted.yaml"
    path.write_bytes(FILES[name])
    action = ActionModule.__new__(ActionModule)
    monkeypatch.setattr(action, "_loader", type("Loader", (), {"get_real_file": staticmethod(str)}), raising=False)
    monkeypatch.setattr(action, "_find_needle", lambda _folder, needle: needle, raising=False)
    try:
        given = action.module_args({"mig_parted_config": str(path)})
        arrived = json.loads(json.dumps(given))  # as it travels to the node
        options = {"layouts": [], "mig_parted_selected": None, "unlisted": "keep", **arrived}
        make_plan([gpu("h100", 0)], layout_from_options(options), "keep")
    except FleetError as error:
        said = error.as_failure()
        assert name not in PLANS and said["reason"] and said["remedy"] and "\n" not in said["msg"] and len(said["msg"]) < 3_000, said["msg"][:3_000]
    else:
        assert name in PLANS
