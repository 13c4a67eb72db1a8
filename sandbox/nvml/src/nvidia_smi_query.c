/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits].
 */
#include "nvidia_smi.h"
#include "nvml_abi_health.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FIELDS = 32, VALUE_LENGTH = 96 };

static nvmlReturn_t text(const char *function, nvmlDevice_t gpu, char *value)
{
    return CALL(function, (nvmlDevice_t, char *, unsigned), gpu, value, (unsigned)VALUE_LENGTH);
}

static nvmlReturn_t show_index(nvmlDevice_t gpu, char *value)
{
    snprintf(value, VALUE_LENGTH, "%u", smi_index(gpu));
    return NVML_SUCCESS;
}

static nvmlReturn_t show_uuid(nvmlDevice_t gpu, char *value)
{
    return text("nvmlDeviceGetUUID", gpu, value);
}

static nvmlReturn_t show_name(nvmlDevice_t gpu, char *value)
{
    return text("nvmlDeviceGetName", gpu, value);
}

static nvmlReturn_t show_serial(nvmlDevice_t gpu, char *value)
{
    return text("nvmlDeviceGetSerial", gpu, value);
}

static nvmlReturn_t show_driver(nvmlDevice_t gpu, char *value)
{
    (void)gpu;
    return CALL("nvmlSystemGetDriverVersion", (char *, unsigned), value, (unsigned)VALUE_LENGTH);
}

static nvmlReturn_t pci(nvmlDevice_t gpu, nvmlPciInfo_t *info)
{
    return CALL("nvmlDeviceGetPciInfo_v3", (nvmlDevice_t, nvmlPciInfo_t *), gpu, info);
}

static nvmlReturn_t show_bus_id(nvmlDevice_t gpu, char *value)
{
    nvmlPciInfo_t info = {0};
    nvmlReturn_t rc = pci(gpu, &info);
    snprintf(value, VALUE_LENGTH, "%s", info.busId);
    return rc;
}

static nvmlReturn_t show_device_id(nvmlDevice_t gpu, char *value)
{
    nvmlPciInfo_t info = {0};
    nvmlReturn_t rc = pci(gpu, &info);
    snprintf(value, VALUE_LENGTH, "0x%08X", info.pciDeviceId);
    return rc;
}

static nvmlReturn_t show_subsystem_id(nvmlDevice_t gpu, char *value)
{
    nvmlPciInfo_t info = {0};
    nvmlReturn_t rc = pci(gpu, &info);
    snprintf(value, VALUE_LENGTH, "0x%08X", info.pciSubSystemId);
    return rc;
}

static nvmlReturn_t show_memory(nvmlDevice_t gpu, char *value)
{
    nvmlMemory_t memory = {0};
    nvmlReturn_t rc = CALL("nvmlDeviceGetMemoryInfo", (nvmlDevice_t, nvmlMemory_t *), gpu, &memory);
    snprintf(value, VALUE_LENGTH, "%llu", memory.total >> 20);
    return rc;
}

static nvmlReturn_t show_compute_capability(nvmlDevice_t gpu, char *value)
{
    int major = 0, minor = 0;
    nvmlReturn_t rc = CALL("nvmlDeviceGetCudaComputeCapability", (nvmlDevice_t, int *, int *), gpu, &major, &minor);
    snprintf(value, VALUE_LENGTH, "%d.%d", major, minor);
    return rc;
}

/* A mode with a current and a pending value. */
static nvmlReturn_t mode(const char *function, nvmlDevice_t gpu, bool want_pending, char *value)
{
    unsigned current = 0, pending = 0;
    nvmlReturn_t rc = CALL(function, (nvmlDevice_t, unsigned *, unsigned *), gpu, &current, &pending);
    snprintf(value, VALUE_LENGTH, "%s", (want_pending ? pending : current) ? "Enabled" : "Disabled");
    return rc;
}

static nvmlReturn_t show_mig_current(nvmlDevice_t gpu, char *value)
{
    return mode("nvmlDeviceGetMigMode", gpu, false, value);
}

static nvmlReturn_t show_mig_pending(nvmlDevice_t gpu, char *value)
{
    return mode("nvmlDeviceGetMigMode", gpu, true, value);
}

static nvmlReturn_t show_ecc_current(nvmlDevice_t gpu, char *value)
{
    return mode("nvmlDeviceGetEccMode", gpu, false, value);
}

static nvmlReturn_t show_ecc_pending(nvmlDevice_t gpu, char *value)
{
    return mode("nvmlDeviceGetEccMode", gpu, true, value);
}

static nvmlReturn_t uncorrected(nvmlDevice_t gpu, unsigned counter, char *value)
{
    unsigned long long count = 0;
    nvmlReturn_t rc = CALL("nvmlDeviceGetTotalEccErrors", (nvmlDevice_t, unsigned, unsigned, unsigned long long *), gpu,
                           (unsigned)NVML_MEMORY_ERROR_UNCORRECTED, counter, &count);
    snprintf(value, VALUE_LENGTH, "%llu", count);
    return rc;
}

static nvmlReturn_t show_uncorrected_volatile(nvmlDevice_t gpu, char *value)
{
    return uncorrected(gpu, 0, value);
}

static nvmlReturn_t show_uncorrected_aggregate(nvmlDevice_t gpu, char *value)
{
    return uncorrected(gpu, 1, value);
}

static const struct field {
    const char *name, *unit;
    nvmlReturn_t (*show)(nvmlDevice_t gpu, char *value);
} known_fields[] = {
    {"index", NULL, show_index},
    {"uuid", NULL, show_uuid},
    {"name", NULL, show_name},
    {"serial", NULL, show_serial},
    {"driver_version", NULL, show_driver},
    {"pci.bus_id", NULL, show_bus_id},
    {"pci.device_id", NULL, show_device_id},
    {"pci.sub_device_id", NULL, show_subsystem_id},
    {"memory.total", "MiB", show_memory},
    {"compute_cap", NULL, show_compute_capability},
    {"mig.mode.current", NULL, show_mig_current},
    {"mig.mode.pending", NULL, show_mig_pending},
    {"ecc.mode.current", NULL, show_ecc_current},
    {"ecc.mode.pending", NULL, show_ecc_pending},
    {"ecc.errors.uncorrected.volatile.total", NULL, show_uncorrected_volatile},
    {"ecc.errors.uncorrected.aggregate.total", NULL, show_uncorrected_aggregate},
};

static const struct field *find_field(const char *name)
{
    for (unsigned i = 0; i < sizeof known_fields / sizeof known_fields[0]; i++)
        if (strcmp(known_fields[i].name, name) == 0)
            return &known_fields[i];
    printf("Field \"%s\" is not a valid field to query.\n\n", name);
    exit(EXIT_USAGE);
}

static void show_row(const struct field *const *fields, unsigned count, nvmlDevice_t gpu, bool units)
{
    for (unsigned i = 0; i < count; i++) {
        char value[VALUE_LENGTH] = "";
        bool told = fields[i]->show(gpu, value) == NVML_SUCCESS;
        printf("%s%s", i ? ", " : "", told ? value : "[N/A]");
        if (told && units && fields[i]->unit)
            printf(" %s", fields[i]->unit);
    }
    printf("\n");
}

int smi_query(const struct targets *targets, const char *names, const char *format)
{
    const struct field *fields[MAX_FIELDS];
    unsigned count = 0;
    char copy[1024], *rest = NULL;
    bool units = !strstr(format, "nounits");
    if (strncmp(format, "csv", 3) != 0) {
        fprintf(stderr, "\"--format=\" switch is missing: this nvidia-smi knows csv, noheader and nounits.\n");
        return EXIT_USAGE;
    }
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, ",", &rest); name && count < MAX_FIELDS; name = strtok_r(NULL, ",", &rest))
        fields[count++] = find_field(name);
    for (unsigned i = 0; !strstr(format, "noheader") && i < count; i++) {
        printf("%s%s", i ? ", " : "", fields[i]->name);
        if (units && fields[i]->unit)
            printf(" [%s]", fields[i]->unit);
        printf("%s", i + 1 == count ? "\n" : "");
    }
    for (unsigned i = 0; i < targets->count; i++)
        show_row(fields, count, targets->gpus[i], units);
    return 0;
}
