/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Hopper: MIG mode switches at once and is lost with the kernel module.
 */
#include "models.h"
#include "nvml_abi.h"

/* One row per profile: {enum, id, name, compute slices, max instances, memory MiB, SMs,
 *                       {copy, decode, encode, JPEG, OFA engines}, memory slices, placements, {starts}}.
 * H100 80GB SXM5: every number as a real board prints it.
 */
static const struct gi_profile h100_80gb_profiles[] = {
    {GI_1_SLICE, 19, "1g.10gb", 1, 7, 9984, 16, {1, 1, 0, 1, 0}, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
    {GI_1_SLICE_REV1, 20, "1g.10gb+me", 1, 1, 9984, 16, {1, 1, 0, 1, 1}, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
    {GI_1_SLICE_REV2, 15, "1g.20gb", 1, 4, 20096, 26, {1, 1, 0, 1, 0}, 2, 4, {0, 2, 4, 6}},
    {GI_2_SLICE, 14, "2g.20gb", 2, 3, 20096, 32, {2, 2, 0, 2, 0}, 2, 3, {0, 2, 4}},
    {GI_3_SLICE, 9, "3g.40gb", 3, 2, 40448, 60, {3, 3, 0, 3, 0}, 4, 2, {0, 4}},
    {GI_4_SLICE, 5, "4g.40gb", 4, 1, 40448, 64, {4, 4, 0, 4, 0}, 4, 1, {0}},
    {GI_7_SLICE, 0, "7g.80gb", 7, 1, 81152, 132, {8, 7, 0, 7, 1}, 8, 1, {0}},
};

const struct model model_h100_80gb_hbm3 = {
    .key = "h100-80gb-hbm3",
    .product = "NVIDIA H100 80GB HBM3",
    .architecture = NVML_ARCH_HOPPER,
    .compute_major = 9,
    .compute_minor = 0,
    .brand = NVML_BRAND_NVIDIA,
    .pci_device_id = 0x233010DE,
    .pci_subsystem_id = 0x16C110DE,
    .memory_mib = 81559,
    .addressing_mode = NVML_ADDRESSING_MODE_HMM,
    .resetless_mig = true,
    .memory_slices = 8,
    .max_mig_devices = 7,
    .upper_half_first = true,
    .profiles = h100_80gb_profiles,
    .profile_count = sizeof h100_80gb_profiles / sizeof h100_80gb_profiles[0],
};

/* H200: ids, SMs and engines as a real board prints them. Memory: 16.00, 32.50 and 69.50 GiB as printed (32.25 on another driver);
 * the 7g value is documented as about 140 GiB, taken as 140. */
static const struct gi_profile h200_profiles[] = {
    {GI_1_SLICE, 19, "1g.18gb", 1, 7, 16384, 16, {1, 1, 0, 1, 0}, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
    {GI_1_SLICE_REV1, 20, "1g.18gb+me", 1, 1, 16384, 16, {1, 1, 0, 1, 1}, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
    {GI_1_SLICE_REV2, 15, "1g.35gb", 1, 4, 33280, 26, {1, 1, 0, 1, 0}, 2, 4, {0, 2, 4, 6}},
    {GI_2_SLICE, 14, "2g.35gb", 2, 3, 33280, 32, {2, 2, 0, 2, 0}, 2, 3, {0, 2, 4}},
    {GI_3_SLICE, 9, "3g.71gb", 3, 2, 71168, 60, {3, 3, 0, 3, 0}, 4, 2, {0, 4}},
    {GI_4_SLICE, 5, "4g.71gb", 4, 1, 71168, 64, {4, 4, 0, 4, 0}, 4, 1, {0}},
    {GI_7_SLICE, 0, "7g.141gb", 7, 1, 143360, 132, {8, 7, 0, 7, 1}, 8, 1, {0}},
};

const struct model model_h200_nvl = {
    .key = "h200-nvl",
    .product = "NVIDIA H200 NVL",
    .architecture = NVML_ARCH_HOPPER,
    .compute_major = 9,
    .compute_minor = 0,
    .brand = NVML_BRAND_NVIDIA,
    .pci_device_id = 0x233B10DE,
    .pci_subsystem_id = 0x199610DE,
    .memory_mib = 143771,
    .addressing_mode = NVML_ADDRESSING_MODE_HMM,
    .resetless_mig = true,
    .memory_slices = 8,
    .max_mig_devices = 7,
    .upper_half_first = true,
    .profiles = h200_profiles,
    .profile_count = sizeof h200_profiles / sizeof h200_profiles[0],
};
