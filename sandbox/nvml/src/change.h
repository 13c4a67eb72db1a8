/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The frame of every change from outside of NVML: attach if need be, lock, publish, capability files.
 */
#ifndef CHANGE_H
#define CHANGE_H

#include "state.h"

/* A change between begin and finish. */
struct change {
    struct machine *machine;
    struct gpu *gpu;              /* NULL for a change of the machine */
    const struct model *model;
    bool attached;
};

/* Begin a change of the machine, or of one GPU. INVALID_ARGUMENT for a number without GPU. Call change_finish in any case. */
nvmlReturn_t change_begin(struct change *change);
nvmlReturn_t change_begin_gpu(struct change *change, unsigned gpu);
/* Make it valid if rc is SUCCESS. Returns rc. */
int change_finish(struct change *change, nvmlReturn_t rc);

#endif
