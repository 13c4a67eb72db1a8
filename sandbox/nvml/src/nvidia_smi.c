/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The few forms of nvidia-smi that scripts rely on: the table, -L, -q, --version, and -r (reset). Everything comes from the
 * libnvidia-ml.so.1 that the loader finds.
 */
#define _DEFAULT_SOURCE
#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, EXIT_NOT_SUPPORTED = 3, EXIT_PERMISSION = 4, EXIT_NOT_FOUND = 6, EXIT_DRIVER = 9, EXIT_LIBRARY = 12,
       EXIT_IN_USE = 19 };

static void *library;

/* Function of the library; ends the program if it is not there. */
static void *function(const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "NVIDIA-SMI couldn't find %s in libnvidia-ml.so.1.\n", name);
        exit(EXIT_LIBRARY);
    }
    return symbol;
}

/* Call a function of the library by name; only its arguments' types say what it takes. */
#define CALL(name, signature, ...) (((nvmlReturn_t(*) signature)function(name))(__VA_ARGS__))

static void open_library(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver "
                        "is properly installed and present in your system.\n");
        exit(EXIT_LIBRARY);
    }
}

static void init(void)
{
    nvmlReturn_t rc = CALL("nvmlInitWithFlags", (unsigned), NVML_INIT_FLAG_NO_GPUS);
    if (rc == NVML_SUCCESS)
        return;
    if (rc == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
        fprintf(stderr, "Failed to initialize NVML: Driver/library version mismatch\n");
    else
        fprintf(stderr, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
                        "driver is installed and running.\n");
    exit(rc == NVML_ERROR_LIB_RM_VERSION_MISMATCH ? (int)rc : EXIT_DRIVER);
}

static unsigned gpu_count(void)
{
    unsigned count = 0;
    CALL("nvmlDeviceGetCount_v2", (unsigned *), &count);
    return count;
}

static nvmlDevice_t gpu_at(unsigned index)
{
    nvmlDevice_t gpu = NULL;
    CALL("nvmlDeviceGetHandleByIndex_v2", (unsigned, nvmlDevice_t *), index, &gpu);
    return gpu;
}

static const char *text_of(const char *name, nvmlDevice_t device, char text[96])
{
    text[0] = '\0';
    CALL(name, (nvmlDevice_t, char *, unsigned), device, text, 96u);
    return text;
}

static int show_version(void)
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
        const char *profile = strstr(text_of("nvmlDeviceGetName", device, name), "MIG ");
        printf("  %-15s Device %2u: (UUID: %s)\n", profile ? profile : name, i, text_of("nvmlDeviceGetUUID", device, uuid));
    }
}

static int list_gpus(void)
{
    for (unsigned i = 0; i < gpu_count(); i++) {
        char name[96], uuid[96];
        nvmlDevice_t gpu = gpu_at(i);
        printf("GPU %u: %s (UUID: %s)\n", i, text_of("nvmlDeviceGetName", gpu, name), text_of("nvmlDeviceGetUUID", gpu, uuid));
        list_mig_devices(gpu);
    }
    return 0;
}

static int show_table(void)
{
    char driver[96] = "";
    unsigned count = gpu_count();
    CALL("nvmlSystemGetDriverVersion", (char *, unsigned), driver, sizeof driver);
    if (count == 0) {
        printf("No devices were found\n");
        return EXIT_NOT_FOUND;
    }
    printf("NVIDIA-SMI %s   Driver Version: %s\n%-4s %-46s %-17s %-20s %s\n", driver, driver, "GPU", "Name", "Bus-Id", "Memory-Usage", "MIG M.");
    for (unsigned i = 0; i < count; i++) {
        char name[96];
        nvmlPciInfo_t pci = {0};
        nvmlMemory_t memory = {0};
        unsigned current = 0, pending = 0;
        nvmlDevice_t gpu = gpu_at(i);
        CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), gpu, &pci);
        CALL("nvmlDeviceGetMemoryInfo", (nvmlDevice_t, nvmlMemory_t *), gpu, &memory);
        nvmlReturn_t mig = CALL("nvmlDeviceGetMigMode", (nvmlDevice_t, unsigned *, unsigned *), gpu, &current, &pending);
        printf("%-4u %-46s %-17s %6lluMiB / %6lluMiB %s%s\n", i, text_of("nvmlDeviceGetName", gpu, name), pci.busId, memory.used >> 20,
               memory.total >> 20, mig != NVML_SUCCESS ? "N/A" : current ? "Enabled" : "Disabled", current != pending ? "*" : "");
    }
    return 0;
}

static const char *enabled(unsigned mode)
{
    return mode ? "Enabled" : "Disabled";
}

static int show_query(void)
{
    char text[96] = "";
    int cuda = 0;
    CALL("nvmlSystemGetDriverVersion", (char *, unsigned), text, sizeof text);
    CALL("nvmlSystemGetCudaDriverVersion", (int *), &cuda);
    printf("\n==============NVSMI LOG==============\n\n%-42s: %s\n%-42s: %d.%d\n\n", "Driver Version", text, "CUDA Version", cuda / 1000,
           cuda % 1000 / 10);
    printf("%-42s: %u\n", "Attached GPUs", gpu_count());
    for (unsigned i = 0; i < gpu_count(); i++) {
        nvmlPciInfo_t pci = {0};
        nvmlMemory_t memory = {0};
        unsigned current = 0, pending = 0, minor = 0;
        nvmlDevice_t gpu = gpu_at(i);
        CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), gpu, &pci);
        CALL("nvmlDeviceGetMemoryInfo", (nvmlDevice_t, nvmlMemory_t *), gpu, &memory);
        CALL("nvmlDeviceGetMinorNumber", (nvmlDevice_t, unsigned *), gpu, &minor);
        CALL("nvmlDeviceGetMigMode", (nvmlDevice_t, unsigned *, unsigned *), gpu, &current, &pending);
        printf("GPU %s\n    %-38s: %s\n", pci.busId, "Product Name", text_of("nvmlDeviceGetName", gpu, text));
        printf("    MIG Mode\n        %-34s: %s\n        %-34s: %s\n", "Current", enabled(current), "Pending", enabled(pending));
        printf("    %-38s: %s\n", "GPU UUID", text_of("nvmlDeviceGetUUID", gpu, text));
        printf("    %-38s: %u\n", "Minor Number", minor);
        printf("    FB Memory Usage\n        %-34s: %llu MiB\n", "Total", memory.total >> 20);
    }
    return 0;
}

/* The GPU that an index, UUID or PCI address names; NULL if none. */
static nvmlDevice_t find_gpu(const char *id)
{
    nvmlDevice_t gpu = NULL;
    char *end;
    unsigned long index = strtoul(id, &end, 10);
    if (*id && *end == '\0')
        return index < gpu_count() ? gpu_at((unsigned)index) : NULL;
    if (CALL("nvmlDeviceGetHandleByUUID", (const char *, nvmlDevice_t *), id, &gpu) != NVML_SUCCESS)
        CALL("nvmlDeviceGetHandleByPciBusId_v2", (const char *, nvmlDevice_t *), id, &gpu);
    return gpu;
}

static int reset_gpu(nvmlDevice_t gpu)
{
    nvmlPciInfo_t pci = {0};
    unsigned index = 0;
    CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), gpu, &pci);
    CALL("nvmlDeviceGetIndex", (nvmlDevice_t, unsigned *), gpu, &index);
    switch (CALL("nvmlEmulatorResetDevice", (nvmlDevice_t), gpu)) {
    case NVML_SUCCESS:
        printf("GPU %s was successfully reset.\n", pci.busId);
        return 0;
    case NVML_ERROR_IN_USE:
        printf("GPU %s is currently in use by another process.\n", pci.busId);
        return EXIT_IN_USE;
    case NVML_ERROR_NO_PERMISSION:
        printf("Resetting GPU %s requires root.\n", pci.busId);
        return EXIT_PERMISSION;
    default:
        printf("Resetting GPU %s is not supported.\n", pci.busId);
        return EXIT_NOT_SUPPORTED;
    }
}

static int reset(const char *ids)
{
    char copy[512], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", ids);
    for (char *id = strtok_r(copy, ",", &rest); id; id = strtok_r(NULL, ",", &rest)) {
        nvmlDevice_t gpu = find_gpu(id);
        if (!gpu) {
            printf("No devices were found for %s\n", id);
            return EXIT_NOT_FOUND;
        }
        int rc = reset_gpu(gpu);
        if (rc != 0)
            return rc;
    }
    printf("All done.\n");
    return 0;
}

static int reset_all(void)
{
    for (unsigned i = 0; i < gpu_count(); i++) {
        int rc = reset_gpu(gpu_at(i));
        if (rc != 0)
            return rc;
    }
    printf("All done.\n");
    return 0;
}

static int usage(const char *argument)
{
    fprintf(stderr, "Invalid combination of input arguments: %s. This is the emulated nvidia-smi: no argument, -L, -q, --version, -r [-i GPU,...].\n",
            argument);
    return EXIT_USAGE;
}

static int is(const char *argument, const char *brief, const char *full)
{
    return strcmp(argument, brief) == 0 || strcmp(argument, full) == 0;
}

int main(int count, char **arguments)
{
    const char *ids = NULL;
    int list = 0, query = 0, version = 0, resets = 0;
    for (int i = 1; i < count; i++) {
        if (is(arguments[i], "-L", "--list-gpus"))
            list = 1;
        else if (is(arguments[i], "-q", "--query"))
            query = 1;
        else if (is(arguments[i], "--version", "--version"))
            version = 1;
        else if (is(arguments[i], "-r", "--gpu-reset"))
            resets = 1;
        else if (is(arguments[i], "-i", "--id") && i + 1 < count)
            ids = arguments[++i];
        else
            return usage(arguments[i]);
    }
    open_library();
    init();
    if (version)
        return show_version();
    if (list)
        return list_gpus();
    if (query)
        return show_query();
    if (resets)
        return ids ? reset(ids) : reset_all();
    return show_table();
}
