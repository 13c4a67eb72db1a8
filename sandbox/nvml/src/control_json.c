/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Models and machines as JSON, for nvmlctl.
 */
#include "call.h"
#include "control.h"
#include "control_clients.h"
#include "knobs.h"
#include "mig.h"
#include "text.h"

static nvmlReturn_t whole(const struct text *text)
{
    return text_is_whole(text) ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

int nvmlEmulatorModel(unsigned index, char *json, unsigned size)
{
    const struct model *model = model_at(index);
    struct text text = {json, size, 0};
    if (!model)
        return NVML_ERROR_NOT_FOUND;
    text_add(&text, "{\"model\": \"%s\", \"product\": \"%s\", \"memory_mib\": %u", model->key, model->product, model->memory_mib);
    text_add(&text, ", \"pci_device_id\": \"0x%08X\", \"compute_capability\": \"%u.%u\"", model->pci_device_id, model->compute_major,
             model->compute_minor);
    text_add(&text, ", \"inferred\": %s%s%s", model->inferred ? "\"" : "", model->inferred ? model->inferred : "null",
             model->inferred ? "\"" : "");
    text_add(&text, ", \"memory_slices\": %u, \"profiles\": [", model->memory_slices);
    for (size_t i = 0; i < model->profile_count; i++) {
        const struct gi_profile *profile = &model->profiles[i];
        text_add(&text, "%s{\"name\": \"%s\", \"id\": %u, \"instance_count\": %u, \"size\": %u, \"starts\": [", i ? ", " : "", profile->name,
                 profile->id, profile->instance_count, profile->size);
        for (unsigned k = 0; k < profile->placement_count; k++)
            text_add(&text, "%s%u", k ? ", " : "", profile->starts[k]);
        text_add(&text, "]}");
    }
    text_add(&text, "]}");
    return (int)whole(&text);
}

static void add_instance(struct text *text, const struct gpu *gpu, const struct model *model, unsigned gi)
{
    const struct gpu_instance *instance = &gpu->instances[gi];
    const struct gi_profile *profile = profile_by_id(model, instance->profile_id);
    const char *separator = "";
    char name[48], uuid[48];
    text_add(text, "{\"gpu_instance_id\": %u, \"profile\": \"%s\", \"profile_id\": %u, \"start\": %u, \"size\": %u", gi, profile->name,
             instance->profile_id, instance->start, instance->size);
    text_add(text, ", \"compute_instances\": [");
    for (unsigned ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
        const struct compute_instance *compute = &instance->compute[ci];
        if (!compute->used)
            continue;
        mig_compute_name(profile, compute->size, name, sizeof name);
        mig_uuid(gpu, gi, ci, uuid);
        text_add(text, "%s{\"compute_instance_id\": %u, \"profile\": \"%s\", \"profile_id\": %u, \"start\": %u, \"slices\": %u", separator, ci,
                 name, compute->profile, compute->start, compute->size);
        text_add(text, ", \"mig_index\": %u, \"uuid\": \"%s\"}", compute->mig_index, uuid);
        separator = ", ";
    }
    text_add(text, "]}");
}

static void add_gpu(struct text *text, struct machine *machine, unsigned index)
{
    struct gpu *gpu = &machine->gpus[index];
    const struct model *model = model_find(gpu->model);
    const char *separator = "";
    text_add(text, "{\"index\": %u, \"model\": \"%s\", \"product\": \"%s\", \"uuid\": \"%s\", \"serial\": \"%s\"", index, gpu->model,
             model ? model->product : "", gpu->uuid, gpu->serial);
    text_add(text, ", \"minor\": %u, \"pci_bus_id\": \"0000:%02x:00.0\", \"persistence_mode\": %u", gpu->minor, gpu->pci_bus,
             gpu->persistence_mode);
    text_add(text, ", \"mig_current\": %u, \"mig_pending\": %u", gpu->mig_current, gpu->mig_pending);
    text_add(text, ", \"clients\": ");
    clients_describe(machine, gpu, text);
    text_add(text, ", \"knobs\": ");
    knobs_describe(gpu, text);
    text_add(text, ", \"mig_knobs\": ");
    mig_knobs_describe(&gpu->knobs, text);
    text_add(text, ", \"instances\": [");
    for (unsigned gi = 0; model && gi < MAX_GPU_INSTANCES; gi++) {
        if (!gpu->instances[gi].used)
            continue;
        text_add(text, "%s", separator);
        add_instance(text, gpu, model, gi);
        separator = ", ";
    }
    text_add(text, "]}");
}

int nvmlEmulatorShow(char *json, unsigned size)
{
    struct text text = {json, size, 0};
    library_lock();
    bool was_attached = state_is_attached();
    nvmlReturn_t rc = was_attached ? NVML_SUCCESS : state_attach();
    struct machine *machine = rc == NVML_SUCCESS ? state_read() : NULL;
    if (machine) {
        text_add(&text, "{\"module_version\": \"%s\", \"boots\": %u, \"log\": \"%s\", \"gpus\": [", machine->module_version, machine->boots,
                 machine->log_level == LOG_ALL ? "all" : "changes");
        for (unsigned i = 0; i < machine->gpu_count; i++) {
            text_add(&text, "%s", i ? ", " : "");
            add_gpu(&text, machine, i);
        }
        text_add(&text, "]}");
        state_unlock();
        rc = whole(&text);
    } else if (rc == NVML_SUCCESS) {
        rc = NVML_ERROR_UNKNOWN;
    }
    if (!was_attached && state_is_attached())
        state_detach();
    library_unlock();
    return (int)rc;
}
