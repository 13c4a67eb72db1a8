/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Prints, as one line of JSON, what the NVML of this container shows:
 *   {"driver_version": "...", "gpus": [{"index": 0, "uuid": "GPU-...", "name": "...", "mig": true,
 *     "mig_devices": [{"index": 0, "uuid": "MIG-...", "gpu_instance_id": 7, "compute_instance_id": 0}]}]}
 * With --hold it then sleeps until a signal ends it, as a client that keeps its device.
 * Status 0; 1 when libnvidia-ml.so.1 cannot be loaded or a call fails ({"error": "..."} is printed). */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NVML_SUCCESS = 0, NVML_ERROR_NOT_SUPPORTED = 3, NVML_ERROR_NOT_FOUND = 6, TEXT_LENGTH = 96 };

typedef void *device_t; /* nvmlDevice_t: an opaque pointer */

static void *library;
static FILE *document; /* in memory until it is whole: a failure prints its error and nothing else */

static void fail(const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("{\"error\": \"%s\"}\n", text);
    exit(1);
}

static void *symbol(const char *name)
{
    void *address = dlsym(library, name);

    if (address == NULL) {
        fail("libnvidia-ml.so.1 has no %s", name);
    }
    return address;
}

/* ISO C has no cast from data to function pointers; POSIX promises that the representation is the same */
#define LOAD(pointer, name)                                   \
    do {                                                      \
        void *address = symbol(name);                         \
        memcpy(&(pointer), &address, sizeof address);         \
    } while (0)

static void check(int result, const char *call)
{
    if (result != NVML_SUCCESS) {
        fail("%s returned %d", call, result);
    }
}

static int (*get_mig_mode)(device_t, unsigned *, unsigned *);
static int (*get_max_mig)(device_t, unsigned *);
static int (*get_mig_handle)(device_t, unsigned, device_t *);
static int (*get_uuid)(device_t, char *, unsigned);
static int (*get_name)(device_t, char *, unsigned);
static int (*get_gpu_instance)(device_t, unsigned *);
static int (*get_compute_instance)(device_t, unsigned *);

static void load(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL) {
        fail("libnvidia-ml.so.1 cannot be loaded");
    }
    LOAD(get_mig_mode, "nvmlDeviceGetMigMode");
    LOAD(get_max_mig, "nvmlDeviceGetMaxMigDeviceCount");
    LOAD(get_mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex");
    LOAD(get_uuid, "nvmlDeviceGetUUID");
    LOAD(get_name, "nvmlDeviceGetName");
    LOAD(get_gpu_instance, "nvmlDeviceGetGpuInstanceId");
    LOAD(get_compute_instance, "nvmlDeviceGetComputeInstanceId");
}

static void print_mig_devices(device_t gpu)
{
    unsigned slots = 0, printed = 0;

    check(get_max_mig(gpu, &slots), "nvmlDeviceGetMaxMigDeviceCount");
    for (unsigned slot = 0; slot < slots; slot++) {
        device_t device;
        char uuid[TEXT_LENGTH];
        unsigned gpu_instance, compute_instance;
        int result = get_mig_handle(gpu, slot, &device);

        if (result == NVML_ERROR_NOT_FOUND) { /* the slots of a GPU have holes */
            continue;
        }
        check(result, "nvmlDeviceGetMigDeviceHandleByIndex");
        check(get_uuid(device, uuid, sizeof uuid), "nvmlDeviceGetUUID");
        check(get_gpu_instance(device, &gpu_instance), "nvmlDeviceGetGpuInstanceId");
        check(get_compute_instance(device, &compute_instance), "nvmlDeviceGetComputeInstanceId");
        fprintf(document, "%s{\"index\": %u, \"uuid\": \"%s\", \"gpu_instance_id\": %u, \"compute_instance_id\": %u}",
                printed++ ? ", " : "", slot, uuid, gpu_instance, compute_instance);
    }
}

static void print_gpu(device_t gpu, unsigned index)
{
    char uuid[TEXT_LENGTH], name[TEXT_LENGTH];
    unsigned current = 0, pending = 0;
    int result;

    check(get_uuid(gpu, uuid, sizeof uuid), "nvmlDeviceGetUUID");
    check(get_name(gpu, name, sizeof name), "nvmlDeviceGetName");
    result = get_mig_mode(gpu, &current, &pending);
    if (result != NVML_ERROR_NOT_SUPPORTED) {
        check(result, "nvmlDeviceGetMigMode");
    }
    fprintf(document, "%s{\"index\": %u, \"uuid\": \"%s\", \"name\": \"%s\", \"mig\": %s, \"mig_devices\": [", index ? ", " : "", index, uuid,
            name, current ? "true" : "false");
    if (current) {
        print_mig_devices(gpu);
    }
    fputs("]}", document);
}

int main(int argc, char **argv)
{
    int (*init)(void), (*get_count)(unsigned *), (*get_handle)(unsigned, device_t *), (*get_driver)(char *, unsigned);
    char driver[TEXT_LENGTH];
    char *text = NULL;
    size_t length;
    unsigned count;

    document = open_memstream(&text, &length);
    if (document == NULL) {
        fail("no memory");
    }
    load();
    LOAD(init, "nvmlInit_v2");
    LOAD(get_count, "nvmlDeviceGetCount_v2");
    LOAD(get_handle, "nvmlDeviceGetHandleByIndex_v2");
    LOAD(get_driver, "nvmlSystemGetDriverVersion");
    check(init(), "nvmlInit_v2");
    check(get_driver(driver, sizeof driver), "nvmlSystemGetDriverVersion");
    check(get_count(&count), "nvmlDeviceGetCount_v2");
    fprintf(document, "{\"driver_version\": \"%s\", \"gpus\": [", driver);
    for (unsigned index = 0; index < count; index++) {
        device_t gpu;

        check(get_handle(index, &gpu), "nvmlDeviceGetHandleByIndex_v2");
        print_gpu(gpu, index);
    }
    fputs("]}", document);
    fclose(document);
    puts(text);
    fflush(stdout);
    free(text);
    if (argc > 1 && strcmp(argv[1], "--hold") == 0) {
        for (;;) {
            pause();
        }
    }
    return 0;
}
