/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Blackwell: RTX PRO with four compute slices over twelve memory slices, and the data center chips with seven over eight. MIG mode as on
 * Hopper.
 */
#include "models_seven.h"

#define BLACKWELL .architecture = NVML_ARCH_BLACKWELL, .brand = NVML_BRAND_NVIDIA, .resetless_mig = true

/* One row per profile: {enum, id, name, compute slices, max instances, memory MiB, SMs,
 *                       {copy, decode, encode, JPEG, OFA engines}, memory slices, placements, {starts}}.
 * As a real RTX PRO 6000 Server Edition prints it (23.62 for 23.625, 47.38 for 47.375 and 95.00 GiB; another driver shows 23.12 and 95.12).
 */
static const struct gi_profile rtx_pro_6000[] = {
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

/* The data center chips. Engines of 1g and 2g and the copy engines of 7g: as boards print them. The rest of 3g, 4g and 7g is inferred: so
 * many times those of 1g. */
#define ENGINES_1G {2, 1, 0, 1, 0}
#define ENGINES_1G_ME {2, 1, 0, 1, 1}
#define ENGINES_2G {4, 2, 0, 2, 0}
#define ENGINES_3G {6, 3, 0, 3, 0}
#define ENGINES_4G {8, 4, 0, 4, 0}
#define ENGINES_7G {16, 7, 0, 7, 1}

/* B200: 1g and 2g as boards print them (22.00, earlier 20.50, and 44.25 GiB), and the SMs of 7g. Inferred: memory of 3g, 4g and 7g, a
 * little below their share; SMs of 4g, twice those of 2g, and of 3g, less by as much as on H100. */
static const struct gi_profile b200[] = {
    ROW_1G("1g.23gb", 22528, 18, ENGINES_1G),
    ROW_1G_ME("1g.23gb+me", 22528, 18, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.45gb", 45312, 30, ENGINES_1G),
    ROW_2G("2g.45gb", 45312, 36, ENGINES_2G),
    ROW_3G("3g.90gb", 91136, 68, ENGINES_3G),
    ROW_4G("4g.90gb", 91136, 72, ENGINES_4G),
    ROW_7G("7g.180gb", 182784, 148, ENGINES_7G),
};

/* GB200, of the boards with 189471 MiB: likewise (22.00 and 45.50 GiB). Other boards with this PCI id name their profiles 1g.24gb to
 * 7g.189gb. */
static const struct gi_profile gb200[] = {
    ROW_1G("1g.23gb", 22528, 18, ENGINES_1G),
    ROW_1G_ME("1g.23gb+me", 22528, 18, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.47gb", 46592, 32, ENGINES_1G),
    ROW_2G("2g.47gb", 46592, 38, ENGINES_2G),
    ROW_3G("3g.93gb", 94208, 72, ENGINES_3G),
    ROW_4G("4g.93gb", 94208, 76, ENGINES_4G),
    ROW_7G("7g.186gb", 188928, 152, ENGINES_7G),
};

#define DATA_CENTER_GUESSES "placements, and memory, SMs and media engines of 3g, 4g and 7g, were not seen on a board"

static const struct model models[] = {
    {
        .key = "rtx-pro-6000-server",
        .product = "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        BLACKWELL,
        .compute_major = 12,
        .compute_minor = 0,
        .pci_device_id = 0x2BB510DE,
        .pci_subsystem_id = 0x204E10DE,
        .memory_mib = 97887,
        .addressing_mode = NVML_ADDRESSING_MODE_HMM,
        .memory_slices = 12,
        .max_mig_devices = 4,
        TABLE(rtx_pro_6000),
    },
    {
        .key = "b200",
        .product = "NVIDIA B200",
        .inferred = DATA_CENTER_GUESSES,
        BLACKWELL,
        .compute_major = 10,
        .compute_minor = 0,
        .pci_device_id = 0x290110DE,
        .pci_subsystem_id = 0x199910DE,
        .memory_mib = 183359,
        .addressing_mode = NVML_ADDRESSING_MODE_HMM,
        SEVEN_SLICES(b200),
    },
    {
        .key = "gb200",
        .product = "NVIDIA GB200",
        .inferred = DATA_CENTER_GUESSES,
        BLACKWELL,
        .compute_major = 10,
        .compute_minor = 0,
        .pci_device_id = 0x294110DE,
        .pci_subsystem_id = 0x204610DE,
        .memory_mib = 189471,
        .addressing_mode = NVML_ADDRESSING_MODE_ATS,
        SEVEN_SLICES(gb200),
    },
};

const struct model_list models_blackwell = {models, sizeof models / sizeof models[0]};
