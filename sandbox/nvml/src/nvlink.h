/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * NVLink: which GPUs are linked with which.
 */
#ifndef NVLINK_H
#define NVLINK_H

#include "state.h"

/* NVLinks that a GPU of that model has; 0: none. */
unsigned nvlink_count(const struct model *model);
/* Whether two different GPUs are linked directly. */
bool nvlink_are_peers(const struct gpu *gpu, const struct gpu *other);
/* The n-th GPU that is linked directly with the GPU; NULL past the last. */
const struct gpu *nvlink_peer(const struct machine *machine, const struct gpu *gpu, unsigned n);
unsigned nvlink_peer_count(const struct machine *machine, const struct gpu *gpu);

#endif
