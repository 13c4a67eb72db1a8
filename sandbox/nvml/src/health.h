/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * What a GPU tells about its health. The values are set from outside (nvmlctl set); only resets and module loads change them.
 */
#ifndef HEALTH_H
#define HEALTH_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;

enum { ECC_VOLATILE = 0, ECC_AGGREGATE, ECC_COUNTERS };
enum { FABRIC_NOT_SUPPORTED = 0, FABRIC_NOT_STARTED, FABRIC_IN_PROGRESS, FABRIC_COMPLETED };

struct health {
    uint32_t ecc_off, ecc_off_pending;                    /* inverted, so that all zero is a healthy GPU */
    uint32_t dram_corrected[ECC_COUNTERS];                /* errors of the device memory */
    uint32_t dram_uncorrected[ECC_COUNTERS];
    uint32_t sram_corrected[ECC_COUNTERS];
    uint32_t sram_uncorrected[ECC_COUNTERS];
    uint32_t sram_threshold_exceeded;
    uint32_t remap_correctable, remap_uncorrectable;      /* rows remapped */
    uint32_t remap_pending, remap_failed;
    uint32_t banks_high, banks_partial, banks_low, banks_none;    /* banks with fewer spare rows than the most; the others have these */
    uint32_t channel_repair_pending, tpc_repair_pending;
    uint32_t recovery_action;                             /* NVML_GPU_RECOVERY_ACTION_* */
    uint32_t clock_event_reasons;                         /* bits of nvmlClocksEventReasons */
    uint32_t fabric_state, fabric_status, fabric_health_mask, fabric_summary, fabric_clique;
};

/* A reset of the GPU: volatile counts start anew, pending repairs and the pending ECC mode take effect, and it needs no reset more. */
void health_after_reset(struct health *health);

#endif
