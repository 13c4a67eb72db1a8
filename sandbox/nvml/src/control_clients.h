/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Clients, as the other control functions need them.
 */
#ifndef CONTROL_CLIENTS_H
#define CONTROL_CLIENTS_H

#include "state.h"
#include "text.h"

/* Replace the clients without pid of a GPU by one unlisted client that blocks everything, or by none. */
nvmlReturn_t clients_hold(struct machine *machine, struct gpu *gpu, bool held);
/* Add the GPU's clients as a JSON list. */
void clients_describe(const struct machine *machine, const struct gpu *gpu, struct text *text);

#endif
