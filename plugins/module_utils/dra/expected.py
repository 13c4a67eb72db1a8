# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What NVIDIA's DRA driver ought to publish for a node with static MIG layouts, from NVML facts alone.

The facts are the ``nvml`` document of the nvml_info module. Nothing that was published is read here, so a prediction cannot agree with a
mistake by copying it. Attributes that do not come from NVML (pcieRoot and numaNode, read from sysfs) are not predicted.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ..reasons import Finding, finding
from . import rules

NVML_ATTRIBUTES = (
    "type", "uuid", "parentUUID", "profile", "productName", "brand", "architecture", "cudaComputeCapability", "driverVersion",
    "cudaDriverVersion", "addressingMode", "resource.kubernetes.io/pciBusID",
)  # fmt: skip
_ENGINE_CAPACITIES = {
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy_engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpeg_engines",
    "ofaEngines": "ofa_engines",
}
_MIB = 2**20


class ExpectedDevice(NamedTuple):
    """One device that should be published. ``capacities`` are exact numbers, memory in bytes; ``start`` is None for a whole GPU."""

    name: str
    gpu_uuid: str
    start: int | None
    attributes: dict[str, dict[str, Any]]
    capacities: dict[str, int]

    @property
    def uuid(self) -> str:
        """The device's own UUID (GPU-... or MIG-...)."""
        return self.attributes["uuid"]["string"]

    @property
    def description(self) -> str:
        """What the device stands for, in a few words."""
        profile = self.attributes.get("profile")
        return f"MIG {profile['string']} at start {self.start}" if profile else self.attributes["productName"]["string"]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for the verification document: attribute values without their type."""
        return {
            "name": self.name,
            "gpu_uuid": self.gpu_uuid,
            "attributes": {name: next(iter(value.values())) for name, value in self.attributes.items()},
            "capacities": dict(self.capacities),
        }


def expected_devices(node: str, nvml: dict[str, Any]) -> tuple[list[ExpectedDevice], list[Finding]]:
    """Return the devices that ``node`` should publish, sorted by name, and what on its GPUs keeps devices from being published.

    ``node`` only names the subject of the findings: PluginCannotStart, MigWithoutInstances, MigModePending,
    GpuInstanceWithoutComputeInstance, ComputeInstanceSmaller, GpuUnreadable (nothing is expected of such a GPU).
    """
    devices: list[ExpectedDevice] = []
    findings: list[Finding] = []
    for gpu in nvml["gpus"]:
        if rules.is_skipped(gpu["product"]):
            continue
        subject = gpu_subject(node, gpu)
        details = {"node": node, "gpu_uuid": gpu["uuid"]}
        try:
            devices.extend(_gpu_devices(nvml, gpu))
        except rules.Unpublishable as error:
            findings.append(finding("PluginCannotStart", subject, details, why=str(error)))
        findings.extend(_mig_findings(subject, details, gpu["mig"]))
    for lost in nvml.get("unreadable_gpus", []):
        subject = f"{node}: GPU {lost['index']} ({lost['uuid'] or lost['pci_bus_id'] or 'without UUID'})"
        findings.append(finding("GpuUnreadable", subject, {"node": node, "gpu_uuid": lost["uuid"]}, call=lost["call"], error=lost["error"]))
    return sorted(devices, key=lambda device: device.name), findings


def gpu_subject(node: str, gpu: dict[str, Any]) -> str:
    """Return how findings name a GPU: node, index, product and UUID."""
    return f"{node}: GPU {gpu['index']} ({gpu['product']}, {gpu['uuid']})"


def layout_text(gpu: dict[str, Any]) -> str:
    """Return the GPU's MIG layout for a person, by start: "3g.40gb + 4x 1g.10gb", "MIG off", "MIG on, empty", "no MIG"."""
    mig = gpu["mig"]
    if not mig["current"]:
        return "MIG off" if mig["capable"] else "no MIG"
    runs: list[list[Any]] = []
    for instance in mig["instances"]:
        if runs and runs[-1][0] == instance["profile"]:
            runs[-1][1] += 1
        else:
            runs.append([instance["profile"], 1])
    return " + ".join(name if count == 1 else f"{count}x {name}" for name, count in runs) or "MIG on, empty"


def _gpu_devices(nvml: dict[str, Any], gpu: dict[str, Any]) -> list[ExpectedDevice]:
    """Return the whole GPU, or its MIG devices when MIG mode is on: the driver never publishes both."""
    common = _common_attributes(nvml, gpu)
    profiles = {profile["id"]: dict(profile, text=_profile_text(profile, gpu)) for profile in gpu["mig"]["profiles"]}
    if not gpu["mig"]["current"]:
        own = {"type": {"string": "gpu"}, "uuid": {"string": gpu["uuid"]}}
        capacities = {} if gpu["memory_bytes"] is None else {"memory": gpu["memory_bytes"]}
        return [ExpectedDevice(rules.gpu_device_name(gpu["minor"]), gpu["uuid"], None, dict(own, **common), capacities)]
    return [
        _mig_device(gpu, profiles[instance["profile_id"]], instance, compute_instance, common)
        for instance in gpu["mig"]["instances"]
        for compute_instance in instance["compute_instances"]
        if compute_instance["slices"] == profiles[instance["profile_id"]]["compute_slices"]
    ]


def _profile_text(profile: dict[str, Any], gpu: dict[str, Any]) -> str:
    """Return the driver's text for a profile that the GPU offers. It derives all of them at start, used or not."""
    return rules.profile_text(profile["enum"], profile["memory_mib"], gpu["memory_bytes"])


def _mig_device(
    gpu: dict[str, Any],
    profile: dict[str, Any],
    instance: dict[str, Any],
    compute_instance: dict[str, Any],
    common: dict[str, dict[str, Any]],
) -> ExpectedDevice:
    own = {
        "type": {"string": "mig"},
        "uuid": {"string": compute_instance["uuid"]},
        "parentUUID": {"string": gpu["uuid"]},
        "profile": {"string": profile["text"]},
    }
    capacities = {name: profile[key] for name, key in _ENGINE_CAPACITIES.items()}
    capacities["memory"] = profile["memory_mib"] * _MIB
    for index in range(instance["start"], instance["start"] + instance["size"]):
        capacities[f"memorySlice{index}"] = 1
    name = rules.mig_device_name(gpu["minor"], profile["text"], profile["id"], instance["start"])
    return ExpectedDevice(name, gpu["uuid"], instance["start"], dict(own, **common), capacities)


def _common_attributes(nvml: dict[str, Any], gpu: dict[str, Any]) -> dict[str, dict[str, Any]]:
    attributes = {
        "productName": {"string": gpu["product"]},
        "brand": {"string": rules.brand(gpu["brand"])},
        "architecture": {"string": rules.architecture(gpu["architecture"])},
        "cudaComputeCapability": {"version": rules.lenient_version(gpu["cuda_compute_capability"])},
        "driverVersion": {"version": rules.lenient_version(nvml["driver_version"])},
        "cudaDriverVersion": {"version": rules.cuda_version(nvml["cuda_driver_version"])},
        "resource.kubernetes.io/pciBusID": {"string": rules.pci_bus_id(gpu["pci_bus_id"])},
    }
    if gpu["addressing_mode"] is not None:
        attributes["addressingMode"] = {"string": rules.addressing_mode(gpu["addressing_mode"])}
    return attributes


def _mig_findings(subject: str, details: dict[str, Any], mig: dict[str, Any]) -> list[Finding]:
    """Return what is wrong with the GPU's MIG state itself: each of these is seen on the node, before anything is compared."""
    findings = []
    if mig["current"] != mig["pending"]:
        words = {True: "on", False: "off"}
        findings.append(finding("MigModePending", subject, details, current=words[mig["current"]], pending=words[mig["pending"]]))
    if not mig["current"]:
        return findings
    if not mig["instances"]:
        findings.append(finding("MigWithoutInstances", subject, details))
    slices = {profile["id"]: profile["compute_slices"] for profile in mig["profiles"]}
    for instance in mig["instances"]:
        place = {"profile": instance["profile"], "start": instance["start"]}
        about = dict(details, profile=instance["profile"], start=instance["start"])
        if not instance["compute_instances"]:
            findings.append(finding("GpuInstanceWithoutComputeInstance", subject, about, **place))
        for compute_instance in instance["compute_instances"]:
            expected = slices[instance["profile_id"]]
            if compute_instance["slices"] != expected:
                fields = dict(place, found=compute_instance["slices"], expected=expected)
                findings.append(finding("ComputeInstanceSmaller", subject, about, **fields))
    return findings
