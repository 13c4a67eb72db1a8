/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Changes to a machine from outside of NVML.
 */
#include "control.h"
#include "access.h"
#include "change.h"
#include "control_clients.h"
#include "knobs.h"
#include "mig.h"
#include "nvlink.h"
#include "reset.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

/* Bus numbers as an eight-GPU board has them, then upwards. */
static const unsigned pci_buses[MAX_GPUS] = {0x19, 0x3b, 0x4c, 0x5d, 0x9b, 0xbb, 0xcb, 0xdb,
                                             0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8};

const char *nvmlEmulatorDriverVersion(void)
{
    return DRIVER_VERSION;
}

unsigned nvmlEmulatorGpuInstanceMinor(unsigned gpu_minor, unsigned gpu_instance)
{
    return access_gpu_instance_minor(gpu_minor, gpu_instance);
}

unsigned nvmlEmulatorComputeInstanceMinor(unsigned gpu_minor, unsigned gpu_instance, unsigned compute_instance)
{
    return access_compute_instance_minor(gpu_minor, gpu_instance, compute_instance);
}

static nvmlReturn_t make_gpu(struct gpu *gpu, const char *seed, unsigned index, const char *model, unsigned minor)
{
    if (!model_find(model))
        return NVML_ERROR_NOT_FOUND;
    snprintf(gpu->model, sizeof gpu->model, "%s", model);
    uuid_from_name(gpu->uuid, "GPU", "%s/%u", seed, index);
    /* A serial is a decimal number; the UUID's first digits make it differ between machines. */
    unsigned number = 0;
    sscanf(gpu->uuid, "GPU-%8x", &number);
    snprintf(gpu->serial, sizeof gpu->serial, "165%010u", number);
    gpu->minor = minor;
    gpu->pci_bus = pci_buses[index];
    return NVML_SUCCESS;
}

int nvmlEmulatorCreate(const char *seed, unsigned count, const char *const *models, const unsigned *minors)
{
    struct machine machine = {.gpu_count = count, .next_generation = 1, .boots = 1};
    nvmlReturn_t rc = count <= MAX_GPUS ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++)
        rc = make_gpu(&machine.gpus[i], seed, i, models[i], minors ? minors[i] : i);
    if (rc != NVML_SUCCESS)
        return (int)rc;
    strcpy(machine.module_version, DRIVER_VERSION);
    return -state_create(&machine);
}

int nvmlEmulatorLoadModule(const char *version)
{
    struct change change;
    nvmlReturn_t rc = change_begin(&change);
    if (!version)
        version = DRIVER_VERSION;
    if (rc == NVML_SUCCESS && strlen(version) >= sizeof change.machine->module_version)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < change.machine->gpu_count; i++) {
        const struct model *model = model_find(change.machine->gpus[i].model);
        if (model) {
            mig_module_load(&change.machine->gpus[i], model);
            health_after_reset(&change.machine->gpus[i].health);
        } else {
            rc = NVML_ERROR_UNKNOWN;
        }
    }
    if (rc == NVML_SUCCESS) {
        clients_after_boot(change.machine);
        change.machine->boots++;
        strcpy(change.machine->module_version, version);
    }
    return change_finish(&change, rc);
}

int nvmlEmulatorResetGpu(unsigned gpu)
{
    struct change change;
    nvmlReturn_t rc = change_begin_gpu(&change, gpu);
    uint32_t alone = 1u << gpu;
    if (rc == NVML_SUCCESS)
        rc = reset_refusal(change.machine, change.gpu, alone);
    if (rc == NVML_SUCCESS)
        reset_gpu(change.gpu);
    return change_finish(&change, rc);
}

int nvmlEmulatorSetMode(unsigned gpu, unsigned mode)
{
    struct change change;
    nvmlReturn_t rc = change_begin_gpu(&change, gpu);
    if (rc == NVML_SUCCESS && mode > NVML_DEVICE_MIG_ENABLE)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        change.gpu->mig_current = change.gpu->mig_pending = mode;
        if (mode == NVML_DEVICE_MIG_DISABLE)
            mig_clear_instances(change.gpu);
    }
    return change_finish(&change, rc);
}

static nvmlReturn_t add_whole_instance(struct change *change, const char *name, int start)
{
    const struct gi_profile *profile = profile_by_name(change->model, name);
    if (!profile)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (start < 0)
        start = mig_driver_choice(change->gpu, change->model, profile);
    if (start < 0 || !mig_fits(change->gpu, change->model, profile, (unsigned)start))
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    struct gpu_instance *instance = mig_add_gpu_instance(change->machine, change->gpu, change->model, profile, (unsigned)start);
    mig_add_whole_compute_instance(change->machine, change->gpu, change->model, instance);
    return NVML_SUCCESS;
}

int nvmlEmulatorRepartition(unsigned gpu, unsigned count, const char *const *profiles, const int *starts)
{
    struct change change;
    nvmlReturn_t rc = change_begin_gpu(&change, gpu);
    if (rc == NVML_SUCCESS) {
        change.gpu->mig_current = change.gpu->mig_pending = NVML_DEVICE_MIG_ENABLE;
        mig_clear_instances(change.gpu);
    }
    for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++)
        rc = add_whole_instance(&change, profiles[i], starts[i]);
    return change_finish(&change, rc);
}

int nvmlEmulatorDestroyInstance(unsigned gpu, unsigned gpu_instance)
{
    struct change change;
    nvmlReturn_t rc = change_begin_gpu(&change, gpu);
    if (rc == NVML_SUCCESS && (gpu_instance >= MAX_GPU_INSTANCES || !change.gpu->instances[gpu_instance].used))
        rc = NVML_ERROR_NOT_FOUND;
    if (rc == NVML_SUCCESS)
        memset(&change.gpu->instances[gpu_instance], 0, sizeof change.gpu->instances[gpu_instance]);
    return change_finish(&change, rc);
}

/* A count of memory errors that grows tells so by an event. */
static void post_error_event(struct change *change, const char *knob)
{
    unsigned gpu = (unsigned)(change->gpu - change->machine->gpus);
    if (strstr(knob, "-corrected-volatile"))
        event_post(change->machine, (struct event){gpu, EVENT_SINGLE_BIT_ECC, 0, NVML_NO_INSTANCE, NVML_NO_INSTANCE});
    else if (strstr(knob, "-uncorrected-volatile"))
        event_post(change->machine, (struct event){gpu, EVENT_DOUBLE_BIT_ECC, 0, NVML_NO_INSTANCE, NVML_NO_INSTANCE});
}

static nvmlReturn_t set_knob(struct change *change, const char *knob, uint32_t value)
{
    uint32_t highest = LOG_ALL;
    bool of_machine = strcmp(knob, "log") == 0;
    uint32_t *field = of_machine ? &change->machine->log_level : knob_find(change->gpu, knob, &highest);
    if (!field)
        return NVML_ERROR_NOT_FOUND;
    if (value > highest)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strcmp(knob, "nvlink") == 0 && value != 0 && nvlink_count(change->model) == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (value > *field)
        post_error_event(change, knob);
    *field = value;
    return NVML_SUCCESS;
}

int nvmlEmulatorSetKnob(unsigned gpu, const char *knob, unsigned value)
{
    struct change change;
    nvmlReturn_t rc = change_begin_gpu(&change, gpu);
    if (rc == NVML_SUCCESS)
        rc = strcmp(knob, "held") == 0 ? clients_hold(change.machine, change.gpu, value != 0) : set_knob(&change, knob, value);
    return change_finish(&change, rc);
}

int nvmlEmulatorXid(unsigned gpu, unsigned number, unsigned gpu_instance, unsigned compute_instance)
{
    struct change change;
    nvmlReturn_t rc = change_begin_gpu(&change, gpu);
    if (rc == NVML_SUCCESS)
        event_post(change.machine, (struct event){gpu, EVENT_XID, number, gpu_instance, compute_instance});
    return change_finish(&change, rc);
}
