# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Expected devices against published ones: one Finding per difference, named by device."""
from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from ..reasons import Finding, finding
from .expected import NVML_ATTRIBUTES, ExpectedDevice
from .quantity import format_count, format_memory, parse_quantity
from .slices import Device, Pool

# What the driver or the kubelet puts right by itself within seconds or minutes; worth waiting for. Everything else needs somebody.
EVENTUAL = frozenset({
    "DeviceMissing", "DeviceExtra", "DeviceUuidMismatch", "DeviceMemoryMismatch", "DeviceAttributeMismatch", "DeviceCapacityMismatch",
    "DuplicateDevice", "PoolMissing", "PoolIncomplete", "PluginNotRunning",
})  # fmt: skip


def compare_node(node: str, expected: Iterable[ExpectedDevice], pools: list[Pool], driver: str) -> list[Finding]:
    """Return the differences between what ``node`` should publish and its ``pools`` of ``driver``; an empty list means equal.

    No pool at all is one finding that lists the devices. In an incomplete pool nothing counts as missing, for it may lie in an absent slice.
    """
    wanted = list(expected)
    if not pools:
        names = [device.name for device in wanted]
        missing = {"node": node, "driver": driver, "expected": names, "found": []}
        return [finding("PoolMissing", node, missing, driver=driver, count=len(names))] if names else []
    findings = [difference for pool in pools for difference in _pool_findings(node, pool)]
    if any(pool.counter_sets for pool in pools):
        return findings
    published = {device.name: (device, pool) for pool in pools for device in pool.devices}
    known = {device.name for device in wanted}
    for device in wanted:
        if device.name in published:
            findings.extend(_device_findings(node, device, published[device.name][0]))
        elif all(pool.complete for pool in pools):
            findings.append(_missing(node, device, pools))
    findings.extend(_extra(node, device, pool) for name, (device, pool) in sorted(published.items()) if name not in known)
    return findings


def _pool_findings(node: str, pool: Pool) -> list[Finding]:
    details: dict[str, Any] = {"node": node, "pool": pool.name, "generation": pool.generation}
    findings = []
    if not pool.complete:
        counts = {"expected": pool.size, "found": len(pool.slices)}
        about = dict(details, slices=list(pool.slices), **counts)
        findings.append(finding("PoolIncomplete", node, about, pool=pool.name, generation=pool.generation, **counts))
    for name, count in pool.duplicates().items():
        slices = sorted({device.slice_name for device in pool.devices if device.name == name})
        about = dict(details, device=name, found=count, expected=1, slices=slices)
        fields = {"device": name, "count": count, "pool": pool.name, "slices": ", ".join(slices)}
        findings.append(finding("DuplicateDevice", _subject(node, name), about, **fields))
    if pool.counter_sets:
        about = dict(details, counter_sets=list(pool.counter_sets))
        findings.append(finding("DynamicMigPublished", node, about, pool=pool.name))
    return findings


def _missing(node: str, device: ExpectedDevice, pools: list[Pool]) -> Finding:
    """Return DeviceMissing; when the same UUID is published under another name, the details say so (a minor number has changed)."""
    others = [other.name for pool in pools for other in pool.devices if other.attribute("uuid") == device.uuid]
    details = _details(node, device, expected=device.uuid, found=None, same_uuid_published_as=others)
    names = ", ".join(pool.name for pool in pools)
    return finding("DeviceMissing", _subject(node, device.name), details, device=device.name, what=device.description, pool=names)


def _extra(node: str, device: Device, pool: Pool) -> Finding:
    uuid = device.attribute("uuid")
    details = {
        "node": node,
        "gpu_uuid": device.attribute("parentUUID") or uuid,
        "device": device.name,
        "pool": pool.name,
        "expected": None,
        "found": uuid,
    }
    what = device.attribute("profile") or device.attribute("productName") or device.attribute("type") or "without attributes"
    return finding("DeviceExtra", _subject(node, device.name), details, device=device.name, what=what)


def _device_findings(node: str, expected: ExpectedDevice, found: Device) -> list[Finding]:
    findings = []
    for name in NVML_ATTRIBUTES:
        wanted, got = expected.attributes.get(name), found.attributes.get(name)
        if wanted == got:
            continue
        texts = {"expected": _union_text(wanted, got), "found": _union_text(got, wanted)}
        details = _details(node, expected, attribute=name, **texts)
        code = "DeviceUuidMismatch" if name == "uuid" else "DeviceAttributeMismatch"
        findings.append(finding(code, _subject(node, expected.name), details, device=expected.name, attribute=name, **texts))
    for name in sorted(expected.capacities.keys() | found.capacities.keys()):
        difference = _capacity_finding(node, expected, found, name)
        if difference is not None:
            findings.append(difference)
    return findings


def _capacity_finding(node: str, expected: ExpectedDevice, found: Device, name: str) -> Finding | None:
    """Compare one capacity as a number, never as text: 80Gi and 81920Mi are equal."""
    wanted = _number(expected.capacities.get(name))
    got = _number(found.capacities.get(name))
    if wanted == got:
        return None
    show = format_memory if name == "memory" else format_count
    texts = {"expected": "absent" if wanted is None else show(wanted), "found": "absent" if got is None else show(got)}
    details = _details(node, expected, capacity=name, **texts)
    code = "DeviceMemoryMismatch" if name == "memory" else "DeviceCapacityMismatch"
    return finding(code, _subject(node, expected.name), details, device=expected.name, capacity=name, **texts)


def _number(quantity: str | int | None) -> Fraction | None:
    return None if quantity is None else parse_quantity(str(quantity))


def _union_text(value: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    """Return an attribute's value, with its type where only that differs."""
    if value is None:
        return "absent"
    kind, content = next(iter(value.items()))
    if other is not None and content in other.values():
        return f"{content} (as {kind})"
    return str(content)


def _details(node: str, device: ExpectedDevice, **more: Any) -> dict[str, Any]:
    return dict({"node": node, "gpu_uuid": device.gpu_uuid, "device": device.name}, **more)


def _subject(node: str, device: str) -> str:
    return f"{node}: {device}"
