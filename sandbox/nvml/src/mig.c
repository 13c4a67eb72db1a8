/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The rules of MIG for GPU instances.
 */
#include "mig.h"
#include "uuid.h"

#include <string.h>

void mig_uuid(const struct gpu *gpu, unsigned gpu_instance, unsigned compute_instance, char text[48])
{
    uuid_from_name(text, "MIG", "%s/%u/%u", gpu->uuid, gpu_instance, compute_instance);
}

unsigned mig_gpu_instance_id(const struct model *model, unsigned start, unsigned size)
{
    unsigned shares = model->memory_slices / size, position = start / size;
    if (model->upper_half_first && shares > 1)
        position = (position + shares / 2) % shares;
    return shares - 1 + position;
}

static bool overlaps(unsigned start, unsigned size, unsigned other_start, unsigned other_size)
{
    return start < other_start + other_size && other_start < start + size;
}

static bool offers_start(const struct gi_profile *profile, unsigned start)
{
    for (unsigned i = 0; i < profile->placement_count; i++)
        if (profile->starts[i] == start)
            return true;
    return false;
}

/* Media engines are a stock of the GPU: so at most one +me (it takes the only OFA), and beside +me.all only -me instances. */
static bool engines_suffice(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile)
{
    const struct gi_profile *whole = profile_whole(model);
    for (unsigned kind = DECODERS; kind < ENGINE_KINDS; kind++) {
        unsigned taken = profile->engines[kind];
        for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++)
            if (gpu->instances[gi].used)
                taken += profile_by_id(model, gpu->instances[gi].profile_id)->engines[kind];
        if (taken > whole->engines[kind])
            return false;
    }
    return true;
}

bool mig_fits(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile, unsigned start)
{
    unsigned same = 0;
    if (!offers_start(profile, start))
        return false;
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++) {
        const struct gpu_instance *instance = &gpu->instances[gi];
        if (!instance->used)
            continue;
        if (overlaps(start, profile->size, instance->start, instance->size))
            return false;
        same += instance->profile_id == profile->id;
    }
    return same < profile->instance_count && engines_suffice(gpu, model, profile);
}

unsigned mig_remaining_capacity(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile)
{
    struct machine scratch = {.next_generation = 1};
    struct gpu copy = *gpu;
    unsigned count = 0;
    for (unsigned i = 0; i < profile->placement_count; i++)
        if (mig_fits(&copy, model, profile, profile->starts[i])) {
            mig_add_gpu_instance(&scratch, &copy, model, profile, profile->starts[i]);
            count++;
        }
    return count;
}

int mig_driver_choice(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile)
{
    int best = -1;
    unsigned best_id = MAX_GPU_INSTANCES;
    for (unsigned i = 0; i < profile->placement_count; i++) {
        unsigned id = mig_gpu_instance_id(model, profile->starts[i], profile->size);
        if (id < best_id && mig_fits(gpu, model, profile, profile->starts[i])) {
            best = (int)profile->starts[i];
            best_id = id;
        }
    }
    return best;
}

struct gpu_instance *mig_add_gpu_instance(struct machine *machine, struct gpu *gpu, const struct model *model,
                                          const struct gi_profile *profile, unsigned start)
{
    struct gpu_instance *instance = &gpu->instances[mig_gpu_instance_id(model, start, profile->size)];
    memset(instance, 0, sizeof *instance);
    instance->used = 1;
    instance->generation = machine->next_generation++;
    instance->profile_id = profile->id;
    instance->start = start;
    instance->size = profile->size;
    return instance;
}

bool mig_has_instances(const struct gpu *gpu)
{
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++)
        if (gpu->instances[gi].used)
            return true;
    return false;
}

bool mig_has_compute_instances(const struct gpu_instance *instance)
{
    for (unsigned ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++)
        if (instance->compute[ci].used)
            return true;
    return false;
}

void mig_clear_instances(struct gpu *gpu)
{
    memset(gpu->instances, 0, sizeof gpu->instances);
}

/* Instances live in the GPU and are lost. The mode is kept by Ampere's InfoROM, and by nothing on later GPUs. */
void mig_module_load(struct gpu *gpu, const struct model *model)
{
    mig_clear_instances(gpu);
    gpu->mig_pending = model->resetless_mig ? NVML_DEVICE_MIG_DISABLE : gpu->mig_pending;
    gpu->mig_current = gpu->mig_pending;
    gpu->persistence_mode = 0;
}

/* Instances are lost; a pending mode becomes the current one. The module stays loaded, and with it the mode of later GPUs. */
nvmlReturn_t mig_gpu_reset(struct gpu *gpu)
{
    if (gpu->held)
        return NVML_ERROR_IN_USE;
    if (gpu->reset_refused)
        return NVML_ERROR_RESET_REQUIRED;
    mig_clear_instances(gpu);
    gpu->mig_current = gpu->mig_pending;
    return NVML_SUCCESS;
}
