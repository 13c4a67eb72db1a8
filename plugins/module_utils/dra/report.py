# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A verdict for people and programs: aligned table, one-sentence summary, JSON document, JUnit XML."""
from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from ..reasons import Finding
from .expected import NVML_ATTRIBUTES
from .verdict import NOT_JUDGED, RIGHT, WRONG, Row, Verdict

DOCUMENT_VERSION = 1
_HEADINGS = ("node", "gpu", "layout", "devices published", "verdict")


def document(verdict: Verdict, driver: str, judged_at: str) -> dict[str, Any]:
    """Return the verification document: what verdict.json holds and what user expectations query. ``judged_at`` is a time in RFC 3339;
    ``text`` holds the lines of the table and the summary, for people."""
    return {
        "version": DOCUMENT_VERSION,
        "driver": driver,
        "judged_at": judged_at,
        "verdict": WRONG if verdict.errors else RIGHT,
        "text": [*table(verdict.rows), "", summary(verdict)],
        "gpus": [row.as_dict() for row in verdict.rows],
        "counts": _counts(verdict),
        "findings": [item.as_dict() for item in verdict.findings],
        "expected": {node: [device.as_dict() for device in devices] for node, devices in verdict.expected.items()},
        "compared": {
            "attributes": list(NVML_ATTRIBUTES),
            "capacities": "all",
            "not_judged": ["attributes that do not come from NVML, such as resource.kubernetes.io/pcieRoot and numaNode", "taints"],
        },
    }


def summary(verdict: Verdict) -> str:
    """Return one sentence: how many GPUs of how many nodes are right, wrong and not judged."""
    counts = _counts(verdict)
    whole = f"{counts['gpus_right']} of {_number(counts['gpus'], 'GPU')} on {_number(counts['nodes'], 'node')}"
    parts = [f"{whole} published exactly as NVML reports"]
    if counts["errors"]:
        parts.append(_number(counts["errors"], "error"))
    if counts["not_judged"]:
        parts.append(f"{_number(counts['not_judged'], 'host')} not judged")
    return ", ".join(parts)


def table(rows: list[Row]) -> list[str]:
    """Return the rows as aligned lines under a heading."""
    cells = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADINGS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]


def junit(verdict: Verdict) -> str:
    """Return JUnit XML: a suite per node, a test case per GPU and one for the node itself; hosts not judged are skipped cases."""
    root = ElementTree.Element("testsuites", name="gpufleet.dra verification")
    nodes: dict[str, list[Row]] = {}
    for row in verdict.rows:
        nodes.setdefault(row.node, []).append(row)
    for node, rows in nodes.items():
        own = [item for item in verdict.errors if item.details.get("node") == node]
        _junit_suite(root, node, rows, own)
    general = [item for item in verdict.errors if item.details.get("node") not in nodes]
    if general:
        _finish_suite(ElementTree.SubElement(root, "testsuite", name="fleet"), [(item.subject, [item]) for item in general])
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _counts(verdict: Verdict) -> dict[str, int]:
    judged = [row for row in verdict.rows if row.gpu is not None]
    return {
        "nodes": len({row.node for row in verdict.rows if row.verdict != NOT_JUDGED}),
        "gpus": len(judged),
        "gpus_right": sum(row.verdict == RIGHT for row in judged),
        "not_judged": sum(row.verdict == NOT_JUDGED for row in verdict.rows),
        "errors": len(verdict.errors),
        "warnings": len(verdict.findings) - len(verdict.errors),
    }


def _cells(row: Row) -> tuple[str, ...]:
    gpu = "-" if row.gpu is None else f"{row.gpu['index']} {row.gpu['product']}"
    return (row.node, gpu, row.layout or "-", str(len(row.devices)), row.verdict)


def _junit_suite(root: ElementTree.Element, node: str, rows: list[Row], errors: list[Finding]) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=node)
    cases = [("node", [item for item in errors if not item.details.get("gpu_uuid")])]
    shown = {row.gpu["uuid"]: f"GPU {row.gpu['index']} {row.gpu['uuid']}" for row in rows if row.gpu is not None}
    for uuid, name in shown.items():
        cases.append((name, [item for item in errors if item.details.get("gpu_uuid") == uuid]))
    strangers = [item for item in errors if item.details.get("gpu_uuid") and item.details["gpu_uuid"] not in shown]
    cases.extend((item.subject, [item]) for item in strangers)
    _finish_suite(suite, cases, skipped=any(row.verdict == NOT_JUDGED for row in rows))


def _finish_suite(suite: ElementTree.Element, cases: list[tuple[str, list[Finding]]], skipped: bool = False) -> None:
    for name, errors in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=f"gpufleet.dra.{suite.get('name')}", name=name)
        if skipped:
            ElementTree.SubElement(case, "skipped", message="not judged")
        if errors:
            failure = ElementTree.SubElement(case, "failure", type=errors[0].code, message=errors[0].sentence())
            failure.text = "\n".join(item.sentence() for item in errors)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(bool(errors) for _name, errors in cases)))
    suite.set("skipped", str(len(cases) if skipped else 0))
