# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plans MIG layouts where there is no GPU: the planner of mig/, on a GPU made from the profile tables or on facts read earlier."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..mig.catalogue import Compute, Gpu, Instance, gpu_from_facts, gpus_from_facts
from ..mig.gpu_plan import GpuPlan
from ..mig.layout import Layout, parse_layouts
from ..mig.plan import make_plan
from ..mig.shown import shown
from ..reasons import FleetError, finding
from .mig_profiles import MODELS, KnownModel, KnownProfile, known_model


def offline_gpu(key: str, index: int = 0, minor: int = 0) -> Gpu:
    """Return a GPU of the model ``key`` in MIG mode and without instances, as the planner sees one. Raises FleetError UnknownGpuModel.

    Its UUID is the key. Memory that nobody has published is taken as the share of the GPU's memory, from which the same names follow.
    """
    model = known_model(key)
    return gpu_from_facts({
        "uuid": key, "index": index, "minor": minor, "pci_bus_id": "", "pci_device_id": model.pci_device_ids[0], "pci_subsystem_id": "",
        "product": model.product, "memory_bytes": model.memory_mib << 20, "processes": [],
        "mig": {
            "capable": True, "current": True, "pending": True, "reset_free": model.reset_free, "instances": [],
            "profiles": [_profile_facts(profile, model) for profile in model.profiles],
        },
    })


def _profile_facts(profile: KnownProfile, model: KnownModel) -> dict[str, Any]:
    share = model.memory_mib * profile.size // model.slots
    return {
        "name": profile.name, "id": profile.id, "enum": profile.enum, "compute_slices": profile.compute_slices, "memory_slices": profile.size,
        "instance_count": profile.count, "memory_mib": share if profile.memory_mib is None else profile.memory_mib,
        "placements": [{"start": start, "size": profile.size} for start in profile.starts],
    }


def gpus_of(subject: Any) -> list[Gpu]:
    """Return the GPUs that ``subject`` stands for: the key of a model, an NVML facts document, or one element of its ``gpus``.

    Raises FleetError UnknownGpuModel.
    """
    if isinstance(subject, str):
        return [offline_gpu(subject)]
    try:
        return gpus_from_facts(subject) if "gpus" in subject else [gpu_from_facts(subject)]
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        known = ", ".join(sorted(MODELS))
        raise FleetError(finding("UnknownGpuModel", shown(subject), {"error": str(error)}, known=known)) from None


def forecast(subject: Any, desired: Any, current: Any = None) -> dict[str, Any]:
    """Return what making ``desired`` of the GPUs of ``subject`` would do.

    ``desired`` and ``current`` take every form of ``instances`` in a layout. ``current`` is for a model, which holds nothing without it; instances given
    without a start lie where the planner would put them. The result has kept, destroyed and created (identities of instances), plan (one line per step),
    device_names (what the DRA driver will publish), mutating_calls (NVML calls that change something) and inferred (what of the model's table was not seen
    on a board). Raises FleetError for everything that the planner refuses, InvalidLayout, NotMigCapable and UnknownGpuModel.
    """
    gpus = gpus_of(subject)
    if not any(gpu.mig_capable for gpu in gpus):
        raise FleetError(finding("NotMigCapable", "desired", gpu=" and ".join(gpu.label for gpu in gpus) or "a node without GPUs"))
    if current is not None:
        if not isinstance(subject, str):
            raise FleetError(finding("InvalidLayout", "current", problem="it is given beside facts, which say themselves what a GPU holds",
                                     allowed="Leave it out, or name a model instead of the facts"))
        gpus = [carried_out(make_plan(gpus, _layout(current, "current"), "keep").gpus[0])]
    plan = make_plan(gpus, _layout(desired, "desired"), "keep")
    found = plan.summary()
    result = {name: found[name] for name in ("kept", "destroyed", "created", "device_names")}
    inferred = known_model(subject).inferred if isinstance(subject, str) else ""
    return {**result, "plan": [step.text for step in plan.steps], "mutating_calls": len(plan.steps), "inferred": inferred}


def _layout(instances: Any, option: str) -> Layout:
    """Return the layout that wants ``instances`` on every GPU; what is wrong with it is said of ``option``."""
    try:
        layout = parse_layouts([{"match": "all", "instances": instances}])
    except FleetError as error:
        found = error.finding
        raise FleetError(replace(found, subject=found.subject.replace("layouts[0].instances", option).replace("layouts[0]", option))) from None
    return replace(layout, rules=tuple(replace(rule, where=option) for rule in layout.rules))


def carried_out(plan: GpuPlan) -> Gpu:
    """Return what an empty GPU is after ``plan`` has been carried out on it; ids count from 0, MIG devices have no UUID."""
    instances = []
    for number, placed in enumerate(plan.created):
        computes = tuple(Compute(place, slices, start, None) for place, (slices, start) in enumerate(placed.refit.new))
        instances.append(Instance(number, placed.profile.name, placed.profile.id, placed.start, placed.profile.size, computes))
    return replace(plan.gpu, instances=tuple(instances))
