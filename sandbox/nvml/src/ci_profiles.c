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

/* Begin a query about a compute instance profile; *slices are its slices. */
static nvmlReturn_t begin(struct call *call, const char *symbol, nvmlGpuInstance_t handle, unsigned compute_profile, const void *result,
                          unsigned *slices)
{
    nvmlReturn_t rc = call_query(call, symbol, handle, HANDLE_GPU_INSTANCE);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!result || compute_profile >= CI_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *slices = mig_compute_slices(profile_of(call), compute_profile);
    return *slices ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlComputeInstanceProfileInfo_t describe(const struct call *call, unsigned compute_profile, unsigned slices)
{
    const struct gi_profile *profile = profile_of(call);
    return (nvmlComputeInstanceProfileInfo_t){
        .id = compute_profile,
        .sliceCount = slices,
        .instanceCount = mig_compute_capacity(profile, compute_profile),
        .multiprocessorCount = mig_compute_multiprocessors(call->model, profile, slices),
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
    unsigned slices;
    nvmlReturn_t rc = begin(&call, __func__, handle, compute_profile, info, &slices);
    if (rc == NVML_SUCCESS && engines >= CI_ENGINE_PROFILE_COUNT)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *info = describe(&call, compute_profile, slices);
    return call_finish(&call, rc);
}

/* The v2 and v3 structs differ only by what v3 adds at the end. */
static nvmlReturn_t fill_versioned(const struct call *call, unsigned compute_profile, unsigned slices, void *info)
{
    const struct gi_profile *profile = profile_of(call);
    unsigned version = *(const unsigned *)info;
    bool v3 = version == NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v3_t, 3u);
    if (!v3 && version != NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2u))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlComputeInstanceProfileInfo_v2_t *v2 = info;
    v2->info = describe(call, compute_profile, slices);
    memcpy(v2->name, "MIG ", 4);
    mig_compute_name(profile, slices, v2->name + 4, sizeof v2->name - 4);
    if (v3)
        ((nvmlComputeInstanceProfileInfo_v3_t *)info)->capabilities = 0;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned compute_profile, unsigned engines,
                                                                       void *info)
{
    struct call call;
    unsigned slices;
    nvmlReturn_t rc = begin(&call, __func__, handle, compute_profile, info, &slices);
    if (rc == NVML_SUCCESS && engines >= CI_ENGINE_PROFILE_COUNT)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = fill_versioned(&call, compute_profile, slices, info);
    return call_finish(&call, rc);
}

/* *count is how many fit into placements, and becomes how many there are; without placements only that is told. */
NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t handle, unsigned compute_profile,
                                                                             nvmlPlacement_t *placements, unsigned *count)
{
    struct call call;
    unsigned slices;
    nvmlReturn_t rc = begin(&call, __func__, handle, compute_profile, count, &slices);
    if (rc != NVML_SUCCESS)
        return call_finish(&call, rc);
    unsigned places = mig_compute_capacity(profile_of(&call), compute_profile);
    if (placements && *count < places)
        rc = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; rc == NVML_SUCCESS && placements && i < places; i++)
        placements[i] = (nvmlPlacement_t){i * slices, slices};
    *count = places;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle, unsigned compute_profile,
                                                                            unsigned *count)
{
    struct call call;
    unsigned slices;
    nvmlReturn_t rc = begin(&call, __func__, handle, compute_profile, count, &slices);
    if (rc == NVML_SUCCESS)
        *count = mig_compute_remaining(call.gpu_instance, profile_of(&call), compute_profile);
    return call_finish(&call, rc);
}
