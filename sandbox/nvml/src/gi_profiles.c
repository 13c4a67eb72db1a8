/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Queries about GPU instance profiles. They answer with MIG mode off too, as drivers since R550 do.
 */
#include "access.h"
#include "call.h"
#include "mig.h"

#include <stdio.h>
#include <string.h>

/* Drivers up to R535 tell profiles and placements only while MIG mode is on. */
static nvmlReturn_t tells_profiles(const struct call *call)
{
    return call->gpu->knobs.profiles_need_mode && !call->gpu->mig_current ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static nvmlReturn_t find(const struct call *call, unsigned enum_index, const struct gi_profile **profile)
{
    unsigned end = call->gpu->knobs.known_enums ? call->gpu->knobs.known_enums : GI_PROFILE_COUNT;
    *profile = profile_by_enum(call->model, enum_index);
    if (enum_index >= end)
        return NVML_ERROR_INVALID_ARGUMENT;
    return *profile ? tells_profiles(call) : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlGpuInstanceProfileInfo_v2_t describe(const struct call *call, const struct gi_profile *profile)
{
    nvmlGpuInstanceProfileInfo_v2_t info = {
        .id = profile->id,
        .sliceCount = profile->slices,
        .instanceCount = call->gpu->knobs.instance_counts ? 1 : profile->instance_count,
        .multiprocessorCount = profile->multiprocessors,
        .copyEngineCount = profile->engines[COPY_ENGINES],
        .decoderCount = profile->engines[DECODERS],
        .encoderCount = profile->engines[ENCODERS],
        .jpegCount = profile->engines[JPEG_ENGINES],
        .ofaCount = profile->engines[OFA_ENGINES],
        .memorySizeMB = profile->memory_mib,
    };
    snprintf(info.name, sizeof info.name, "MIG %s", profile->name);
    return info;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned enum_index, nvmlGpuInstanceProfileInfo_t *info)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    const struct gi_profile *profile = NULL;
    if (rc == NVML_SUCCESS && !info)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = find(&call, enum_index, &profile);
    if (rc == NVML_SUCCESS) {
        nvmlGpuInstanceProfileInfo_v2_t full = describe(&call, profile);
        memcpy(info, &full.id, offsetof(nvmlGpuInstanceProfileInfo_t, memorySizeMB));
        info->memorySizeMB = full.memorySizeMB;
    }
    return call_finish(&call, rc);
}

/* Fill the struct whose version word says which one it is. */
static nvmlReturn_t fill_versioned(const struct call *call, const struct gi_profile *profile, void *info)
{
    nvmlGpuInstanceProfileInfo_v2_t full = describe(call, profile);
    unsigned version = *(const unsigned *)info;
    if (call->gpu->knobs.names)
        return mig_bad_version(call->gpu);
    if (version == NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2u)) {
        full.version = version;
        memcpy(info, &full, sizeof full);
        return NVML_SUCCESS;
    }
    if (version != NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v3_t, 3u))
        return mig_bad_version(call->gpu);
    bool graphics = (profile->enum_index >= GI_1_SLICE_GFX && profile->enum_index <= GI_4_SLICE_GFX) || profile->enum_index == GI_3_SLICE_GFX;
    nvmlGpuInstanceProfileInfo_v3_t *v3 = info;
    *v3 = (nvmlGpuInstanceProfileInfo_v3_t){
        .version = version,
        .id = full.id,
        .sliceCount = full.sliceCount,
        .instanceCount = full.instanceCount,
        .multiprocessorCount = full.multiprocessorCount,
        .copyEngineCount = full.copyEngineCount,
        .decoderCount = full.decoderCount,
        .encoderCount = full.encoderCount,
        .jpegCount = full.jpegCount,
        .ofaCount = full.ofaCount,
        .memorySizeMB = full.memorySizeMB,
        .capabilities = graphics ? GI_PROFILE_CAPABILITY_GFX : 0,
    };
    memcpy(v3->name, full.name, sizeof v3->name);
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned enum_index, void *info)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    const struct gi_profile *profile = NULL;
    if (rc == NVML_SUCCESS && !info)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = find(&call, enum_index, &profile);
    if (rc == NVML_SUCCESS)
        rc = fill_versioned(&call, profile, info);
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned profile_id, void *info)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    const struct gi_profile *profile = NULL;
    if (rc == NVML_SUCCESS && !info)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = (profile = mig_profile(&call, profile_id)) ? tells_profiles(&call) : NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        rc = fill_versioned(&call, profile, info);
    return call_finish(&call, rc);
}

/* Begin a query about a profile id that only the privileged may ask. */
static nvmlReturn_t privileged_query(struct call *call, const char *symbol, nvmlDevice_t device, unsigned profile_id, const void *result,
                                     const struct gi_profile **profile)
{
    nvmlReturn_t rc = call_query(call, symbol, device, HANDLE_GPU);
    if (rc != NVML_SUCCESS)
        return rc;
    *profile = mig_profile(call, profile_id);
    if (!result)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (call->model->profile_count == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!*profile)
        return NVML_ERROR_INVALID_ARGUMENT;
    return access_all_instances() ? tells_profiles(call) : NVML_ERROR_NO_PERMISSION;
}

/* *count is how many fit into placements, and becomes how many there are; without placements only that is told. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned profile_id, nvmlPlacement_t *placements,
                                                                       unsigned *count)
{
    struct call call;
    const struct gi_profile *profile;
    nvmlReturn_t rc = privileged_query(&call, __func__, device, profile_id, count, &profile);
    if (rc != NVML_SUCCESS)
        return call_finish(&call, rc);
    if (placements && *count < profile->placement_count)
        rc = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; rc == NVML_SUCCESS && placements && i < profile->placement_count; i++)
        placements[i] = (nvmlPlacement_t){profile->starts[i], profile->size};
    *count = profile->placement_count;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned profile_id, unsigned *count)
{
    struct call call;
    const struct gi_profile *profile;
    nvmlReturn_t rc = privileged_query(&call, __func__, device, profile_id, count, &profile);
    if (rc == NVML_SUCCESS && !call.gpu->mig_current)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        *count = mig_remaining_capacity(call.gpu, call.model, profile);
    return call_finish(&call, rc);
}
