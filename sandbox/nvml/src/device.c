/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Plain facts of a GPU. Where a MIG device has its own answer (name, UUID, memory) it is given for MIG handles too.
 */
#include "call.h"
#include "mig.h"

#include <stdio.h>
#include <string.h>

enum { ANY_DEVICE = HANDLE_GPU | HANDLE_MIG };

/* Memory that the driver keeps for itself, in MiB. */
#define RESERVED_MIB 512ull

NVML_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, ANY_DEVICE);
    if (rc == NVML_SUCCESS) {
        char text[96], profile[48];
        if (call.compute_instance) {
            mig_device_profile_name(&call, profile, sizeof profile);
            snprintf(text, sizeof text, "%.40s MIG %s", call.model->product, profile);
        }
        rc = copy_text(name, length, call.compute_instance ? text : call.model->product);
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, ANY_DEVICE);
    if (rc == NVML_SUCCESS) {
        char text[48];
        if (call.compute_instance)
            mig_uuid(call.gpu, call.handle->gpu_instance, call.handle->compute_instance, text);
        rc = copy_text(uuid, length, call.compute_instance ? text : call.gpu->uuid);
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, ANY_DEVICE);
    if (rc == NVML_SUCCESS)
        rc = copy_text(serial, length, call.gpu->serial);
    return call_finish(&call, rc);
}

/* One number of a GPU. */
static nvmlReturn_t number(const char *symbol, nvmlDevice_t device, unsigned kinds, unsigned (*read)(const struct call *),
                           unsigned *value)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, symbol, device, kinds);
    if (rc == NVML_SUCCESS && !value)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *value = read(&call);
    return call_finish(&call, rc);
}

static unsigned read_minor(const struct call *call)
{
    return call->gpu->minor;
}

static unsigned read_architecture(const struct call *call)
{
    return call->model->architecture;
}

static unsigned read_brand(const struct call *call)
{
    return call->model->brand;
}

static unsigned read_persistence(const struct call *call)
{
    return call->gpu->persistence_mode;
}

static unsigned read_virtualization(const struct call *call)
{
    return call->gpu->virtualization;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
    return number(__func__, device, HANDLE_GPU, read_minor, minor);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture)
{
    return number(__func__, device, ANY_DEVICE, read_architecture, architecture);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *brand)
{
    return number(__func__, device, ANY_DEVICE, read_brand, brand);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *mode)
{
    return number(__func__, device, HANDLE_GPU, read_persistence, mode);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned *mode)
{
    return number(__func__, device, HANDLE_GPU, read_virtualization, mode);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned mode)
{
    struct call call;
    nvmlReturn_t rc = call_change(&call, __func__, device, HANDLE_GPU);
    call_arguments(&call, "\"mode\": %u", mode);
    if (rc == NVML_SUCCESS && mode > 1)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        call.gpu->persistence_mode = mode;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, ANY_DEVICE);
    if (rc == NVML_SUCCESS && (!major || !minor))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        *major = (int)call.model->compute_major;
        *minor = (int)call.model->compute_minor;
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !pci)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        memset(pci, 0, sizeof *pci);
        pci->bus = call.gpu->pci_bus;
        pci->pciDeviceId = call.model->pci_device_id;
        pci->pciSubSystemId = call.model->pci_subsystem_id;
        snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", (uint8_t)call.gpu->pci_bus);
        snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", (uint8_t)call.gpu->pci_bus);
    }
    return call_finish(&call, rc);
}

/* Memory of the GPU or MIG device: clients use some, and the driver keeps a share of the GPU's. */
static nvmlMemory_v2_t memory_of(const struct call *call)
{
    const unsigned long long mib = 1ull << 20;
    nvmlMemory_v2_t memory = {0};
    if (call->compute_instance)
        memory.total = profile_by_id(call->model, call->gpu_instance->profile_id)->memory_mib * mib;
    else
        memory.total = call->model->memory_mib * mib;
    memory.reserved = call->compute_instance ? 0 : RESERVED_MIB * mib;
    memory.used = clients_memory(call->machine, call->gpu, call->compute_instance ? call->handle->gpu_instance : NVML_NO_INSTANCE) * mib;
    memory.free = memory.total > memory.reserved + memory.used ? memory.total - memory.reserved - memory.used : 0;
    return memory;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, ANY_DEVICE);
    if (rc == NVML_SUCCESS && !memory)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        nvmlMemory_v2_t detailed = memory_of(&call);
        *memory = (nvmlMemory_t){detailed.total, detailed.free, detailed.used + detailed.reserved};
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, ANY_DEVICE);
    if (rc == NVML_SUCCESS && !memory)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2u))
        rc = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (rc == NVML_SUCCESS) {
        unsigned version = memory->version;
        *memory = memory_of(&call);
        memory->version = version;
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !mode)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && mode->version != NVML_STRUCT_VERSION(nvmlDeviceAddressingMode_t, 1u))
        rc = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (rc == NVML_SUCCESS)
        mode->value = call.model->addressing_mode;
    return call_finish(&call, rc);
}

/* The position on an SXM baseboard; boards with PCIe slots have none, and which SXM boards answer is not known well enough. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned *module)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS)
        rc = module ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
    return call_finish(&call, rc);
}
