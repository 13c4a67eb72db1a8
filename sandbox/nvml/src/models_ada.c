/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Ada: GPUs that cannot be partitioned, as they stand beside others in a mixed fleet.
 */
#include "models.h"
#include "nvml_abi.h"

static const struct model models[] = {
    {
        .key = "l40s",
        .product = "NVIDIA L40S",
        .architecture = NVML_ARCH_ADA,
        .compute_major = 8,
        .compute_minor = 9,
        .brand = NVML_BRAND_NVIDIA,
        .pci_device_id = 0x26B910DE,
        .pci_subsystem_id = 0x185110DE,
        .memory_mib = 46068,
        .addressing_mode = NVML_ADDRESSING_MODE_HMM,
    },
};

const struct model_list models_ada = {models, sizeof models / sizeof models[0]};
