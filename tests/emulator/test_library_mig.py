# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""MIG instances: creation, listing, handles, identities, refusals."""
from __future__ import annotations

from collections.abc import Callable

from tests.emulator.conftest import Machine

H100 = "h100-80gb-hbm3"


def test_life_of_an_instance(nvml_machine: Callable[..., Machine]) -> None:
    seen = nvml_machine(H100).python("""
        gpu = device()
        assert nvml.nvmlDeviceSetMigMode(gpu, 1) == 0
        assert nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 9) == 2
        instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, placement(0, 4))
        assert nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 9) == 1
        assert nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 19) == 3
        info = nvml.nvmlGpuInstanceGetInfo(instance)
        compute = nvml.nvmlGpuInstanceCreateComputeInstance(instance, 2)
        detail = nvml.nvmlComputeInstanceGetInfo(compute)
        mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
        attributes = nvml.nvmlDeviceGetAttributes(mig)
        handles = (nvml.c_nvmlGpuInstance_t * 2)()
        count = ctypes.c_uint()
        nvml.nvmlDeviceGetGpuInstances(gpu, 9, handles, ctypes.byref(count))
        parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
        result = {
            "instance": [info.id, info.profileId, info.placement.start, info.placement.size],
            "compute": [detail.id, detail.profileId, detail.placement.start, detail.placement.size],
            "uuid_by_info": nvml.nvmlDeviceGetUUID(detail.device), "uuid": nvml.nvmlDeviceGetUUID(mig),
            "by_uuid": nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(mig))),
            "ids": [nvml.nvmlDeviceGetGpuInstanceId(mig), nvml.nvmlDeviceGetComputeInstanceId(mig)],
            "is_mig": [nvml.nvmlDeviceIsMigDeviceHandle(mig).value, nvml.nvmlDeviceIsMigDeviceHandle(gpu).value],
            "memory": nvml.nvmlDeviceGetMemoryInfo(mig).total >> 20, "parent": nvml.nvmlDeviceGetUUID(parent) == nvml.nvmlDeviceGetUUID(gpu),
            "attributes": [attributes.multiprocessorCount, attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount,
                           attributes.memorySizeMB],
            "listed": count.value, "in_use": code_of(nvml.nvmlGpuInstanceDestroy, instance),
        }
        nvml.nvmlComputeInstanceDestroy(compute)
        nvml.nvmlGpuInstanceDestroy(instance)
        result["stale"] = [
            code_of(nvml.nvmlGpuInstanceGetInfo, instance), code_of(nvml.nvmlComputeInstanceGetInfo, compute),
            code_of(nvml.nvmlDeviceGetUUID, mig), code_of(nvml.nvmlGpuInstanceDestroy, instance),
        ]
    """)
    assert seen["instance"] == [2, 9, 0, 4]
    assert seen["compute"] == [0, 2, 0, 3]
    assert seen["uuid"] == seen["uuid_by_info"]
    assert seen["uuid"].startswith("MIG-") and seen["uuid"][18] == "5"
    assert seen["by_uuid"] == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert (seen["ids"], seen["is_mig"], seen["memory"], seen["parent"]) == ([2, 0], [1, 0], 40448, True)
    assert (seen["attributes"], seen["listed"], seen["in_use"]) == ([60, 3, 3, 40448], 1, 19)
    assert seen["stale"] == [6, 6, 6, 6]


def test_a_recreated_instance_has_the_same_uuid_but_another_handle(nvml_machine: Callable[..., Machine]) -> None:
    seen = nvml_machine(H100).python("""
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        def make():
            instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 19, placement(3, 1))
            compute = nvml.nvmlGpuInstanceCreateComputeInstance(instance, 0)
            return instance, compute, nvml.nvmlDeviceGetUUID(nvml.nvmlComputeInstanceGetInfo(compute).device)
        first = make()
        nvml.nvmlComputeInstanceDestroy(first[1])
        nvml.nvmlGpuInstanceDestroy(first[0])
        second = make()
        result = [first[2] == second[2], code_of(nvml.nvmlGpuInstanceGetInfo, first[0]), code_of(nvml.nvmlGpuInstanceGetInfo, second[0])]
    """)
    assert seen == [True, 6, 0]


def test_gpu_instance_ids_lie_in_the_ranges_of_their_share(nvml_machine: Callable[..., Machine]) -> None:
    code = """
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        result = {}
        for profile, size, starts in %s:
            for start in starts:
                instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile, placement(start, size))
                result[f"{profile}@{start}"] = nvml.nvmlGpuInstanceGetInfo(instance).id
                nvml.nvmlGpuInstanceDestroy(instance)
    """
    ids = nvml_machine(H100).python(code % [[0, 8, [0]], [9, 4, [0, 4]], [15, 2, [0, 2, 4, 6]], [19, 1, [0, 1, 2, 3, 4, 5, 6]]])
    assert ids["0@0"] == 0
    assert {ids["9@0"], ids["9@4"]} == {1, 2}
    assert {ids[f"15@{start}"] for start in (0, 2, 4, 6)} == {3, 4, 5, 6}
    assert {ids[f"19@{start}"] for start in range(7)} == {7, 8, 9, 11, 12, 13, 14}
    rtx = nvml_machine("rtx-pro-6000-server").python(code % [[0, 12, [0]], [5, 6, [0, 6]], [14, 3, [0, 3, 6, 9]]])
    assert rtx == {"0@0": 0, "5@0": 1, "5@6": 2, "14@0": 3, "14@3": 4, "14@6": 5, "14@9": 6}


def test_refusals(nvml_machine: Callable[..., Machine]) -> None:
    seen = nvml_machine(H100).python("""
        gpu = device()
        create = nvml.nvmlDeviceCreateGpuInstanceWithPlacement
        off = [code_of(create, gpu, 19, placement(0, 1)), code_of(nvml.nvmlDeviceGetGpuInstanceById, gpu, 7),
               code_of(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0), code_of(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity, gpu, 19)]
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        create(gpu, 9, placement(4, 4))
        on = {
            "overlap": code_of(create, gpu, 14, placement(4, 2)), "unknown profile": code_of(create, gpu, 77, placement(0, 1)),
            "unknown start": code_of(create, gpu, 14, placement(1, 2)), "wrong size": code_of(create, gpu, 14, placement(0, 1)),
            "unknown instance": code_of(nvml.nvmlDeviceGetGpuInstanceById, gpu, 9), "empty slot": code_of(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0),
            "slot past the end": code_of(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 7), "mode 2": code_of(nvml.nvmlDeviceSetMigMode, gpu, 2),
            "not a handle": code_of(nvml.nvmlDeviceGetUUID, ctypes.c_void_p(16)),
            "gpu as instance": code_of(nvml.nvmlGpuInstanceGetInfo, gpu),
        }
        nvml.nvmlShutdown()
        result = {"off": off, "on": on, "after shutdown": code_of(nvml.nvmlDeviceGetCount)}
    """)
    assert seen["off"] == [3, 3, 3, 3]
    assert seen["on"] == {
        "overlap": 23, "unknown profile": 2, "unknown start": 2, "wrong size": 2, "unknown instance": 6, "empty slot": 6,
        "slot past the end": 2, "mode 2": 2, "not a handle": 2, "gpu as instance": 2,
    }
    assert seen["after shutdown"] == 1


def test_media_engines_limit_the_companions(nvml_machine: Callable[..., Machine]) -> None:
    """At most one +me; beside +me.all only -me instances."""
    seen = nvml_machine("rtx-pro-6000-server").python("""
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        def fits(first, second):
            one = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, first, placement(0, 3))
            code = code_of(nvml.nvmlDeviceCreateGpuInstanceWithPlacement, gpu, second, placement(3, 3))
            if code == 0:
                nvml.nvmlGpuInstanceDestroy(nvml.nvmlDeviceGetGpuInstanceById(gpu, 4))
            nvml.nvmlGpuInstanceDestroy(one)
            return code
        result = {f"{a} {b}": fits(a, b) for a, b in ((21, 21), (21, 14), (21, 65), (65, 14), (65, 47), (65, 67), (65, 21), (67, 65), (14, 65))}
    """)
    assert seen == {"21 21": 23, "21 14": 0, "21 65": 23, "65 14": 23, "65 47": 23, "65 67": 0, "65 21": 23, "67 65": 0, "14 65": 23}


def test_handles_are_stale_after_a_reset_and_after_a_change_of_mode(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(H100)
    seen = machine.python(f"""
        import subprocess
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        def make():
            instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, placement(0, 4))
            compute = nvml.nvmlGpuInstanceCreateComputeInstance(instance, 2)
            return instance, compute, nvml.nvmlComputeInstanceGetInfo(compute).device
        def codes(instance, compute, mig):
            return [code_of(nvml.nvmlGpuInstanceGetInfo, instance), code_of(nvml.nvmlComputeInstanceGetInfo, compute), code_of(nvml.nvmlDeviceGetUUID, mig),
                    code_of(nvml.nvmlComputeInstanceDestroy, compute), code_of(nvml.nvmlGpuInstanceDestroy, instance)]
        first = make()
        subprocess.run(["{machine.folder}/nvmlctl", "reset", "0"], check=True)
        result = [codes(*first)]
        second = make()
        result.append(codes(*first))
        subprocess.run(["{machine.folder}/nvmlctl", "mode", "0", "off"], check=True)
        result.append(codes(*second))
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        result.append(codes(*second))
        result.append(code_of(nvml.nvmlDeviceGetUUID, gpu))
    """)
    assert seen == [[6] * 5, [6] * 5, [6, 6, 6, 3, 3], [6] * 5, 0]


def test_queries_of_gpus_refuse_a_mig_device(nvml_machine: Callable[..., Machine]) -> None:
    """Hardware's code is not known to be one; the knob parent-query chooses."""
    code = """
        gpu = device()
        mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
        count = ctypes.c_uint()
        calls = [
            (nvml.nvmlDeviceGetMigMode,), (nvml.nvmlDeviceSetMigMode, 1), (nvml.nvmlDeviceGetMaxMigDeviceCount,), (nvml.nvmlDeviceGetMigDeviceHandleByIndex, 0),
            (nvml.nvmlDeviceGetGpuInstanceProfileInfo, 0), (nvml.nvmlDeviceGetGpuInstancePossiblePlacements, 19, None, ctypes.byref(count)),
            (nvml.nvmlDeviceGetGpuInstanceRemainingCapacity, 19), (nvml.nvmlDeviceCreateGpuInstance, 19), (nvml.nvmlDeviceGetGpuInstanceById, 7),
            (nvml.nvmlDeviceGetPciInfo,), (nvml.nvmlDeviceGetMinorNumber,),
        ]
        own = [code_of(nvml.nvmlDeviceGetAttributes, mig), code_of(nvml.nvmlDeviceGetAttributes, gpu)]
        result = [sorted({code_of(call, mig, *rest) for call, *rest in calls}), *own]
    """
    machine = nvml_machine(H100)
    machine.ctl("repartition", "0", "3g.40gb@0")
    assert machine.python(code) == [[2], 0, 3]
    machine.ctl("set", "0", "parent-query=unsupported")
    assert machine.python(code) == [[3], 0, 3]


def test_library_counts_its_initialisations(nvml_machine: Callable[..., Machine]) -> None:
    assert nvml_machine(H100).python("""
        nvml.nvmlInit()
        nvml.nvmlShutdown()
        first = nvml.nvmlDeviceGetCount()
        nvml.nvmlShutdown()
        result = [first, code_of(nvml.nvmlDeviceGetCount), code_of(nvml.nvmlShutdown)]
    """) == [1, 1, 1]
