/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Ampere: MIG mode changes need a GPU reset and are kept over a reboot.
 */
#include "models.h"
#include "nvml_abi.h"

/* One row per profile: {enum, id, name, compute slices, max instances, memory MiB, SMs,
 *                       {copy, decode, encode, JPEG, OFA engines}, memory slices, placements, {starts}}.
 * Memory: from the GiB that `nvidia-smi mig -lgip` prints on A100 80GB boards (9.50, 19.50, 39.25); the 7g value lies in the
 * 78.5 to 79.25 GiB that boards show, the lower end taken. SMs and engines: as documented for the A100 40GB.
 */
static const struct gi_profile a100_80gb_profiles[] = {
    {GI_1_SLICE, 19, "1g.10gb", 1, 7, 9728, 14, {1, 0, 0, 0, 0}, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
    {GI_1_SLICE_REV1, 20, "1g.10gb+me", 1, 1, 9728, 14, {1, 1, 0, 1, 1}, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
    {GI_1_SLICE_REV2, 15, "1g.20gb", 1, 4, 19968, 14, {1, 1, 0, 0, 0}, 2, 4, {0, 2, 4, 6}},
    {GI_2_SLICE, 14, "2g.20gb", 2, 3, 19968, 28, {2, 1, 0, 0, 0}, 2, 3, {0, 2, 4}},
    {GI_3_SLICE, 9, "3g.40gb", 3, 2, 40192, 42, {3, 2, 0, 0, 0}, 4, 2, {0, 4}},
    {GI_4_SLICE, 5, "4g.40gb", 4, 1, 40192, 56, {4, 2, 0, 0, 0}, 4, 1, {0}},
    {GI_7_SLICE, 0, "7g.80gb", 7, 1, 80384, 98, {7, 5, 0, 1, 1}, 8, 1, {0}},
};

const struct model model_a100_80gb_pcie = {
    .key = "a100-80gb-pcie",
    .product = "NVIDIA A100 80GB PCIe",
    .architecture = NVML_ARCH_AMPERE,
    .compute_major = 8,
    .compute_minor = 0,
    .brand = NVML_BRAND_NVIDIA,
    .pci_device_id = 0x20B510DE,
    .pci_subsystem_id = 0x153310DE,
    .memory_mib = 81920,
    .addressing_mode = NVML_ADDRESSING_MODE_HMM,
    .resetless_mig = false,
    .memory_slices = 8,
    .max_mig_devices = 7,
    .upper_half_first = true,
    .profiles = a100_80gb_profiles,
    .profile_count = sizeof a100_80gb_profiles / sizeof a100_80gb_profiles[0],
};
