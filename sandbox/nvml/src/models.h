/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * What a GPU model is: constant data that the machine's state refers to by key.
 */
#ifndef MODELS_H
#define MODELS_H

#include <stdbool.h>
#include <stddef.h>

enum { PROFILE_MAX_PLACEMENTS = 7, COPY_ENGINES = 0, DECODERS, ENCODERS, JPEG_ENGINES, OFA_ENGINES, ENGINE_KINDS };

/* A GPU instance profile. Placements are memory slices; `slices` are compute slices: two different units. */
struct gi_profile {
    unsigned enum_index;              /* NVML_GPU_INSTANCE_PROFILE_* */
    unsigned id;                      /* numeric profile id, as in `nvidia-smi mig -lgip` */
    const char *name;                 /* without the "MIG " prefix */
    unsigned slices;
    unsigned instance_count;
    unsigned memory_mib;
    unsigned multiprocessors;
    unsigned engines[ENGINE_KINDS];
    unsigned size;                    /* memory slices */
    unsigned placement_count;
    unsigned starts[PROFILE_MAX_PLACEMENTS];
};

struct model {
    const char *key;                  /* name in nvmlctl */
    const char *product;
    const char *inferred;             /* which of its values were not seen and not documented, as the end of a sentence; NULL: none */
    unsigned architecture, compute_major, compute_minor, brand;
    unsigned pci_device_id, pci_subsystem_id;    /* id << 16 | vendor */
    unsigned memory_mib;
    unsigned addressing_mode;
    bool resetless_mig;               /* field 184: Hopper and later switch MIG mode without a reset */
    unsigned memory_slices;
    unsigned max_mig_devices;
    bool upper_half_first;            /* in which order the driver numbers GPU instance ids over the memory slices */
    const struct gi_profile *profiles;    /* none: the GPU cannot be partitioned */
    size_t profile_count;
};

/* The models of one architecture; each list has a file of its own. */
struct model_list {
    const struct model *models;
    size_t count;
};
extern const struct model_list models_ampere, models_ada, models_hopper, models_blackwell;

/* The index-th model, or NULL past the last. */
const struct model *model_at(size_t index);
/* The model with that key, or NULL. */
const struct model *model_find(const char *key);
/* The profile with that NVML enum, numeric id or name, or NULL. */
const struct gi_profile *profile_by_enum(const struct model *model, unsigned enum_index);
const struct gi_profile *profile_by_id(const struct model *model, unsigned id);
const struct gi_profile *profile_by_name(const struct model *model, const char *name);
/* The profile that takes the whole GPU; its engines are all that the GPU has. */
const struct gi_profile *profile_whole(const struct model *model);

#endif
