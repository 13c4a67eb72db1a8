/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * GPU instances: create, list, find, describe, destroy.
 */
#include "access.h"
#include "call.h"
#include "mig.h"

static nvmlReturn_t give_gpu_instance(const struct call *call, unsigned gpu_instance, nvmlGpuInstance_t *handle)
{
    *handle = handle_for((struct handle){
        .kind = HANDLE_GPU_INSTANCE,
        .gpu = call->handle->gpu,
        .gpu_instance = gpu_instance,
        .generation = call->gpu->instances[gpu_instance].generation,
    });
    return *handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

/* Create at *start, or where the driver chooses if start is NULL. */
static nvmlReturn_t create(struct call *call, unsigned profile_id, const unsigned *start, nvmlGpuInstance_t *handle)
{
    if (!handle)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!call->gpu->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    const struct gi_profile *profile = mig_profile(call, profile_id);
    if (!profile)
        return NVML_ERROR_INVALID_ARGUMENT;
    /* The switch into MIG takes place with the first instance and needs an idle GPU. */
    if (clients_block(call->machine, call->gpu, BLOCKS_CREATE) && !mig_has_instances(call->gpu))
        return NVML_ERROR_IN_USE;
    int chosen = start ? (int)*start : mig_driver_choice(call->gpu, call->model, profile);
    if (chosen < 0 || !mig_fits(call->gpu, call->model, profile, (unsigned)chosen))
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    const struct gpu_instance *made = mig_add_gpu_instance(call->machine, call->gpu, call->model, profile, (unsigned)chosen);
    return give_gpu_instance(call, (unsigned)(made - call->gpu->instances), handle);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned profile_id, nvmlGpuInstance_t *handle)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, device, HANDLE_GPU);
    call_arguments(&call, "\"profile_id\": %u", profile_id);
    if (rc == NVML_SUCCESS)
        rc = create(&call, profile_id, NULL, handle);
    return call_finish(&call, rc);
}

static bool is_placement(const struct gi_profile *profile, const nvmlPlacement_t *placement)
{
    for (unsigned i = 0; profile && i < profile->placement_count; i++)
        if (placement->start == profile->starts[i])
            return placement->size == profile->size;
    return false;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned profile_id,
                                                                  const nvmlPlacement_t *placement, nvmlGpuInstance_t *handle)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, device, HANDLE_GPU);
    if (placement)
        call_arguments(&call, "\"profile_id\": %u, \"start\": %u, \"size\": %u", profile_id, placement->start, placement->size);
    if (rc == NVML_SUCCESS && (!placement || !is_placement(mig_profile(&call, profile_id), placement)))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = create(&call, profile_id, &placement->start, handle);
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, handle, HANDLE_GPU_INSTANCE);
    if (call.gpu_instance)
        call_arguments(&call, "\"gpu_instance\": %u", call.handle->gpu_instance);
    if (rc == NVML_SUCCESS && (mig_has_compute_instances(call.gpu_instance)
                               || clients_block_gpu_instance(call.machine, call.gpu, call.handle->gpu_instance)))
        rc = NVML_ERROR_IN_USE;
    if (rc == NVML_SUCCESS)
        call.gpu_instance->used = 0;
    return call_finish(&call, mig_destroy_code(&call, rc));
}

/* The caller's array has room for the profile's instance count. Instances that the caller may not use are left out. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned profile_id, nvmlGpuInstance_t *handles, unsigned *count)
{
    struct call call;
    unsigned found = 0;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && (!handles || !count))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && !call.gpu->mig_current)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS && !mig_profile(&call, profile_id))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned gi = 0; rc == NVML_SUCCESS && gi < MAX_GPU_INSTANCES; gi++) {
        const struct gpu_instance *instance = &call.gpu->instances[gi];
        if (instance->used && instance->profile_id == profile_id && access_instance(call.gpu->minor, gi, -1))
            rc = give_gpu_instance(&call, gi, &handles[found++]);
    }
    if (rc == NVML_SUCCESS)
        *count = found;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *handle)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !handle)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && !call.gpu->mig_current)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS
        && (id >= MAX_GPU_INSTANCES || !call.gpu->instances[id].used || !access_instance(call.gpu->minor, id, -1)))
        rc = NVML_ERROR_NOT_FOUND;
    if (rc == NVML_SUCCESS)
        rc = give_gpu_instance(&call, id, handle);
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, handle, HANDLE_GPU_INSTANCE);
    if (rc == NVML_SUCCESS && !info)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        *info = (nvmlGpuInstanceInfo_t){
            .device = handle_for((struct handle){.kind = HANDLE_GPU, .gpu = call.handle->gpu}),
            .id = call.handle->gpu_instance,
            .profileId = call.gpu_instance->profile_id,
            .placement = {call.gpu_instance->start, call.gpu_instance->size},
        };
        rc = info->device ? NVML_SUCCESS : NVML_ERROR_MEMORY;
    }
    return call_finish(&call, rc);
}
