/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Compute instances: create, list, find, describe, destroy.
 */
#include "access.h"
#include "call.h"
#include "mig.h"

static struct handle content(const struct call *call, enum handle_kind kind, unsigned compute_instance)
{
    return (struct handle){
        .kind = kind,
        .gpu = call->handle->gpu,
        .gpu_instance = call->handle->gpu_instance,
        .compute_instance = compute_instance,
        .generation = call->gpu_instance->compute[compute_instance].generation,
    };
}

static nvmlReturn_t give_compute_instance(const struct call *call, unsigned compute_instance, nvmlComputeInstance_t *handle)
{
    *handle = handle_for(content(call, HANDLE_COMPUTE_INSTANCE, compute_instance));
    return *handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

/* Create at *placement, or where the driver chooses if it is NULL. */
static nvmlReturn_t create(struct call *call, unsigned compute_profile, const nvmlPlacement_t *placement, nvmlComputeInstance_t *handle)
{
    const struct gi_profile *profile = profile_by_id(call->model, call->gpu_instance->profile_id);
    struct ci_profile wanted;
    if (!handle || compute_profile >= CI_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!mig_compute_profile(call->gpu, call->model, profile, compute_profile, &wanted))
        return NVML_ERROR_NOT_SUPPORTED;
    if (placement && (placement->size != wanted.slices || !mig_compute_is_place(profile, &wanted, placement->start)))
        return NVML_ERROR_INVALID_ARGUMENT;
    int start = placement ? (int)placement->start : mig_compute_driver_choice(call->gpu, call->model, call->gpu_instance, &wanted);
    if (start < 0 || !mig_compute_fits(call->gpu_instance, profile, &wanted, (unsigned)start))
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    const struct compute_instance *made = mig_add_compute_instance(call->machine, call->gpu, call->model, call->gpu_instance, &wanted,
                                                                   (unsigned)start);
    if (!made)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    return give_compute_instance(call, (unsigned)(made - call->gpu_instance->compute), handle);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t gpu_instance, unsigned compute_profile,
                                                              nvmlComputeInstance_t *handle)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, gpu_instance, HANDLE_GPU_INSTANCE);
    if (call.gpu_instance)
        call_arguments(&call, "\"gpu_instance\": %u, \"profile_id\": %u", call.handle->gpu_instance, compute_profile);
    if (rc == NVML_SUCCESS)
        rc = create(&call, compute_profile, NULL, handle);
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t gpu_instance, unsigned compute_profile,
                                                                           const nvmlPlacement_t *placement, nvmlComputeInstance_t *handle)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, gpu_instance, HANDLE_GPU_INSTANCE);
    if (call.gpu_instance && placement)
        call_arguments(&call, "\"gpu_instance\": %u, \"profile_id\": %u, \"start\": %u, \"size\": %u", call.handle->gpu_instance,
                       compute_profile, placement->start, placement->size);
    if (rc == NVML_SUCCESS)
        rc = placement ? create(&call, compute_profile, placement, handle) : NVML_ERROR_INVALID_ARGUMENT;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, handle, HANDLE_COMPUTE_INSTANCE);
    if (call.compute_instance)
        call_arguments(&call, "\"gpu_instance\": %u, \"compute_instance\": %u", call.handle->gpu_instance, call.handle->compute_instance);
    if (rc == NVML_SUCCESS
        && clients_block_compute_instance(call.machine, call.gpu, call.handle->gpu_instance, call.handle->compute_instance))
        rc = NVML_ERROR_IN_USE;
    if (rc == NVML_SUCCESS)
        call.compute_instance->used = 0;
    return call_finish(&call, mig_destroy_code(&call, rc));
}

static bool is_usable(const struct call *call, unsigned compute_instance)
{
    return call->gpu_instance->compute[compute_instance].used
        && access_instance(call->gpu->minor, call->handle->gpu_instance, (int)compute_instance);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t gpu_instance, unsigned compute_profile,
                                                            nvmlComputeInstance_t *handles, unsigned *count)
{
    struct call call;
    unsigned found = 0;
    nvmlReturn_t rc = call_query(&call, __func__, gpu_instance, HANDLE_GPU_INSTANCE);
    if (rc == NVML_SUCCESS && (!handles || !count || compute_profile >= CI_PROFILE_COUNT))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned ci = 0; rc == NVML_SUCCESS && ci < MAX_COMPUTE_INSTANCES; ci++)
        if (is_usable(&call, ci) && call.gpu_instance->compute[ci].profile == compute_profile)
            rc = give_compute_instance(&call, ci, &handles[found++]);
    if (rc == NVML_SUCCESS)
        *count = found;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t gpu_instance, unsigned id, nvmlComputeInstance_t *handle)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, gpu_instance, HANDLE_GPU_INSTANCE);
    if (rc == NVML_SUCCESS && !handle)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && (id >= MAX_COMPUTE_INSTANCES || !is_usable(&call, id)))
        rc = NVML_ERROR_NOT_FOUND;
    if (rc == NVML_SUCCESS)
        rc = give_compute_instance(&call, id, handle);
    return call_finish(&call, rc);
}

/* `device` of the result is the MIG device handle, not the GPU. */
NVML_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, handle, HANDLE_COMPUTE_INSTANCE);
    if (rc == NVML_SUCCESS && !info)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        *info = (nvmlComputeInstanceInfo_t){
            .device = handle_for(content(&call, HANDLE_MIG, call.handle->compute_instance)),
            .gpuInstance = handle_for((struct handle){
                .kind = HANDLE_GPU_INSTANCE,
                .gpu = call.handle->gpu,
                .gpu_instance = call.handle->gpu_instance,
                .generation = call.gpu_instance->generation,
            }),
            .id = call.handle->compute_instance,
            .profileId = call.compute_instance->profile,
            .placement = {call.compute_instance->start, call.compute_instance->size},
        };
        rc = info->device && info->gpuInstance ? NVML_SUCCESS : NVML_ERROR_MEMORY;
    }
    return call_finish(&call, rc);
}
