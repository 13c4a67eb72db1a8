/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Queries about the compute instance profiles of a live GPU instance.
 */
#include "call.h"
#include "mig.h"

#include <string.h>

static const struct gi_profile *profile_of(const struct call *call)
{
    return profile_by_id(call->model, call->gpu_instance->profile_id);
}

/* Begin a query about a compute instance profile. */
static nvmlReturn_t begin(struct call *call, const char *symbol, nvmlGpuInstance_t handle, unsigned compute_profile, const void *result,
                          struct ci_profile *offered)
{
    nvmlReturn_t rc = call_query(call, symbol, handle, HANDLE_GPU_INSTANCE);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!result || compute_profile >= CI_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    return mig_compute_profile(call->gpu, call->model, profile_of(call), compute_profile, offered) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlComputeInstanceProfileInfo_t describe(const struct call *call, const struct ci_profile *offered)
{
    const struct gi_profile *profile = profile_of(call);
    return (nvmlComputeInstanceProfileInfo_t){
        .id = offered->id,
        .sliceCount = offered->slices,
        .instanceCount = offered->count,
        .multiprocessorCount = offered->multiprocessors,
        .sharedCopyEngineCount = profile->engines[COPY_ENGINES],
        .sharedDecoderCount = profile->engines[DECODERS],
        .sharedEncoderCount = profile->engines[ENCODERS],
        .sharedJpegCount = profile->engines[JPEG_ENGINES],
        .sharedOfaCount = profile->engines[OFA_ENGINES],
    };
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned compute_profile, unsigned engines,
                                                                      nvmlComputeInstanceProfileInfo_t *info)
{
    struct call call;
    struct ci_profile offered;
    nvmlReturn_t rc = begin(&call, __func__, handle, compute_profile, info, &offered);
    if (rc == NVML_SUCCESS && engines >= CI_ENGINE_PROFILE_COUNT)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *info = describe(&call, &offered);
    return call_finish(&call, rc);
}

/* The v2 and v3 structs differ only by what v3 adds at the end. */
static nvmlReturn_t fill_versioned(const struct call *call, const struct ci_profile *offered, void *info)
{
    unsigned version = *(const unsigned *)info;
    bool v3 = version == NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v3_t, 3u);
    if (call->gpu->knobs.names || (!v3 && version != NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2u)))
        return mig_bad_version(call->gpu);
    nvmlComputeInstanceProfileInfo_v2_t *v2 = info;
    v2->info = describe(call, offered);
    memcpy(v2->name, "MIG ", 4);
    mig_compute_name(profile_of(call), offered->slices, v2->name + 4, sizeof v2->name - 4);
    if (v3)
        ((nvmlComputeInstanceProfileInfo_v3_t *)info)->capabilities = 0;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned compute_profile, unsigned engines,
                                                                       void *info)
{
    struct call call;
    struct ci_profile offered;
    nvmlReturn_t rc = begin(&call, __func__, handle, compute_profile, info, &offered);
    if (rc == NVML_SUCCESS && engines >= CI_ENGINE_PROFILE_COUNT)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = fill_versioned(&call, &offered, info);
    return call_finish(&call, rc);
}

/* *count is how many fit into placements, and becomes how many there are; without placements only that is told. */
NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t handle, unsigned compute_profile,
                                                                             nvmlPlacement_t *placements, unsigned *count)
{
    struct call call;
    struct ci_profile offered;
    nvmlReturn_t rc = begin(&call, __func__, handle, compute_profile, count, &offered);
    if (rc != NVML_SUCCESS)
        return call_finish(&call, rc);
    if (placements && *count < offered.count)
        rc = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; rc == NVML_SUCCESS && placements && i < offered.count; i++)
        placements[i] = (nvmlPlacement_t){i * offered.span, offered.slices};
    *count = offered.count;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle, unsigned compute_profile,
                                                                            unsigned *count)
{
    struct call call;
    struct ci_profile offered;
    nvmlReturn_t rc = begin(&call, __func__, handle, compute_profile, count, &offered);
    if (rc == NVML_SUCCESS)
        *count = mig_compute_remaining(call.gpu_instance, profile_of(&call), &offered);
    return call_finish(&call, rc);
}
