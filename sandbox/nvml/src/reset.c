/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Resets of GPUs. NVML has no call for it: nvidia-smi -r asks the kernel module, here through nvmlEmulatorResetDevices.
 */
#include "reset.h"
#include "call.h"
#include "mig.h"
#include "nvlink.h"
#include "nvml_abi_health.h"

nvmlReturn_t reset_refusal(const struct machine *machine, const struct gpu *gpu, uint32_t together)
{
    if (clients_block(machine, gpu, BLOCKS_RESET))
        return NVML_ERROR_IN_USE;
    if (gpu->reset_refused)
        return NVML_ERROR_RESET_REQUIRED;
    for (unsigned i = 0; gpu->nvlink_reset_group && i < machine->gpu_count; i++)
        if (nvlink_are_peers(gpu, &machine->gpus[i]) && !(together & 1u << i))
            return NVML_ERROR_RESET_TYPE_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

void reset_gpu(struct gpu *gpu)
{
    mig_gpu_reset(gpu);
    health_after_reset(&gpu->health);
}

static nvmlReturn_t ask(nvmlDevice_t device, uint32_t together)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, "nvmlEmulatorResetQuery", device, HANDLE_GPU);
    if (rc == NVML_SUCCESS)
        rc = reset_refusal(call.machine, call.gpu, together);
    return call_finish(&call, rc);
}

static nvmlReturn_t reset(nvmlDevice_t device, uint32_t together)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, "nvmlEmulatorResetDevice", device, HANDLE_GPU);
    if (rc == NVML_SUCCESS)
        rc = reset_refusal(call.machine, call.gpu, together);
    if (rc == NVML_SUCCESS)
        reset_gpu(call.gpu);
    return call_finish(&call, rc);
}

/* Reset GPUs together, or none of them if one may not be; results[i] says how it went with the i-th. */
NVML_EXPORT void nvmlEmulatorResetDevices(unsigned count, const nvmlDevice_t *devices, nvmlReturn_t *results)
{
    uint32_t together = 0;
    bool refused = false;
    for (unsigned i = 0; i < count; i++)
        together |= 1u << devices[i]->gpu;
    for (unsigned i = 0; i < count; i++) {
        results[i] = ask(devices[i], together);
        refused = refused || results[i] != NVML_SUCCESS;
    }
    for (unsigned i = 0; !refused && i < count; i++)
        results[i] = reset(devices[i], together);
}
