/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The rules of MIG for compute instances.
 */
#include "mig.h"

#include <stdio.h>
#include <string.h>

/* By id: slices, slices that it keeps from others, and the GPU instance profile with as many SMs.
 *
 * The spans are those of NVIDIA's open kernel module (kmigmgrGetInvalidCTSIdMask): a part of three slices lies in the first or second half
 * of the eight slots, one of 1_SLICE_REV1 in a quarter. So a 7g has room for 4c and 3c, but not for twice 3c and 1c. Profiles 5 and 6
 * (8 and 6 slices) belong to no GPU here. */
static const struct {
    unsigned slices, span, like;
} kinds[CI_PROFILE_COUNT] = {
    [CI_1_SLICE] = {1, 1, GI_1_SLICE},
    [CI_2_SLICE] = {2, 2, GI_2_SLICE},
    [CI_3_SLICE] = {3, 4, GI_3_SLICE},
    [CI_4_SLICE] = {4, 4, GI_4_SLICE},
    [CI_7_SLICE] = {7, 8, GI_7_SLICE},
    [CI_1_SLICE_REV1] = {1, 2, GI_1_SLICE_REV2},
    [CI_7_SLICE_NVL] = {7, 8, GI_7_SLICE},
};

/* Whether there is a 1_SLICE_REV1: where the 1g with double memory has more SMs than another 1g. */
static bool has_wide_slice(const struct model *model)
{
    const struct gi_profile *wide = profile_by_enum(model, GI_1_SLICE_REV2), *plain = profile_by_enum(model, GI_1_SLICE);
    return wide && plain && wide->multiprocessors > plain->multiprocessors;
}

/* 1_SLICE_REV1: boards offer it in the 1g with double memory and in a 2g. 7_SLICE_NVL: no board is known that does. Of the others, a part
 * that would leave less than itself but one slice is not offered: no 3c in 4g. */
static bool is_offered(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile, unsigned id)
{
    unsigned slices = kinds[id].slices;
    if (slices == 0 || slices > profile->slices || !profile_by_enum(model, kinds[id].like))
        return false;
    if (id == CI_1_SLICE_REV1)
        return has_wide_slice(model) && (profile->enum_index == GI_1_SLICE_REV2 || profile->enum_index == GI_2_SLICE);
    if (id == CI_7_SLICE_NVL)
        return gpu->knobs.nvl_compute;
    return slices == profile->slices || 2 * slices <= profile->slices + 1;
}

bool mig_compute_is_place(const struct gi_profile *profile, const struct ci_profile *wanted, unsigned start)
{
    return start % wanted->span == 0 && start < profile->slices && wanted->slices <= profile->slices - start;
}

bool mig_compute_profile(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile, unsigned id,
                         struct ci_profile *found)
{
    if (id >= CI_PROFILE_COUNT || !is_offered(gpu, model, profile, id))
        return false;
    *found = (struct ci_profile){
        .id = id,
        .slices = kinds[id].slices,
        .multiprocessors = profile_by_enum(model, kinds[id].like)->multiprocessors,
        .span = kinds[id].span,
    };
    while (mig_compute_is_place(profile, found, found->count * found->span))
        found->count++;
    return true;
}

bool mig_compute_fits(const struct gpu_instance *instance, const struct gi_profile *profile, const struct ci_profile *wanted, unsigned start)
{
    if (!mig_compute_is_place(profile, wanted, start))
        return false;
    for (unsigned ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
        const struct compute_instance *other = &instance->compute[ci];
        if (other->used && start < other->start + kinds[other->profile].span && other->start < start + wanted->span)
            return false;
    }
    return true;
}

unsigned mig_compute_remaining(const struct gpu_instance *instance, const struct gi_profile *profile, const struct ci_profile *wanted)
{
    unsigned count = 0;
    for (unsigned i = 0; i < wanted->count; i++)
        count += mig_compute_fits(instance, profile, wanted, i * wanted->span);
    return count;
}

/* How many places for compute instances of any profile are free. */
static unsigned free_places(const struct gpu *gpu, const struct model *model, const struct gpu_instance *instance)
{
    const struct gi_profile *profile = profile_by_id(model, instance->profile_id);
    struct ci_profile offered;
    unsigned count = 0;
    for (unsigned id = 0; id < CI_PROFILE_COUNT; id++)
        if (mig_compute_profile(gpu, model, profile, id, &offered))
            count += mig_compute_remaining(instance, profile, &offered);
    return count;
}

/* The kernel module's rule (kmigmgrGetFreeCTSId) where it aligns compute instances to slots, which it does where there is a 1_SLICE_REV1;
 * on A100 the lowest start, as listings in the MIG user guide show it. */
int mig_compute_driver_choice(const struct gpu *gpu, const struct model *model, const struct gpu_instance *instance,
                              const struct ci_profile *wanted)
{
    const struct gi_profile *profile = profile_by_id(model, instance->profile_id);
    int best = -1;
    unsigned most = 0;
    for (unsigned i = 0; i < wanted->count; i++) {
        struct gpu_instance after = *instance;
        unsigned start = i * wanted->span, ci = 0;
        while (ci < MAX_COMPUTE_INSTANCES - 1 && after.compute[ci].used)
            ci++;
        after.compute[ci] = (struct compute_instance){.used = 1, .profile = wanted->id, .start = start, .size = wanted->slices};
        unsigned left = has_wide_slice(model) ? free_places(gpu, model, &after) : 0;
        if (mig_compute_fits(instance, profile, wanted, start) && (best < 0 || left > most)) {
            best = (int)start;
            most = left;
        }
    }
    return best;
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
                                                  struct gpu_instance *instance, const struct ci_profile *profile, unsigned start)
{
    unsigned index = free_mig_index(gpu);
    for (unsigned ci = 0; ci < MAX_COMPUTE_INSTANCES && index < model->max_mig_devices; ci++) {
        if (instance->compute[ci].used)
            continue;
        uint32_t generation = machine->next_generation++;
        instance->compute[ci] = (struct compute_instance){
            .used = 1,
            .generation = generation,
            .profile = profile->id,
            .start = start,
            .size = profile->slices,
            .mig_index = index,
            .uuid_salt = gpu->knobs.uuid_mode ? generation : 0,
        };
        return &instance->compute[ci];
    }
    return NULL;
}

void mig_add_whole_compute_instance(struct machine *machine, struct gpu *gpu, const struct model *model, struct gpu_instance *instance)
{
    const struct gi_profile *profile = profile_by_id(model, instance->profile_id);
    struct ci_profile offered, whole = {0};
    for (unsigned id = 0; id < CI_PROFILE_COUNT; id++)
        if (mig_compute_profile(gpu, model, profile, id, &offered) && offered.slices == profile->slices
            && offered.multiprocessors > whole.multiprocessors)
            whole = offered;
    mig_add_compute_instance(machine, gpu, model, instance, &whole, 0);
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
