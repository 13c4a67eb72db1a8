/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Knobs: what can be set on a GPU from outside, by name. All of them are 32-bit numbers in struct gpu.
 */
#ifndef KNOBS_H
#define KNOBS_H

#include "state.h"
#include "text.h"

/* The knob of that name, and its highest value; NULL if there is none. */
uint32_t *knob_find(struct gpu *gpu, const char *name, uint32_t *highest);
/* Add all knobs as a JSON object of numbers. */
void knobs_describe(struct gpu *gpu, struct text *text);

#endif
