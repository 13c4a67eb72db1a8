/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * MIG mode, and the reset that Ampere needs to change it.
 */
#include "call.h"
#include "mig.h"

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && (!current || !pending))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && call.model->profile_count == 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS) {
        *current = call.gpu->mig_current;
        *pending = call.gpu->mig_pending;
    }
    return call_finish(&call, rc);
}

static bool is_in_use(const struct gpu *gpu, unsigned mode)
{
    return gpu->held || (mode == NVML_DEVICE_MIG_DISABLE && mig_has_instances(gpu));
}

/* Hopper and later: at once, or not at all. */
static nvmlReturn_t switch_without_reset(struct gpu *gpu, unsigned mode)
{
    if (is_in_use(gpu, mode))
        return NVML_ERROR_IN_USE;
    gpu->mig_current = gpu->mig_pending = mode;
    return NVML_SUCCESS;
}

/* Ampere: the mode is noted in the InfoROM and NVML tries to reset the GPU. */
static nvmlReturn_t switch_by_reset(struct gpu *gpu, unsigned mode)
{
    gpu->mig_pending = mode;
    return is_in_use(gpu, mode) ? NVML_ERROR_IN_USE : mig_gpu_reset(gpu);
}

static nvmlReturn_t set_mode(const struct call *call, unsigned mode, nvmlReturn_t *activation)
{
    struct gpu *gpu = call->gpu;
    *activation = NVML_SUCCESS;
    if (gpu->mig_current == mode) {
        gpu->mig_pending = mode;
        return NVML_SUCCESS;
    }
    if (is_in_use(gpu, mode) && gpu->in_use_form == IN_USE_BY_RETURN)
        return NVML_ERROR_IN_USE;
    *activation = call->model->resetless_mig ? switch_without_reset(gpu, mode) : switch_by_reset(gpu, mode);
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
    if (rc == NVML_SUCCESS && call.model->profile_count == 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS) {
        rc = set_mode(&call, mode, activation);
        call.activation = (int)*activation;
    }
    return call_finish(&call, rc);
}

/* Not of NVML, which has no reset call: what nvidia-smi -r asks of the kernel module. */
NVML_EXPORT nvmlReturn_t nvmlEmulatorResetDevice(nvmlDevice_t device)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS)
        rc = mig_gpu_reset(call.gpu);
    return call_finish(&call, rc);
}
