# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the steps of a plan do to the instances of one GPU, through NVML, and whether their effect is there.

Every handle is looked up right before it is used, for a mode change or a reset makes old ones stale. An instance is found by its profile and place, and has to
have the id it had when the plan was made: ids are NVML's to reuse.
"""
from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Callable, Optional

from ..mig.catalogue import Gpu
from ..mig.steps import CREATE_COMPUTE_INSTANCE, CREATE_GPU_INSTANCE, DESTROY_COMPUTE_INSTANCE, DESTROY_GPU_INSTANCE, SET_MODE, Step
from ..nvml.calls import optional
from ..nvml.codes import FUNCTION_NOT_FOUND, NOT_FOUND, NOT_SUPPORTED, UNINITIALIZED, NvmlError
from ..nvml.session import NvmlSession
from ..reasons import FleetError
from .deadline import PhaseClock

_INVERSE = {DESTROY_COMPUTE_INSTANCE: CREATE_COMPUTE_INSTANCE, DESTROY_GPU_INSTANCE: CREATE_GPU_INSTANCE}


def inverse(step: Step) -> Step:
    """Return the step that takes back the destruction of an instance: the same one at the same place, with whatever id NVML gives it."""
    return replace(step, action=_INVERSE[step.action], gpu_instance_id=None, compute_instance_id=None)


class InstanceActions:
    """Destroys and creates the instances of one GPU. Methods raise NvmlError; one that is to be destroyed and is not there is NOT_FOUND.

    The clock is asked right before the call that changes something: the lookup before it may have taken too long. It raises Overrun.
    """

    def __init__(self, session: NvmlSession, clock: PhaseClock, gpu: Gpu) -> None:
        self._session = session
        self._clock = clock
        self._gpu = gpu

    def perform(self, step: Step) -> None:
        """Carry out a step on an instance."""
        acts: dict[str, Callable[[Step], None]] = {
            DESTROY_COMPUTE_INSTANCE: self._destroy_compute_instance,
            DESTROY_GPU_INSTANCE: self._destroy_gpu_instance,
            CREATE_GPU_INSTANCE: self._create_gpu_instance,
            CREATE_COMPUTE_INSTANCE: self._create_compute_instance,
        }
        acts[step.action](step)

    def is_effective(self, step: Step) -> bool:
        """Return whether the GPU is as the step wants it, by listing what there is."""
        if step.action == SET_MODE:
            return self._session.mig_mode(self.device()) == (step.enable, step.enable)
        instance = self._find(step)
        if step.action in (CREATE_GPU_INSTANCE, DESTROY_GPU_INSTANCE):
            return (instance is not None) == (step.action == CREATE_GPU_INSTANCE)
        found = instance is not None and self._find_compute(instance, step) is not None
        return found == (step.action == CREATE_COMPUTE_INSTANCE)

    def is_pending(self, step: Step) -> bool:
        """Return whether the mode that a step sets is set, be it in effect or not."""
        mode = self._session.mig_mode(self.device())
        return mode is not None and mode[1] == step.enable

    def see_to_session(self) -> None:
        """Open the session again when a failed call has left it closed; a session that does not open stays closed."""
        try:
            self._session.driver_version()
        except NvmlError as error:
            if error.code == UNINITIALIZED:
                with suppress(FleetError):
                    self._session.open()

    def device(self) -> Any:
        """Return the GPU's handle of this moment."""
        return self._session.device(self._gpu.uuid)

    # -- the acts ----------------------------------------------------------------------------------------------------------------------------------

    def _destroy_compute_instance(self, step: Step) -> None:
        compute = self._find_compute(self._existing(step), step)
        if compute is None:
            raise NvmlError(NOT_FOUND, step.what)
        self._clock.check()
        self._session.destroy_compute_instance(compute)

    def _destroy_gpu_instance(self, step: Step) -> None:
        instance = self._existing(step)
        self._clock.check()
        self._session.destroy_gpu_instance(instance)

    def _create_gpu_instance(self, step: Step) -> None:
        device = self.device()
        self._clock.check()
        self._session.create_gpu_instance(device, _known(step.profile_id), _known(step.start), _known(step.size))

    def _create_compute_instance(self, step: Step) -> None:
        instance = self._existing(step)
        offered = self._session.compute_profiles(instance)
        fitting = [profile for profile in offered if profile.slices == step.compute_slices]
        if not fitting:
            raise NvmlError(NOT_SUPPORTED, f"a compute instance of {step.compute_slices} slices")
        whole = all(profile.slices <= fitting[0].slices for profile in offered)
        # Two can have the same slices. Over a whole GPU instance the one with more multiprocessors is meant (1_SLICE_REV1 in a 1g with double memory), as
        # nvidia-smi -C has it; in a part of one the plain one, which has the lower id.
        profile = min(fitting, key=lambda item: (-item.multiprocessors if whole else 0, item.id))
        # Older drivers know no places of compute instances, and choose them.
        places = optional(lambda: self._session.compute_placements(instance, profile.id), FUNCTION_NOT_FOUND) or []
        place = next((place for place in places if place[0] == step.compute_start), None)
        self._clock.check()
        self._session.create_compute_instance(instance, profile.id, *(place or ()))

    # -- lookup ------------------------------------------------------------------------------------------------------------------------------------

    def _existing(self, step: Step) -> Any:
        instance = self._find(step)
        if instance is None:
            raise NvmlError(NOT_FOUND, f"GPU instance {step.profile} at start {step.start}")
        return instance

    def _find(self, step: Step) -> Optional[Any]:
        """Return the handle of the step's GPU instance, or None; also when another one is in its place now, or MIG mode is off."""
        device = self.device()
        profile = next((item for item in self._session.gpu_instance_profiles(device) if item.id == step.profile_id), None)
        if profile is None:
            return None
        present = optional(lambda: self._session.gpu_instances(device, profile), NOT_SUPPORTED) or []
        return next((instance for instance, facts in present if facts.start == step.start and step.gpu_instance_id in (None, facts.id)), None)

    def _find_compute(self, instance: Any, step: Step) -> Optional[Any]:
        """Return the handle of the step's compute instance: the one with its id, or, where the step has none yet, with its size at its place."""
        for profile in {profile.id: profile for profile in self._session.compute_profiles(instance)}.values():
            for compute, facts in self._session.compute_instances(instance, profile):
                if step.compute_instance_id is not None:
                    if facts.id == step.compute_instance_id:
                        return compute
                elif profile.slices == step.compute_slices and step.compute_start in (None, facts.start):
                    return compute
        return None


def _known(value: Optional[int]) -> int:
    if value is None:
        raise ValueError("a create step without placement")
    return value
