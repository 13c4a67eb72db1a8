/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * nvidia-smi -r, in the words of the real one.
 */
#include "nvidia_smi.h"

#include <string.h>

/* The NVLink peers of a GPU that are not among the targets. */
static void name_peers(const struct targets *targets, nvmlDevice_t gpu)
{
    char named[1024] = "";
    for (unsigned link = 0;; link++) {
        nvmlPciInfo_t peer = {0};
        char own[32];
        if (CALL("nvmlDeviceGetNvLinkRemotePciInfo_v2", (nvmlDevice_t, unsigned, nvmlPciInfo_t *), gpu, link, &peer) != NVML_SUCCESS)
            break;
        bool known = strstr(named, peer.busId) != NULL;
        for (unsigned i = 0; i < targets->count; i++)
            known = known || strcmp(peer.busId, smi_pci_bus_id(targets->gpus[i], own)) == 0;
        if (known || strlen(named) + sizeof peer.busId >= sizeof named)
            continue;
        strcat(named, " ");
        strcat(named, peer.busId);
    }
    printf(" (NVLink peers must be reset together:%s)", named);
}

static void tell_refusals(const struct targets *targets, const nvmlReturn_t *results)
{
    unsigned in_use = 0;
    printf("The following GPUs could not be reset:\n");
    for (unsigned i = 0; i < targets->count; i++) {
        char bus_id[32];
        nvmlReturn_t rc = results[i];
        if (rc == NVML_SUCCESS)
            continue;
        /* Where a reset is refused for a reason other than use, NVIDIA's tool says only that. */
        bool refused = rc == NVML_ERROR_RESET_REQUIRED || rc == NVML_ERROR_RESET_TYPE_NOT_SUPPORTED;
        printf("  GPU %s: %s", smi_pci_bus_id(targets->gpus[i], bus_id), smi_error(refused ? NVML_ERROR_NOT_SUPPORTED : rc));
        if (rc == NVML_ERROR_RESET_TYPE_NOT_SUPPORTED)
            name_peers(targets, targets->gpus[i]);
        printf("\n");
        in_use += rc == NVML_ERROR_IN_USE;
    }
    if (in_use)
        printf("\n%u device%s currently being used by one or more other processes (e.g., Fabric Manager, CUDA application, graphics application "
               "such as an X server, or a monitoring application such as another instance of nvidia-smi). Please first kill all processes using "
               "%s and all compute applications running in the system.\n",
               in_use, in_use == 1 ? " is" : "s are", in_use == 1 ? "this device" : "these devices");
}

int smi_reset(const struct targets *targets)
{
    nvmlReturn_t results[MAX_TARGETS] = {NVML_SUCCESS};
    bool refused = false;
    ((void (*)(unsigned, const nvmlDevice_t *, nvmlReturn_t *))smi_function("nvmlEmulatorResetDevices"))(targets->count, targets->gpus, results);
    for (unsigned i = 0; i < targets->count; i++) {
        char bus_id[32];
        if (results[i] == NVML_ERROR_NO_PERMISSION) {
            printf("Resetting GPU %s requires root.\n", smi_pci_bus_id(targets->gpus[i], bus_id));
            return EXIT_PERMISSION;
        }
        refused = refused || results[i] != NVML_SUCCESS;
    }
    if (refused) {
        tell_refusals(targets, results);
        return EXIT_RESET_REFUSED;
    }
    for (unsigned i = 0; i < targets->count; i++) {
        char bus_id[32];
        printf("GPU %s was successfully reset.\n", smi_pci_bus_id(targets->gpus[i], bus_id));
    }
    printf("All done.\n");
    return 0;
}
