# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The reason registry: every code that the code base names is registered, every registered one is used, every text is a sentence."""
from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import ERROR, REASONS, WARNING, FleetError, finding

ROOT = Path(__file__).resolve().parents[3]


def used_codes() -> set[str]:
    codes: set[str] = set()
    for folder, pattern in (("plugins", "*.py"), ("roles", "*.yml"), ("playbooks", "*.yml")):
        for path in (ROOT / folder).rglob(pattern):
            if path.parent.name != "reason_rows":
                codes.update(word for word in re.findall(r"[\"'\[]([A-Z][A-Za-z0-9]+)[\"'\]]", path.read_text(encoding="utf-8")) if word in REASONS)
    return codes


def named_codes() -> set[str]:
    """Return what is passed as first argument to finding() anywhere in plugins/."""
    found: set[str] = set()
    for path in (ROOT / "plugins").rglob("*.py"):
        found.update(re.findall(r"\bfinding\(\s*[\"']([A-Za-z0-9]+)[\"']", path.read_text(encoding="utf-8")))
    return found


def fields_of(code: str) -> set[str]:
    reason = REASONS[code]
    return {name for text in (reason.cause, reason.remedy) for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_code_that_is_named_is_registered() -> None:
    assert named_codes() - set(REASONS) == set()


def test_every_registered_code_is_used_somewhere() -> None:
    assert set(REASONS) - used_codes() == set()


@pytest.mark.parametrize("code", sorted(REASONS))
def test_a_reason_is_a_sentence_with_a_remedy(code: str) -> None:
    reason = REASONS[code]
    assert re.fullmatch(r"([A-Z][a-z0-9]*)+", code), "codes are CamelCase, as Kubernetes reasons are"
    assert reason.severity in (ERROR, WARNING)
    assert not reason.cause.endswith("."), "the sentence adds the full stop"
    assert reason.remedy.endswith(".")
    assert "\n" not in reason.cause + reason.remedy
    found = finding(code, "node-1", **dict.fromkeys(fields_of(code), "x"))
    assert found.sentence().startswith("node-1: ") and found.sentence().endswith(f"[{code}]")


def test_a_failure_carries_what_fail_json_needs() -> None:
    failure = FleetError(finding("NvmlCallFailed", "node-1", {"code": 999}, call="nvmlInit", error="Unknown Error")).as_failure()
    assert failure["msg"].startswith("node-1: nvmlInit failed: Unknown Error. ")
    assert failure["reason"] == "NvmlCallFailed" and failure["object"] == "node-1" and failure["details"] == {"code": 999}


def test_a_missing_field_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        finding("NvmlCallFailed", "node-1", call="nvmlInit")
