/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The rules of MIG for compute instances.
 */
#include "mig.h"

#include <stdio.h>
#include <string.h>

/* Slices by NVML_COMPUTE_INSTANCE_PROFILE_*. The second 1-slice and 7-slice profiles (7 and 8) are offered by no GPU instance here. */
static const unsigned compute_profile_slices[CI_PROFILE_COUNT] = {1, 2, 3, 4, 7, 8, 6, 0, 0};

unsigned mig_compute_slices(const struct gi_profile *profile, unsigned compute_profile)
{
    if (compute_profile >= CI_PROFILE_COUNT)
        return 0;
    unsigned slices = compute_profile_slices[compute_profile];
    /* A part that would leave less than itself but one slice is not offered: no 3c in 4g. */
    bool awkward = slices < profile->slices && 2 * slices > profile->slices + 1;
    return slices <= profile->slices && !awkward ? slices : 0;
}

unsigned mig_compute_capacity(const struct gi_profile *profile, unsigned compute_profile)
{
    unsigned slices = mig_compute_slices(profile, compute_profile);
    return slices ? profile->slices / slices : 0;
}

bool mig_compute_fits(const struct gpu_instance *instance, const struct gi_profile *profile, unsigned start, unsigned slices)
{
    if (start % slices != 0 || start + slices > profile->slices)
        return false;
    for (unsigned ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
        const struct compute_instance *other = &instance->compute[ci];
        if (other->used && start < other->start + other->size && other->start < start + slices)
            return false;
    }
    return true;
}

int mig_compute_first_start(const struct gpu_instance *instance, const struct gi_profile *profile, unsigned compute_profile)
{
    unsigned slices = mig_compute_slices(profile, compute_profile);
    for (unsigned start = 0; slices && start < profile->slices; start++)
        if (mig_compute_fits(instance, profile, start, slices))
            return (int)start;
    return -1;
}

unsigned mig_compute_remaining(const struct gpu_instance *instance, const struct gi_profile *profile, unsigned compute_profile)
{
    unsigned slices = mig_compute_slices(profile, compute_profile), count = 0;
    for (unsigned start = 0; slices && start < profile->slices; start += slices)
        count += mig_compute_fits(instance, profile, start, slices);
    return count;
}

/* The lowest MIG device index that no compute instance of the GPU has. */
static unsigned free_mig_index(const struct gpu *gpu)
{
    unsigned taken = 0;
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++)
        for (unsigned ci = 0; gpu->instances[gi].used && ci < MAX_COMPUTE_INSTANCES; ci++)
            if (gpu->instances[gi].compute[ci].used)
                taken |= 1u << gpu->instances[gi].compute[ci].mig_index;
    unsigned index = 0;
    while (taken & 1u << index)
        index++;
    return index;
}

struct compute_instance *mig_add_compute_instance(struct machine *machine, struct gpu *gpu, const struct model *model,
                                                  struct gpu_instance *instance, unsigned compute_profile, unsigned slices,
                                                  unsigned start)
{
    unsigned index = free_mig_index(gpu);
    for (unsigned ci = 0; ci < MAX_COMPUTE_INSTANCES && index < model->max_mig_devices; ci++) {
        if (instance->compute[ci].used)
            continue;
        instance->compute[ci] = (struct compute_instance){
            .used = 1,
            .generation = machine->next_generation++,
            .profile = compute_profile,
            .start = start,
            .size = slices,
            .mig_index = index,
        };
        return &instance->compute[ci];
    }
    return NULL;
}

/* As many SMs as the model's plain GPU instance with the same slices has. */
unsigned mig_compute_multiprocessors(const struct model *model, const struct gi_profile *profile, unsigned slices)
{
    if (slices == profile->slices)
        return profile->multiprocessors;
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].slices == slices)
            return model->profiles[i].multiprocessors;
    return profile->multiprocessors * slices / profile->slices;
}

void mig_compute_name(const struct gi_profile *profile, unsigned slices, char *text, size_t size)
{
    if (slices == profile->slices)
        snprintf(text, size, "%s", profile->name);
    else
        snprintf(text, size, "%uc.%s", slices, profile->name);
}

void mig_device_profile_name(const struct call *call, char *text, size_t size)
{
    mig_compute_name(profile_by_id(call->model, call->gpu_instance->profile_id), call->compute_instance->size, text, size);
}
