/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Blackwell RTX PRO: four compute slices over twelve memory slices; MIG mode as on Hopper.
 */
#include "models.h"
#include "nvml_abi.h"

/* One row per profile: {enum, id, name, compute slices, max instances, memory MiB, SMs,
 *                       {copy, decode, encode, JPEG, OFA engines}, memory slices, placements, {starts}}.
 * As a real RTX PRO 6000 Server Edition prints it (23.62, 47.38 and 95.00 GiB; another driver shows 23.12 and 95.12).
 */
static const struct gi_profile rtx_pro_6000_profiles[] = {
    {GI_1_SLICE, 14, "1g.24gb", 1, 4, 24192, 46, {1, 1, 1, 1, 0}, 3, 4, {0, 3, 6, 9}},
    {GI_1_SLICE_REV1, 21, "1g.24gb+me", 1, 1, 24192, 46, {1, 1, 1, 1, 1}, 3, 4, {0, 3, 6, 9}},
    {GI_1_SLICE_GFX, 47, "1g.24gb+gfx", 1, 4, 24192, 46, {1, 1, 1, 1, 0}, 3, 4, {0, 3, 6, 9}},
    {GI_1_SLICE_ALL_ME, 65, "1g.24gb+me.all", 1, 1, 24192, 46, {1, 4, 4, 4, 1}, 3, 4, {0, 3, 6, 9}},
    {GI_1_SLICE_NO_ME, 67, "1g.24gb-me", 1, 4, 24192, 46, {1, 0, 0, 0, 0}, 3, 4, {0, 3, 6, 9}},
    {GI_2_SLICE, 5, "2g.48gb", 2, 2, 48512, 94, {2, 2, 2, 2, 0}, 6, 2, {0, 6}},
    {GI_2_SLICE_GFX, 35, "2g.48gb+gfx", 2, 2, 48512, 94, {2, 2, 2, 2, 0}, 6, 2, {0, 6}},
    {GI_2_SLICE_ALL_ME, 64, "2g.48gb+me.all", 2, 1, 48512, 94, {2, 4, 4, 4, 1}, 6, 2, {0, 6}},
    {GI_2_SLICE_NO_ME, 66, "2g.48gb-me", 2, 2, 48512, 94, {2, 0, 0, 0, 0}, 6, 2, {0, 6}},
    {GI_4_SLICE, 0, "4g.96gb", 4, 1, 97280, 188, {4, 4, 4, 4, 1}, 12, 1, {0}},
    {GI_4_SLICE_GFX, 32, "4g.96gb+gfx", 4, 1, 97280, 188, {4, 4, 4, 4, 1}, 12, 1, {0}},
};

const struct model model_rtx_pro_6000_server = {
    .key = "rtx-pro-6000-server",
    .product = "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    .architecture = NVML_ARCH_BLACKWELL,
    .compute_major = 12,
    .compute_minor = 0,
    .brand = NVML_BRAND_NVIDIA,
    .pci_device_id = 0x2BB510DE,
    .pci_subsystem_id = 0x204E10DE,
    .memory_mib = 97887,
    .addressing_mode = NVML_ADDRESSING_MODE_HMM,
    .resetless_mig = true,
    .memory_slices = 12,
    .max_mig_devices = 4,
    .upper_half_first = false,
    .profiles = rtx_pro_6000_profiles,
    .profile_count = sizeof rtx_pro_6000_profiles / sizeof rtx_pro_6000_profiles[0],
};
