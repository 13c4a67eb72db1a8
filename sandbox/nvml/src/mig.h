/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The rules of MIG: which instances fit, which ids they get, what they are called. Nothing here touches files or locks.
 */
#ifndef MIG_H
#define MIG_H

#include "call.h"

/* UUID of the MIG device of a compute instance: a hash of GPU UUID and instance ids, as the driver's. So the same ids give the same UUID
 * again, even for another profile; unless the knob uuid-mode was "fresh" when it was made. */
void mig_uuid(const struct gpu *gpu, unsigned gpu_instance, unsigned compute_instance, char text[48]);

/* The id that the driver gives to a GPU instance on those memory slices. Ids are numbered by share of the memory: the whole 0,
 * halves from 1, quarters from 3, eighths from 7. */
unsigned mig_gpu_instance_id(const struct model *model, unsigned start, unsigned size);

/* Whether one more instance of the profile fits at that start: slices free, instance limit and media engines not exceeded. */
bool mig_fits(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile, unsigned start);
/* How many more instances of the profile fit. */
unsigned mig_remaining_capacity(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile);
/* The start that the driver would choose; -1 if there is none. It is the one that takes away the fewest other placements, and of equal ones
 * that with the lowest instance id. */
int mig_driver_choice(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile);

/* Make or clear a GPU instance (with its compute instances). The caller has checked that it fits. */
struct gpu_instance *mig_add_gpu_instance(struct machine *machine, struct gpu *gpu, const struct model *model,
                                          const struct gi_profile *profile, unsigned start);
bool mig_has_instances(const struct gpu *gpu);
bool mig_has_compute_instances(const struct gpu_instance *instance);
void mig_clear_instances(struct gpu *gpu);

/* What a load of the kernel module does to a GPU. */
void mig_module_load(struct gpu *gpu, const struct model *model);
/* What a reset does to it. */
void mig_gpu_reset(struct gpu *gpu);

/* Whether the GPU's driver knows the profile. */
bool mig_is_known(const struct gpu *gpu, const struct gi_profile *profile);
/* The profile with that id, or NULL if the driver knows none. */
const struct gi_profile *mig_profile(const struct call *call, unsigned profile_id);
/* The code for an unknown struct version. */
nvmlReturn_t mig_bad_version(const struct gpu *gpu);
/* The code for the destruction of an instance whose handle is stale: with MIG mode off that is said instead. */
nvmlReturn_t mig_destroy_code(const struct call *call, nvmlReturn_t rc);

/* A compute instance profile as a GPU instance offers it. */
struct ci_profile {
    unsigned id;                      /* NVML_COMPUTE_INSTANCE_PROFILE_*, which is its numeric id too */
    unsigned slices, multiprocessors;
    unsigned span;                    /* compute slices that it keeps from others, and of which its start is a multiple */
    unsigned count;                   /* the largest number of them */
};

/* The profile with that id in a GPU instance of that profile; false if it is not offered. */
bool mig_compute_profile(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile, unsigned id,
                         struct ci_profile *found);
/* Whether it may start there, and whether that place is free. */
bool mig_compute_is_place(const struct gi_profile *profile, const struct ci_profile *wanted, unsigned start);
bool mig_compute_fits(const struct gpu_instance *instance, const struct gi_profile *profile, const struct ci_profile *wanted, unsigned start);
/* How many more fit. */
unsigned mig_compute_remaining(const struct gpu_instance *instance, const struct gi_profile *profile, const struct ci_profile *wanted);
/* The start that the driver would choose, -1 if there is none: on GPUs that offer 1_SLICE_REV1 the one that takes away the fewest other
 * placements, elsewhere the lowest. */
int mig_compute_driver_choice(const struct gpu *gpu, const struct model *model, const struct gpu_instance *instance,
                              const struct ci_profile *wanted);
/* Make a compute instance with the lowest free id and MIG device index; NULL if the GPU has no MIG device index left. */
struct compute_instance *mig_add_compute_instance(struct machine *machine, struct gpu *gpu, const struct model *model,
                                                  struct gpu_instance *instance, const struct ci_profile *profile, unsigned start);
/* Make the compute instance that takes a whole empty GPU instance; of several such profiles that with the most SMs, as nvidia-smi. */
void mig_add_whole_compute_instance(struct machine *machine, struct gpu *gpu, const struct model *model, struct gpu_instance *instance);
/* "1c.3g.40gb", or "3g.40gb" if it takes the whole GPU instance. */
void mig_compute_name(const struct gi_profile *profile, unsigned slices, char *text, size_t size);
/* Profile name of the MIG device that a call's handle names. */
void mig_device_profile_name(const struct call *call, char *text, size_t size);

#endif
