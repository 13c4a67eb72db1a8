# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What role mig decides and says after a failure (roles/mig/vars/main.yml), for every way in which a change can end."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
OLD, NEW = [{"start": 0, "profile": "7g.80gb"}], [{"start": 0, "profile": "1g.10gb"}]
RIGHT_AGAIN = "The node was put back as it was."
OUT = "Until a run succeeds, the node stays out of service."


def gpus(current: bool = True, pending: bool = True, instances: Any = OLD) -> dict[str, Any]:
    return {"gpus": [{"mig": {"current": current, "pending": pending, "instances": instances}}]}


def case(now: dict[str, Any] | None = None, reason: str = "InstanceDestroyFailed", **more: Any) -> dict[str, Any]:
    """The variables as they are when the last task of the rescue runs. ``now`` is what was read; None when reading failed."""
    return {
        "mig_manage_node": True, "mig_plan": {"nvml": gpus()}, "__mig_made": {"failed": True}, "__mig_resumed": {"changed": True},
        "__mig_failure": {"reason": reason, "msg": "it failed."}, "__mig_probe": {"before": {"paused": False}},
        "__mig_now": {"failed": True, "msg": "NVML says GPU_IS_LOST."} if now is None else {"nvml": now},
        **more,
    }


PAUSED_BEFORE = {"__mig_probe": {"before": {"paused": True}}}
# name: (variables, whether the node may go back, what is said)
CASES: dict[str, tuple[dict[str, Any], bool, str]] = {
    "unchanged": (case(gpus()), True, f"The GPUs are as before. {RIGHT_AGAIN}"),
    "pending": (case(gpus(pending=False), "ResetRequired"), True, f"The GPUs are as before, but for the pending MIG mode. {RIGHT_AGAIN}"),
    "others_done": (case(gpus(instances=NEW), "ResetRequired"), True, f"The other GPUs are as wanted. {RIGHT_AGAIN}"),
    "half": (case(gpus(instances=NEW)), False, f"The GPUs are neither as before nor as wanted; run again to finish from here. {OUT}"),
    "mode": (case(gpus(current=False)), False, f"The GPUs are neither as before nor as wanted; run again to finish from here. {OUT}"),
    "paused_before": (case(gpus(), **PAUSED_BEFORE), False, f"The GPUs are as before. {OUT}"),
    "others_done_later": (case(gpus(instances=NEW), "RebootRequired", **PAUSED_BEFORE), True, f"The other GPUs are as wanted. {RIGHT_AGAIN}"),
    "locked": (case(gpus(), "LayoutLocked"), False, f"The GPUs are as before. {OUT}"),
    "unreadable": (case(), False, f"How the GPUs are is not known: NVML says GPU_IS_LOST. {OUT}"),
    "lost": (case(gpus(), "", __mig_made={"unreachable": True, "msg": "no route"}), False, f"How its GPUs are is not known. {OUT}"),
    "lost_before": (case(None, "ClaimsInUse", __mig_now={"unreachable": True, "msg": "no route."}), False,
                    f"How the GPUs are is not known: no route. {OUT}"),
    "resume_failed": (case(gpus(), __mig_resumed={"failed": True}), True, f"The GPUs are as before. {OUT}"),
    "no_node": (case(gpus(), mig_manage_node=False, __mig_probe={"skipped": True}), True, "The GPUs are as before."),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Ansible's own answer for every case, each a host."""
    folder = tmp_path_factory.mktemp("play")
    hosts = {name: {**variables, "ansible_connection": "local"} for name, (variables, _safe, _text) in CASES.items()}
    (folder / "inventory.yml").write_text(yaml.safe_dump({"cases": {"hosts": hosts}}))
    answer = {"safe": "{{ __mig_safe | bool }}", "text": "{{ __mig_left_as }}"}
    task = {"name": "Say", "ansible.builtin.debug": {"msg": answer}}
    play = {"hosts": "all", "gather_facts": False, "vars_files": [str(ROOT / "roles/mig/vars/main.yml")], "tasks": [task]}
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(folder / "inventory.yml"), str(folder / "play.yml")],
        cwd=folder, env=dict(os.environ, ANSIBLE_CALLBACK_RESULT_FORMAT="json", NO_COLOR="1"),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    answers = {}
    for part in done.stdout.split("ok: [")[1:]:
        name, _bracket, rest = part.partition("] => ")
        answers[name] = json.JSONDecoder().raw_decode(rest)[0]["msg"]
    return answers


@pytest.mark.parametrize("name", CASES)
def test_after_a_failure(said: dict[str, dict[str, Any]], name: str) -> None:
    _variables, safe, text = CASES[name]
    assert said[name] == {"safe": safe, "text": text}
