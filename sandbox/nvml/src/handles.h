/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Handles: what callers hold for GPUs, MIG devices, GPU and compute instances.
 *
 * A handle names its object (with the generation in which it was created) and lives as long as the library is loaded, so a stale one
 * is recognised and never points to freed memory.
 */
#ifndef HANDLES_H
#define HANDLES_H

#include <stdbool.h>
#include <stdint.h>

enum handle_kind { HANDLE_GPU = 1, HANDLE_MIG = 2, HANDLE_GPU_INSTANCE = 4, HANDLE_COMPUTE_INSTANCE = 8 };

struct handle {
    enum handle_kind kind;
    uint32_t gpu, gpu_instance, compute_instance;
    uint32_t generation;    /* of the GPU or compute instance; 0 for a GPU */
};

/* The one handle with that content; NULL if memory is short. */
struct handle *handle_for(struct handle content);
/* Whether this library handed the pointer out. */
bool handle_is_known(const struct handle *handle);

#endif
