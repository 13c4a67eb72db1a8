/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * MIG mode, and the reset that Ampere needs to change it.
 */
#include "call.h"
#include "mig.h"
#include "nvml_abi_health.h"
#include "reset.h"

/* A model without MIG, or a vGPU guest. */
static bool has_no_mode(const struct call *call)
{
    return call->model->profile_count == 0 || call->gpu->virtualization == NVML_GPU_VIRTUALIZATION_MODE_VGPU;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && (!current || !pending))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && has_no_mode(&call))
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS) {
        *current = call.gpu->mig_current;
        *pending = call.gpu->mig_pending;
    }
    return call_finish(&call, rc);
}

/* Why the mode cannot take effect now. */
static nvmlReturn_t obstacle(const struct call *call, unsigned mode)
{
    const struct gpu *gpu = call->gpu;
    if (gpu->activation)
        return (nvmlReturn_t)gpu->activation;
    if (clients_block(call->machine, gpu, BLOCKS_MODE) || (mode == NVML_DEVICE_MIG_DISABLE && mig_has_instances(gpu)))
        return NVML_ERROR_IN_USE;
    return call->model->resetless_mig ? NVML_SUCCESS : reset_refusal(call->machine, gpu, 1u << call->handle->gpu);
}

/* Hopper and later: at once, or not at all, or at the next reset where one is required. Ampere: the mode is noted in the InfoROM, and
 * NVML tries to reset the GPU. */
static nvmlReturn_t set_mode(const struct call *call, unsigned mode, nvmlReturn_t *activation)
{
    struct gpu *gpu = call->gpu;
    *activation = NVML_SUCCESS;
    if (gpu->mig_current == mode) {
        gpu->mig_pending = mode;
        return NVML_SUCCESS;
    }
    nvmlReturn_t reason = obstacle(call, mode);
    if (reason == NVML_ERROR_IN_USE && gpu->in_use_form == IN_USE_BY_RETURN)
        return NVML_ERROR_IN_USE;
    /* GPUs of a group that must be reset together wait for that reset. */
    *activation = reason == NVML_ERROR_RESET_TYPE_NOT_SUPPORTED ? NVML_ERROR_RESET_REQUIRED : reason;
    if (!call->model->resetless_mig || reason == NVML_SUCCESS || reason == NVML_ERROR_RESET_REQUIRED)
        gpu->mig_pending = mode;
    if (reason == NVML_SUCCESS && !call->model->resetless_mig)
        reset_gpu(gpu);
    if (reason == NVML_SUCCESS)
        gpu->mig_current = mode;
    return NVML_SUCCESS;
}

/* Two results: the return code says whether the request was taken, the activation status whether the mode is in effect. */
NVML_EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned mode, nvmlReturn_t *activation)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, device, HANDLE_GPU);
    call_arguments(&call, "\"mode\": %u", mode);
    if (rc == NVML_SUCCESS && (mode > NVML_DEVICE_MIG_ENABLE || !activation))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && has_no_mode(&call))
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS) {
        rc = set_mode(&call, mode, activation);
        call.activation = (int)*activation;
    }
    return call_finish(&call, rc);
}
