/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Resets of GPUs.
 */
#ifndef RESET_H
#define RESET_H

#include "state.h"

/* Whether the GPUs in `together` (bits by number) may be reset: SUCCESS, IN_USE while a client blocks it, RESET_REQUIRED where resets
 * are refused, RESET_TYPE_NOT_SUPPORTED if a linked GPU would have to be reset too. Asked for one of them. */
nvmlReturn_t reset_refusal(const struct machine *machine, const struct gpu *gpu, uint32_t together);
/* Reset it: instances are lost, a pending MIG mode becomes the current one, health starts anew. */
void reset_gpu(struct gpu *gpu);

#endif
