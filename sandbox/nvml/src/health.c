/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * What changes health.
 */
#include "health.h"
#include "nvml_abi_health.h"

void health_after_reset(struct health *health)
{
    health->ecc_off = health->ecc_off_pending;
    health->dram_corrected[ECC_VOLATILE] = health->dram_uncorrected[ECC_VOLATILE] = 0;
    health->sram_corrected[ECC_VOLATILE] = health->sram_uncorrected[ECC_VOLATILE] = 0;
    health->remap_pending = health->channel_repair_pending = health->tpc_repair_pending = 0;
    if (health->recovery_action == NVML_GPU_RECOVERY_ACTION_GPU_RESET || health->recovery_action == NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET)
        health->recovery_action = 0;
}
