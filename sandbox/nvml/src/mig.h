/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The rules of MIG: which instances fit, which ids they get, what they are called. Nothing here touches files or locks.
 */
#ifndef MIG_H
#define MIG_H

#include "call.h"

/* UUID of the MIG device of a compute instance: a hash of GPU UUID and instance ids, so the same ids give the same UUID again. */
void mig_uuid(const struct gpu *gpu, unsigned gpu_instance, unsigned compute_instance, char text[48]);

/* The id that the driver gives to a GPU instance on those memory slices. Ids are numbered by share of the memory: the whole 0,
 * halves from 1, quarters from 3, eighths from 7. */
unsigned mig_gpu_instance_id(const struct model *model, unsigned start, unsigned size);

/* Whether one more instance of the profile fits at that start: slices free, instance limit and media engines not exceeded. */
bool mig_fits(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile, unsigned start);
/* How many more instances of the profile fit. */
unsigned mig_remaining_capacity(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile);
/* The start that the driver would choose: the free one with the lowest instance id; -1 if there is none. */
int mig_driver_choice(const struct gpu *gpu, const struct model *model, const struct gi_profile *profile);

/* Make or clear a GPU instance (with its compute instances). The caller has checked that it fits. */
struct gpu_instance *mig_add_gpu_instance(struct machine *machine, struct gpu *gpu, const struct model *model,
                                          const struct gi_profile *profile, unsigned start);
bool mig_has_instances(const struct gpu *gpu);
bool mig_has_compute_instances(const struct gpu_instance *instance);
void mig_clear_instances(struct gpu *gpu);

/* What a load of the kernel module does to a GPU. */
void mig_module_load(struct gpu *gpu, const struct model *model);
/* Reset a GPU: IN_USE while a client holds it, RESET_REQUIRED where resets are refused. */
nvmlReturn_t mig_gpu_reset(struct gpu *gpu);

/* Compute instances. Slices of a compute instance profile (by enum, which is its numeric id too); 0 if the GPU instance profile does
 * not offer it. */
unsigned mig_compute_slices(const struct gi_profile *profile, unsigned compute_profile);
/* The largest number of such compute instances, and the number that still fits. */
unsigned mig_compute_capacity(const struct gi_profile *profile, unsigned compute_profile);
unsigned mig_compute_remaining(const struct gpu_instance *instance, const struct gi_profile *profile, unsigned compute_profile);
bool mig_compute_fits(const struct gpu_instance *instance, const struct gi_profile *profile, unsigned start, unsigned slices);
/* The lowest free start, -1 if there is none. */
int mig_compute_first_start(const struct gpu_instance *instance, const struct gi_profile *profile, unsigned compute_profile);
/* Make a compute instance with the lowest free id and MIG device index; NULL if the GPU has no MIG device index left. */
struct compute_instance *mig_add_compute_instance(struct machine *machine, struct gpu *gpu, const struct model *model,
                                                  struct gpu_instance *instance, unsigned compute_profile, unsigned slices,
                                                  unsigned start);
/* SMs of a compute instance with that many slices. */
unsigned mig_compute_multiprocessors(const struct model *model, const struct gi_profile *profile, unsigned slices);
/* "1c.3g.40gb", or "3g.40gb" if it takes the whole GPU instance. */
void mig_compute_name(const struct gi_profile *profile, unsigned slices, char *text, size_t size);
/* Profile name of the MIG device that a call's handle names. */
void mig_device_profile_name(const struct call *call, char *text, size_t size);

#endif
