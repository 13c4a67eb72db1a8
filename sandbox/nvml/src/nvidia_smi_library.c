/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The library, and finding GPUs in it.
 */
#define _DEFAULT_SOURCE
#include "nvidia_smi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *library;

void *smi_function(const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "NVIDIA-SMI couldn't find %s in libnvidia-ml.so.1.\n", name);
        exit(EXIT_LIBRARY);
    }
    return symbol;
}

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

void smi_start(void)
{
    open_library();
    init();
}

static unsigned gpu_count(void)
{
    unsigned count = 0;
    CALL("nvmlDeviceGetCount_v2", (unsigned *), &count);
    return count;
}

/* NULL if it is lost, which is told. */
static nvmlDevice_t gpu_at(unsigned index)
{
    nvmlDevice_t gpu = NULL;
    nvmlReturn_t rc = CALL("nvmlDeviceGetHandleByIndex_v2", (unsigned, nvmlDevice_t *), index, &gpu);
    if (rc != NVML_SUCCESS)
        printf("Unable to determine the device handle for GPU%u: %s\n", index, smi_error(rc));
    return rc == NVML_SUCCESS ? gpu : NULL;
}

const char *smi_text(const char *name, nvmlDevice_t device, char text[96])
{
    text[0] = '\0';
    CALL(name, (nvmlDevice_t, char *, unsigned), device, text, 96u);
    return text;
}

const char *smi_pci_bus_id(nvmlDevice_t gpu, char text[32])
{
    nvmlPciInfo_t pci = {0};
    CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), gpu, &pci);
    snprintf(text, 32, "%s", pci.busId);
    return text;
}

unsigned smi_index(nvmlDevice_t gpu)
{
    unsigned index = 0;
    CALL("nvmlDeviceGetIndex", (nvmlDevice_t, unsigned *), gpu, &index);
    return index;
}

const char *smi_error(nvmlReturn_t rc)
{
    return ((const char *(*)(nvmlReturn_t))smi_function("nvmlErrorString"))(rc);
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

struct targets smi_targets(const char *ids)
{
    struct targets targets = {0};
    char copy[1024], *rest = NULL;
    if (!ids) {
        for (unsigned i = 0; i < gpu_count() && i < MAX_TARGETS; i++) {
            targets.gpus[targets.count] = gpu_at(i);
            targets.count += targets.gpus[targets.count] != NULL;
        }
        return targets;
    }
    snprintf(copy, sizeof copy, "%s", ids);
    for (char *id = strtok_r(copy, ",", &rest); id && targets.count < MAX_TARGETS; id = strtok_r(NULL, ",", &rest)) {
        targets.gpus[targets.count] = find_gpu(id);
        if (!targets.gpus[targets.count++]) {
            printf("No devices were found for %s\n", id);
            exit(EXIT_NOT_FOUND);
        }
    }
    return targets;
}
