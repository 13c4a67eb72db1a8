/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Finding GPUs: by index, UUID, PCI address. Indices count the GPUs visible to this process.
 */
#include "access.h"
#include "call.h"
#include "mig.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static nvmlReturn_t give_gpu(const struct machine *machine, unsigned gpu, nvmlDevice_t *device)
{
    if (machine->gpus[gpu].lost)
        return NVML_ERROR_GPU_IS_LOST;
    *device = handle_for((struct handle){.kind = HANDLE_GPU, .gpu = gpu});
    return *device ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, NULL, 0);
    if (rc == NVML_SUCCESS && !count)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *count = visible_count();
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, NULL, 0);
    if (rc == NVML_SUCCESS && (!device || visible_gpu(index) < 0))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = give_gpu(call.machine, (unsigned)visible_gpu(index), device);
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t find_by_pci_bus_id(const struct machine *machine, const char *bus_id, nvmlDevice_t *device)
{
    unsigned domain, bus, slot, function = 0;
    if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < visible_count(); i++) {
        unsigned gpu = (unsigned)visible_gpu(i);
        if (domain == 0 && slot == 0 && function == 0 && machine->gpus[gpu].pci_bus == bus)
            return give_gpu(machine, gpu, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, NULL, 0);
    if (rc == NVML_SUCCESS && (!bus_id || !device))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = find_by_pci_bus_id(call.machine, bus_id, device);
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

static nvmlReturn_t find_mig_by_uuid(const struct machine *machine, unsigned gpu, const char *uuid, nvmlDevice_t *device)
{
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++)
        for (unsigned ci = 0; machine->gpus[gpu].instances[gi].used && ci < MAX_COMPUTE_INSTANCES; ci++) {
            const struct compute_instance *instance = &machine->gpus[gpu].instances[gi].compute[ci];
            char text[48];
            if (!instance->used || !access_instance(machine->gpus[gpu].minor, gi, (int)ci))
                continue;
            mig_uuid(&machine->gpus[gpu], gi, ci, text);
            if (strcasecmp(uuid, text) != 0)
                continue;
            *device = handle_for((struct handle){HANDLE_MIG, gpu, gi, ci, instance->generation});
            return *device ? NVML_SUCCESS : NVML_ERROR_MEMORY;
        }
    return NVML_ERROR_NOT_FOUND;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, NULL, 0);
    if (rc == NVML_SUCCESS && (!uuid || !*uuid || !device))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    else if (rc == NVML_SUCCESS)
        rc = NVML_ERROR_NOT_FOUND;
    for (unsigned i = 0; rc == NVML_ERROR_NOT_FOUND && i < visible_count(); i++) {
        unsigned gpu = (unsigned)visible_gpu(i);
        rc = strcasecmp(uuid, call.machine->gpus[gpu].uuid) == 0 ? give_gpu(call.machine, gpu, device)
                                                                    : find_mig_by_uuid(call.machine, gpu, uuid, device);
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !index)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *index = (unsigned)visible_index(device->gpu);
    return call_finish(&call, rc);
}
