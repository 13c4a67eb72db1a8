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
    uint32_t salt = gpu->instances[gpu_instance].compute[compute_instance].uuid_salt;
    if (salt)
        uuid_from_name(text, "MIG", "%s/%u/%u/%u", gpu->uuid, gpu_instance, compute_instance, salt);
    else
        uuid_from_name(text, "MIG", "%s/%u/%u", gpu->uuid, gpu_instance, compute_instance);
}

unsigned mig_gpu_instance_id(const struct model *model, unsigned start, unsigned size)
{
    unsigned shares = model->memory_slices / size, position = start / size;
    if (model->upper_half_first && shares > 1)
        position = (position + shares / 2) % shares;
    return shares - 1 + position;
}

/* Memory slices as bits. */
static unsigned slots(unsigned start, unsigned size)
{
    return ((1u << size) - 1) << start;
}

static unsigned taken_slots(const struct gpu *gpu)
{
    unsigned taken = 0;
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++)
        if (gpu->instances[gi].used)
            taken |= slots(gpu->instances[gi].start, gpu->instances[gi].size);
    return taken;
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
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++)
        same += gpu->instances[gi].used && gpu->instances[gi].profile_id == profile->id;
    return offers_start(profile, start) && !(slots(start, profile->size) & taken_slots(gpu)) && same < profile->instance_count
        && engines_suffice(gpu, model, profile);
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

/* How many placements, of all profiles together, lie outside of those slots. */
static unsigned placements_outside(const struct model *model, unsigned taken)
{
    unsigned count = 0;
    for (size_t i = 0; i < model->profile_count; i++)
        for (unsigned k = 0; k < model->profiles[i].placement_count; k++)
            count += !(slots(model->profiles[i].starts[k], model->profiles[i].size) & taken);
    return count;
}

/* NVIDIA's open kernel module has this rule for compute instances, and it gives the order in which an H100 PCIe with driver 570.169 made
 * seven 1g (ids 9, 7, 8, 11, 12, 13, 14), in which an A30 made its own, and the two orders that the MIG user guide shows for A100. Known
 * to differ: the double-memory 1g of an H100 and a GH200, which began with id 5. */
int mig_driver_choice(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile)
{
    int best = -1;
    unsigned most = 0, best_id = 0, taken = taken_slots(gpu);
    for (unsigned i = 0; i < profile->placement_count; i++) {
        unsigned start = profile->starts[i], id = mig_gpu_instance_id(model, start, profile->size);
        unsigned left = placements_outside(model, taken | slots(start, profile->size));
        if (mig_fits(gpu, model, profile, start) && (best < 0 || left > most || (left == most && id < best_id))) {
            best = (int)start;
            best_id = id;
            most = left;
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

bool mig_is_known(const struct gpu *gpu, const struct gi_profile *profile)
{
    return profile && (gpu->knobs.known_enums == 0 || profile->enum_index < gpu->knobs.known_enums);
}

const struct gi_profile *mig_profile(const struct call *call, unsigned profile_id)
{
    const struct gi_profile *profile = profile_by_id(call->model, profile_id);
    return mig_is_known(call->gpu, profile) ? profile : NULL;
}

nvmlReturn_t mig_bad_version(const struct gpu *gpu)
{
    return gpu->knobs.bad_version ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

nvmlReturn_t mig_destroy_code(const struct call *call, nvmlReturn_t rc)
{
    return rc == NVML_ERROR_NOT_FOUND && call->gpu && !call->gpu->mig_current ? NVML_ERROR_NOT_SUPPORTED : rc;
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
void mig_gpu_reset(struct gpu *gpu)
{
    mig_clear_instances(gpu);
    gpu->mig_current = gpu->mig_pending;
}
