/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * nvidia-smi without arguments, -L, -q, --version.
 */
#include "nvidia_smi.h"

#include <string.h>

int smi_version(void)
{
    char driver[96] = "", nvml[96] = "";
    int cuda = 0;
    CALL("nvmlSystemGetDriverVersion", (char *, unsigned), driver, sizeof driver);
    CALL("nvmlSystemGetNVMLVersion", (char *, unsigned), nvml, sizeof nvml);
    CALL("nvmlSystemGetCudaDriverVersion", (int *), &cuda);
    printf("NVIDIA-SMI version  : %s\nNVML version        : %s\nDRIVER version      : %s\nCUDA Version        : %d.%d\n", driver, nvml, driver,
           cuda / 1000, cuda % 1000 / 10);
    return 0;
}

static void list_mig_devices(nvmlDevice_t gpu)
{
    unsigned slots = 0;
    CALL("nvmlDeviceGetMaxMigDeviceCount", (nvmlDevice_t, unsigned *), gpu, &slots);
    for (unsigned i = 0; i < slots; i++) {
        nvmlDevice_t device;
        char name[96], uuid[96];
        if (CALL("nvmlDeviceGetMigDeviceHandleByIndex", (nvmlDevice_t, unsigned, nvmlDevice_t *), gpu, i, &device) != NVML_SUCCESS)
            continue;
        const char *profile = strstr(smi_text("nvmlDeviceGetName", device, name), "MIG ");
        printf("  %-15s Device %2u: (UUID: %s)\n", profile ? profile : name, i, smi_text("nvmlDeviceGetUUID", device, uuid));
    }
}

int smi_list(const struct targets *targets)
{
    for (unsigned i = 0; i < targets->count; i++) {
        char name[96], uuid[96];
        nvmlDevice_t gpu = targets->gpus[i];
        printf("GPU %u: %s (UUID: %s)\n", smi_index(gpu), smi_text("nvmlDeviceGetName", gpu, name), smi_text("nvmlDeviceGetUUID", gpu, uuid));
        list_mig_devices(gpu);
    }
    return 0;
}

int smi_table(const struct targets *targets)
{
    char driver[96] = "";
    CALL("nvmlSystemGetDriverVersion", (char *, unsigned), driver, sizeof driver);
    if (targets->count == 0) {
        printf("No devices were found\n");
        return EXIT_NOT_FOUND;
    }
    printf("NVIDIA-SMI %s   Driver Version: %s\n%-4s %-46s %-17s %-20s %s\n", driver, driver, "GPU", "Name", "Bus-Id", "Memory-Usage", "MIG M.");
    for (unsigned i = 0; i < targets->count; i++) {
        char name[96];
        nvmlPciInfo_t pci = {0};
        nvmlMemory_t memory = {0};
        unsigned current = 0, pending = 0;
        nvmlDevice_t gpu = targets->gpus[i];
        CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), gpu, &pci);
        CALL("nvmlDeviceGetMemoryInfo", (nvmlDevice_t, nvmlMemory_t *), gpu, &memory);
        nvmlReturn_t mig = CALL("nvmlDeviceGetMigMode", (nvmlDevice_t, unsigned *, unsigned *), gpu, &current, &pending);
        printf("%-4u %-46s %-17s %6lluMiB / %6lluMiB %s%s\n", smi_index(gpu), smi_text("nvmlDeviceGetName", gpu, name), pci.busId, memory.used >> 20,
               memory.total >> 20, mig != NVML_SUCCESS ? "N/A" : current ? "Enabled" : "Disabled", current != pending ? "*" : "");
    }
    return 0;
}

static const char *enabled(unsigned mode)
{
    return mode ? "Enabled" : "Disabled";
}

int smi_report(const struct targets *targets)
{
    char text[96] = "";
    int cuda = 0;
    CALL("nvmlSystemGetDriverVersion", (char *, unsigned), text, sizeof text);
    CALL("nvmlSystemGetCudaDriverVersion", (int *), &cuda);
    printf("\n==============NVSMI LOG==============\n\n%-42s: %s\n%-42s: %d.%d\n\n", "Driver Version", text, "CUDA Version", cuda / 1000,
           cuda % 1000 / 10);
    printf("%-42s: %u\n", "Attached GPUs", targets->count);
    for (unsigned i = 0; i < targets->count; i++) {
        nvmlPciInfo_t pci = {0};
        nvmlMemory_t memory = {0};
        unsigned current = 0, pending = 0, minor = 0;
        nvmlDevice_t gpu = targets->gpus[i];
        CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), gpu, &pci);
        CALL("nvmlDeviceGetMemoryInfo", (nvmlDevice_t, nvmlMemory_t *), gpu, &memory);
        CALL("nvmlDeviceGetMinorNumber", (nvmlDevice_t, unsigned *), gpu, &minor);
        CALL("nvmlDeviceGetMigMode", (nvmlDevice_t, unsigned *, unsigned *), gpu, &current, &pending);
        printf("GPU %s\n    %-38s: %s\n", pci.busId, "Product Name", smi_text("nvmlDeviceGetName", gpu, text));
        printf("    MIG Mode\n        %-34s: %s\n        %-34s: %s\n", "Current", enabled(current), "Pending", enabled(pending));
        printf("    %-38s: %s\n", "GPU UUID", smi_text("nvmlDeviceGetUUID", gpu, text));
        printf("    %-38s: %u\n", "Minor Number", minor);
        printf("    FB Memory Usage\n        %-34s: %llu MiB\n", "Total", memory.total >> 20);
    }
    return 0;
}
