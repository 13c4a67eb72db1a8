/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Registration at the NVLink fabric.
 */
#include "call.h"
#include "nvml_abi_health.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

/* One cluster for all GPUs of the machine: its id is made of the UUID of the first. */
static void cluster_uuid(const struct machine *machine, unsigned char bytes[16])
{
    char text[48];
    uuid_from_name(text, "CLUSTER", "%s", machine->gpus[0].uuid);
    const char *digit = strchr(text, '-') + 1;
    for (unsigned i = 0; i < 16; i++) {
        unsigned value = 0;
        digit += *digit == '-';
        sscanf(digit, "%2x", &value);
        bytes[i] = (unsigned char)value;
        digit += 2;
    }
}

/* GPUs before Hopper have no fabric to register at; later ones tell the state, which may be "not supported" too. The third version of
 * the struct has the same head as the second, and a summary. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !info)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && info->version != NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v2_t, 2u)
        && info->version != NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v3_t, 3u))
        rc = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (rc == NVML_SUCCESS && call.model->compute_major < 9)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS) {
        const struct health *health = &call.gpu->health;
        memset(info->clusterUuid, 0, sizeof info->clusterUuid);
        if (health->fabric_state == FABRIC_COMPLETED)
            cluster_uuid(call.machine, info->clusterUuid);
        info->status = (nvmlReturn_t)health->fabric_status;
        info->cliqueId = health->fabric_clique;
        info->state = (unsigned char)health->fabric_state;
        info->healthMask = health->fabric_health_mask;
        if (info->version == NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v3_t, 3u))
            info->healthSummary = (unsigned char)health->fabric_summary;
    }
    return call_finish(&call, rc);
}
