/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * NVLink states and other ends. The links of a GPU are spread over its peers in turn, or all lead to NVSwitches.
 */
#include "nvlink.h"
#include "call.h"
#include "nvml_abi_health.h"

#include <stdio.h>

/* PCI bus and device id of the emulated NVSwitches, as of the third generation on HGX H100 boards. */
enum { FIRST_SWITCH_BUS = 0xc1, SWITCHES = 4 };
#define SWITCH_PCI_DEVICE_ID 0x22a310deu

/* Data centre parts only: compute capability 8.0, 9.0, 10.x. */
unsigned nvlink_count(const struct model *model)
{
    if (model->compute_major == 8)
        return model->compute_minor == 0 ? 12 : 0;
    return model->compute_major == 9 || model->compute_major == 10 ? NVML_NVLINK_MAX_LINKS : 0;
}

bool nvlink_are_peers(const struct gpu *gpu, const struct gpu *other)
{
    return gpu != other && gpu->nvlink_group != 0 && gpu->nvlink_group != NVLINK_SWITCH && gpu->nvlink_group == other->nvlink_group;
}

const struct gpu *nvlink_peer(const struct machine *machine, const struct gpu *gpu, unsigned n)
{
    for (unsigned i = 0; i < machine->gpu_count; i++)
        if (nvlink_are_peers(gpu, &machine->gpus[i]) && n-- == 0)
            return &machine->gpus[i];
    return NULL;
}

unsigned nvlink_peer_count(const struct machine *machine, const struct gpu *gpu)
{
    unsigned count = 0;
    while (nvlink_peer(machine, gpu, count))
        count++;
    return count;
}

/* INVALID_ARGUMENT for a number beyond all links, NOT_SUPPORTED for a link that the GPU does not have. */
static nvmlReturn_t begin(struct call *call, const char *symbol, nvmlDevice_t device, unsigned link, const void *result)
{
    nvmlReturn_t rc = call_query(call, symbol, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && (!result || link >= NVML_NVLINK_MAX_LINKS))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && link >= nvlink_count(call->model))
        rc = NVML_ERROR_NOT_SUPPORTED;
    return rc;
}

static bool is_up(const struct call *call)
{
    return call->gpu->nvlink_group == NVLINK_SWITCH || nvlink_peer_count(call->machine, call->gpu) > 0;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *active)
{
    struct call call;
    nvmlReturn_t rc = begin(&call, __func__, device, link, active);
    if (rc == NVML_SUCCESS)
        *active = is_up(&call);
    return call_finish(&call, rc);
}

/* A link that is down has no other end. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, unsigned *type)
{
    struct call call;
    nvmlReturn_t rc = begin(&call, __func__, device, link, type);
    if (rc == NVML_SUCCESS && !is_up(&call))
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        *type = call.gpu->nvlink_group == NVLINK_SWITCH ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return call_finish(&call, rc);
}

static void describe(nvmlPciInfo_t *pci, unsigned bus, unsigned device_id)
{
    *pci = (nvmlPciInfo_t){.bus = bus, .pciDeviceId = device_id};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", (uint8_t)bus);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", (uint8_t)bus);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci)
{
    struct call call;
    nvmlReturn_t rc = begin(&call, __func__, device, link, pci);
    if (rc == NVML_SUCCESS && !is_up(&call))
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS && call.gpu->nvlink_group == NVLINK_SWITCH) {
        describe(pci, FIRST_SWITCH_BUS + link % SWITCHES, SWITCH_PCI_DEVICE_ID);
    } else if (rc == NVML_SUCCESS) {
        const struct gpu *peer = nvlink_peer(call.machine, call.gpu, link % nvlink_peer_count(call.machine, call.gpu));
        describe(pci, peer->pci_bus, call.model->pci_device_id);
    }
    return call_finish(&call, rc);
}
