/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * MIG devices: what a compute instance looks like to a program. Their indices under a GPU have holes.
 */
#include "access.h"
#include "call.h"
#include "mig.h"

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !count)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && call.model->profile_count == 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        *count = call.gpu->mig_current ? call.model->max_mig_devices : 0;
    return call_finish(&call, rc);
}

static nvmlReturn_t find_by_index(const struct call *call, unsigned index, nvmlDevice_t *mig_device)
{
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++)
        for (unsigned ci = 0; call->gpu->instances[gi].used && ci < MAX_COMPUTE_INSTANCES; ci++) {
            const struct compute_instance *instance = &call->gpu->instances[gi].compute[ci];
            if (!instance->used || instance->mig_index != index || !access_instance(call->gpu->minor, gi, (int)ci))
                continue;
            *mig_device = handle_for((struct handle){HANDLE_MIG, call->handle->gpu, gi, ci, instance->generation});
            return *mig_device ? NVML_SUCCESS : NVML_ERROR_MEMORY;
        }
    return NVML_ERROR_NOT_FOUND;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig_device)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !call.gpu->mig_current)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS && (!mig_device || index >= call.model->max_mig_devices))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = find_by_index(&call, index, mig_device);
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device, nvmlDevice_t *device)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, mig_device, HANDLE_MIG);
    if (rc == NVML_SUCCESS && !device)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        *device = handle_for((struct handle){.kind = HANDLE_GPU, .gpu = call.handle->gpu});
        rc = *device ? NVML_SUCCESS : NVML_ERROR_MEMORY;
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_mig)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU | HANDLE_MIG);
    if (rc == NVML_SUCCESS && !is_mig)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *is_mig = call.handle->kind == HANDLE_MIG;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig_device, unsigned *id)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, mig_device, HANDLE_MIG);
    if (rc == NVML_SUCCESS && !id)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *id = call.handle->gpu_instance;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig_device, unsigned *id)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, mig_device, HANDLE_MIG);
    if (rc == NVML_SUCCESS && !id)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *id = call.handle->compute_instance;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig_device, nvmlDeviceAttributes_t *attributes)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, mig_device, HANDLE_GPU | HANDLE_MIG);
    if (rc == NVML_SUCCESS && !attributes)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && call.handle->kind == HANDLE_GPU)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS) {
        const struct gi_profile *profile = profile_by_id(call.model, call.gpu_instance->profile_id);
        struct ci_profile compute = {0};
        mig_compute_profile(call.gpu, call.model, profile, call.compute_instance->profile, &compute);
        *attributes = (nvmlDeviceAttributes_t){
            .multiprocessorCount = compute.multiprocessors,
            .sharedCopyEngineCount = profile->engines[COPY_ENGINES],
            .sharedDecoderCount = profile->engines[DECODERS],
            .sharedEncoderCount = profile->engines[ENCODERS],
            .sharedJpegCount = profile->engines[JPEG_ENGINES],
            .sharedOfaCount = profile->engines[OFA_ENGINES],
            .gpuInstanceSliceCount = profile->slices,
            .computeInstanceSliceCount = call.compute_instance->size,
            .memorySizeMB = profile->memory_mib,
        };
    }
    return call_finish(&call, rc);
}
