# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The journal's file: what is on disk at each moment, and what is read back."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.converge import journal as journal_module
from ansible_collections.gpufleet.dra.plugins.module_utils.converge.journal import (
    DOING,
    DONE,
    FINISHED,
    RUN_FAILED,
    UNDOING,
    UNDONE,
    WAITING,
    Journal,
    is_unfinished,
    summary,
)
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.steps import DESTROY_GPU_INSTANCE, SET_MODE, Step
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

BEFORE = [{"uuid": "GPU-1", "instances": []}]
STEPS = [Step(DESTROY_GPU_INSTANCE, "GPU-1", "GPU 0", "3g.40gb", 9, start, 4, gpu_instance_id=start) for start in (0, 4)] + [
    Step(SET_MODE, "GPU-2", "GPU 1", enable=True)
]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "state"))


def on_disk(journal: Journal) -> dict[str, Any]:
    return dict(json.loads(journal.path.read_text()))


def states(journal: Journal) -> list[str]:
    return [row["state"] for row in on_disk(journal)["steps"]]


def test_every_mark_is_on_disk_when_it_returns(journal: Journal) -> None:
    assert journal.read() is None
    journal.begin(BEFORE, STEPS)
    assert states(journal) == ["planned"] * 3 and on_disk(journal)["before"] == BEFORE and on_disk(journal)["status"] == "running"
    first, second, third = journal.entries
    for entry, state in ((first, DOING), (first, DONE), (second, DOING), (third, WAITING), (first, UNDOING)):
        journal.mark(entry, state)
        assert states(journal)[journal.entries.index(entry)] == state
    assert journal.read() == on_disk(journal)
    assert [path.name for path in journal.path.parent.iterdir()] == ["mig-journal.json"]


def test_steps_are_found_by_gpu_and_told_in_short(journal: Journal) -> None:
    journal.begin(BEFORE, STEPS)
    assert [entry.step for entry in journal.entries_of("GPU-2")] == STEPS[2:]
    assert not journal.touched and journal.text() == "nothing done"
    first, second, third = journal.entries
    journal.mark(first, DONE)
    journal.mark(second, DOING)
    journal.mark(third, WAITING)
    assert journal.text() == f"done: {STEPS[0].text}, begun: {STEPS[1].text}, waiting for a reset: {STEPS[2].text}"
    short = summary(on_disk(journal))
    assert short == {"started": on_disk(journal)["run"]["started"], "status": "running", "done": [STEPS[0].text], "doing": [STEPS[1].text, STEPS[2].text]}


def test_what_took_effect_is_told_in_order(journal: Journal) -> None:
    journal.begin(BEFORE, STEPS)
    for entry in journal.entries[:2]:
        journal.mark(entry, DOING)
        journal.mark(entry, DONE)
    journal.mark(journal.entries[1], UNDONE)
    assert journal.executed == [STEPS[0].text, STEPS[1].text, f"undo: {STEPS[1].text}"]


def test_after_the_end_of_a_run_nobody_writes_any_more(journal: Journal) -> None:
    journal.begin(BEFORE, STEPS)
    journal.mark(journal.entries[0], DOING)
    journal.finish(RUN_FAILED, "a call hangs")
    written = journal.path.read_bytes()
    journal.mark(journal.entries[0], DONE)
    journal.finish(FINISHED)
    assert journal.path.read_bytes() == written and journal.entries[0].state == DOING
    assert on_disk(journal)["status"] == "failed" and on_disk(journal)["error"] == "a call hangs"


def test_an_earlier_run_is_concluded_with_its_steps_as_they_were(journal: Journal) -> None:
    journal.begin(BEFORE, STEPS)
    journal.mark(journal.entries[0], DOING)
    later = Journal(str(journal.path.parent))
    document = later.read()
    assert document is not None and is_unfinished(document)
    later.conclude(document)
    assert states(later) == ["doing", "planned", "planned"] and not is_unfinished(later.read())


@pytest.mark.parametrize(("content", "problem"), [
    ("nonsense", "Expecting value"),
    ("[]", "version None"),
    ('{"version": 2}', "version 2, this engine reads version 1"),
    ('{"version": 1, "status": "asleep", "run": {"started": "x"}, "steps": []}', "began and ended"),
    ('{"version": 1, "status": "failed", "run": {}, "steps": []}', "began and ended"),
    ('{"version": 1, "status": "failed", "run": {"started": "x"}, "steps": [{}]}', "steps cannot be read"),
    ("\udcff", "utf-8"),
])
def test_what_cannot_be_read_is_said_and_can_be_set_aside(journal: Journal, content: str, problem: str) -> None:
    journal.path.parent.mkdir()
    journal.path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=problem):
        journal.read()
    aside = Path(journal.set_aside())
    assert aside.read_bytes() == content.encode(errors="surrogateescape") and journal.read() is None


def test_a_folder_in_its_place_is_said(journal: Journal) -> None:
    journal.path.mkdir(parents=True)
    with pytest.raises(ValueError, match="directory"):
        journal.read()


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_a_write_that_fails_leaves_the_old_file_and_is_a_sentence(journal: Journal, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    journal.begin(BEFORE, STEPS)
    written = journal.path.read_bytes()

    def full(*_arguments: object, **_named: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(FleetError, match="No space left on device") as caught:
        patched.setattr(journal_module.os if call == "fsync" else journal_module.Path, call, full)
        journal.mark(journal.entries[0], DOING)
    assert caught.value.finding.code == "StateDirUnusable"
    assert journal.entries[0].state == "planned" and not journal.touched
    assert journal.path.read_bytes() == written and [path.name for path in journal.path.parent.iterdir()] == ["mig-journal.json"]
