# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NVML facts document: everything that the rest of the collection knows about the GPUs of a node.

Returned by the module nvml_info under ``nvml``, planned on by mig/, judged by dra/expected.py. Sizes in MiB where the name says so; ids, enums and slices are
NVML's own numbers. Lists are sorted, so two readings of the same state are equal.
"""
from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..dra.rules import ARCHITECTURES
from ..mig.health import health_findings
from .calls import optional
from .codes import FUNCTION_NOT_FOUND, NOT_SUPPORTED, NvmlError
from .health import read_health
from .links import read_links
from .mig_facts import read_mig
from .session import NvmlSession
from .unreadable import UnreadableGpu, concerns_one_gpu


def survey(session: NvmlSession) -> dict[str, Any]:
    """Return the NVML facts document of this node, GPUs sorted by PCI bus id.

    A GPU that does not answer stands in ``unreadable_gpus`` instead of ``gpus``. Raises NvmlError for what concerns the whole node.
    """
    document, _unreadable = _read(session)
    return document


def read_inventory(session: NvmlSession) -> dict[str, Any]:
    """Return what :func:`survey` returns when every GPU answers: nobody may plan as if a GPU were not there. Raises UnreadableGpu and other NvmlError."""
    document, unreadable = _read(session)
    if unreadable:
        raise unreadable[0]
    return document


def _read(session: NvmlSession) -> tuple[dict[str, Any], list[UnreadableGpu]]:
    gpus, unreadable = [], []
    for index in range(session.device_count()):
        try:
            gpus.append(_gpu(session, index))
        except NvmlError as error:
            if not concerns_one_gpu(error):
                raise
            unreadable.append(_unreadable(session, index, error))
    uuids = {gpu["pci_bus_id"].lower(): gpu["uuid"] for gpu in gpus}
    for gpu in gpus:
        gpu["nvlink_peers"] = sorted(uuids.get(bus_id, bus_id) for bus_id in gpu["nvlink_peers"])
    document = {
        "driver_version": session.driver_version(),
        "nvml_version": session.nvml_version(),
        "cuda_driver_version": session.cuda_driver_version(),
        "driver_root": session.driver_root,
        "library": session.library,
        "gpus": sorted(gpus, key=lambda gpu: gpu["pci_bus_id"]),
        "unreadable_gpus": [gpu.as_dict() for gpu in unreadable],
    }
    return document, unreadable


def _unreadable(session: NvmlSession, index: int, error: NvmlError) -> UnreadableGpu:
    """Return the GPU that did not answer, with what NVML still tells about it."""
    uuid = pci_bus_id = None
    with suppress(NvmlError):
        handle = session.device_at(index)
        pci_bus_id = session.pci(handle).bus_id
        uuid = session.uuid(handle)
    return UnreadableGpu(error, index, uuid, pci_bus_id)


def _gpu(session: NvmlSession, index: int) -> dict[str, Any]:
    handle = session.device_at(index)
    pci = session.pci(handle)
    memory_bytes = session.memory_bytes(handle)
    architecture = session.architecture(handle)
    links = read_links(session, handle)
    facts = {
        "uuid": session.uuid(handle),
        "index": index,
        "minor": session.minor(handle),
        "pci_bus_id": pci.bus_id,
        "pci_device_id": f"0x{pci.device_id:08X}",
        "pci_subsystem_id": f"0x{pci.subsystem_id:08X}",
        "product": session.product(handle),
        "brand": session.brand(handle),
        "architecture": architecture,
        "architecture_name": ARCHITECTURES.get(architecture, "Unknown"),
        "cuda_compute_capability": session.compute_capability(handle),
        "memory_bytes": memory_bytes,
        "memory_mib": None if memory_bytes is None else memory_bytes >> 20,
        "addressing_mode": optional(lambda: session.addressing_mode(handle), NOT_SUPPORTED, FUNCTION_NOT_FOUND),
        "mig": read_mig(session, handle, memory_bytes),
        "processes": sorted((vars(process) for process in session.processes(handle)), key=lambda row: (row["pid"], row["kind"])),
        "health": read_health(session, handle),
        "nvlink_peers": links.bus_ids,
        "nvlink_switch": links.switch,
    }
    facts["health"]["reasons"] = [found.code for found in health_findings(facts)]
    return facts
