/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The process lists of a GPU and of a MIG device.
 */
#include "call.h"

#define MIB (1ull << 20)
#define MEMORY_NOT_TOLD (~0ull)

/* A GPU's list has the processes of all its instances, a MIG device's only its own. */
static bool belongs(const struct call *call, const struct client *client)
{
    if (call->handle->kind == HANDLE_GPU)
        return true;
    return client->gpu_instance == call->handle->gpu_instance
        && (client->compute_instance == call->handle->compute_instance || client->compute_instance == NVML_NO_INSTANCE);
}

/* *count: room in the array, then the number of processes; INSUFFICIENT_SIZE if the room is too small. */
static nvmlReturn_t list(const struct call *call, enum client_kind kind, unsigned *count, nvmlProcessInfo_t *processes)
{
    unsigned room = *count, found = 0;
    const struct client *client;
    for (unsigned n = 0; (client = client_at(call->machine, call->gpu, n)) != NULL; n++) {
        if (client->kind != kind || !belongs(call, client))
            continue;
        if (found < room && processes)
            processes[found] = (nvmlProcessInfo_t){
                .pid = client->pid,
                .usedGpuMemory = client->memory_mib ? client->memory_mib * MIB : MEMORY_NOT_TOLD,
                .gpuInstanceId = client->gpu_instance,
                .computeInstanceId = client->compute_instance,
            };
        found++;
    }
    *count = found;
    return found > room || (found && !processes) ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t list_processes(const char *symbol, enum client_kind kind, nvmlDevice_t device, unsigned *count,
                                   nvmlProcessInfo_t *processes)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, symbol, device, HANDLE_GPU | HANDLE_MIG);
    if (rc == NVML_SUCCESS && !count)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = list(&call, kind, count, processes);
    return call_finish(&call, rc);
}

/* The _v2 and _v3 forms have the same layout. */
#define PROCESS_LIST(name, kind)                                                                        \
    NVML_EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)   \
    {                                                                                                   \
        return list_processes(#name, kind, device, count, processes);                                   \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, CLIENT_COMPUTE)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, CLIENT_COMPUTE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, CLIENT_GRAPHICS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, CLIENT_GRAPHICS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, CLIENT_MPS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, CLIENT_MPS)
