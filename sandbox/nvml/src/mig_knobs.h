/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Knobs of a GPU for the answers about MIG in which drivers differ. All zero: a current driver.
 */
#ifndef MIG_KNOBS_H
#define MIG_KNOBS_H

#include <stdint.h>

struct text;

struct mig_knobs {
    uint32_t names;                /* 1: off, only the first form of the profile structs is known, which has no names */
    uint32_t known_enums;          /* GPU instance profiles from this enum on are unknown; 0: all are known */
    uint32_t instance_counts;      /* 1: wrong, too low */
    uint32_t profiles_need_mode;   /* 1: profiles and placements are told only while MIG mode is on */
    uint32_t bad_version;          /* code for an unknown struct version. 0: ARGUMENT_VERSION_MISMATCH, 1: INVALID_ARGUMENT */
    uint32_t parent_query;         /* code for a query of GPUs on a MIG device. 0: INVALID_ARGUMENT, 1: NOT_SUPPORTED */
    uint32_t uuid_mode;            /* 1: MIG devices made from now on get a UUID never seen before */
    uint32_t nvl_compute;          /* 1: a 7g offers the compute instance profile 7_SLICE_NVL beside 7_SLICE, under the same name */
};

/* The knob that nvmlctl calls by that name, and its highest value; NULL if there is none. */
uint32_t *mig_knob(struct mig_knobs *knobs, const char *name, uint32_t *highest);
/* Add all knobs as a JSON object of numbers. */
void mig_knobs_describe(const struct mig_knobs *knobs, struct text *text);

#endif
