/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Ampere: MIG mode changes need a GPU reset and are kept over a reboot.
 */
#include "models_seven.h"

#define AMPERE .architecture = NVML_ARCH_AMPERE, .compute_major = 8, .compute_minor = 0, .brand = NVML_BRAND_NVIDIA, \
               .addressing_mode = NVML_ADDRESSING_MODE_HMM, .resetless_mig = false

/* Engines and SMs of A100: as boards of both memory sizes print them. */
#define ENGINES_1G {1, 0, 0, 0, 0}
#define ENGINES_1G_ME {1, 1, 0, 1, 1}
#define ENGINES_1G_DOUBLE {1, 1, 0, 0, 0}
#define ENGINES_2G {2, 1, 0, 0, 0}
#define ENGINES_3G {3, 2, 0, 0, 0}
#define ENGINES_4G {4, 2, 0, 0, 0}
#define ENGINES_7G {7, 5, 0, 1, 1}

/* Memory as a board prints it: 4.75, 9.62 (for 9.625), 19.50 and 39.25 GiB. */
static const struct gi_profile a100_40gb[] = {
    ROW_1G("1g.5gb", 4864, 14, ENGINES_1G),
    ROW_1G_ME("1g.5gb+me", 4864, 14, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.10gb", 9856, 14, ENGINES_1G_DOUBLE),
    ROW_2G("2g.10gb", 9856, 28, ENGINES_2G),
    ROW_3G("3g.20gb", 19968, 42, ENGINES_3G),
    ROW_4G("4g.20gb", 19968, 56, ENGINES_4G),
    ROW_7G("7g.40gb", 40192, 98, ENGINES_7G),
};

/* Memory as boards print it: 9.50, 19.50 and 39.25 GiB; for 7g they print 78.50 to 79.25, the lowest is taken. */
static const struct gi_profile a100_80gb[] = {
    ROW_1G("1g.10gb", 9728, 14, ENGINES_1G),
    ROW_1G_ME("1g.10gb+me", 9728, 14, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.20gb", 19968, 14, ENGINES_1G_DOUBLE),
    ROW_2G("2g.20gb", 19968, 28, ENGINES_2G),
    ROW_3G("3g.40gb", 40192, 42, ENGINES_3G),
    ROW_4G("4g.40gb", 40192, 56, ENGINES_4G),
    ROW_7G("7g.80gb", 80384, 98, ENGINES_7G),
};

/* Half an A100: four compute slices over four memory slices. {enum, id, name, compute slices, max instances, memory MiB, SMs, engines,
 * memory slices, placements, {starts}}. All as one board with driver 535.183.01 prints it, GPU instance ids from the lower half too (1g at
 * 0: 3, 2g at 2: 2). NVIDIA's guide and mock give a 1g no decoder, and the mock less memory (5836, 11672, 23344 MiB). */
static const struct gi_profile a30[] = {
    {GI_1_SLICE, 14, "1g.6gb", 1, 4, 5952, 14, {1, 1, 0, 0, 0}, 1, 4, {0, 1, 2, 3}},
    {GI_1_SLICE_REV1, 21, "1g.6gb+me", 1, 1, 5952, 14, {1, 1, 0, 1, 1}, 1, 4, {0, 1, 2, 3}},
    {GI_2_SLICE, 5, "2g.12gb", 2, 2, 11968, 28, {2, 2, 0, 0, 0}, 2, 2, {0, 2}},
    {GI_2_SLICE_REV1, 6, "2g.12gb+me", 2, 1, 11968, 28, {2, 2, 0, 1, 1}, 2, 2, {0, 2}},
    {GI_4_SLICE, 0, "4g.24gb", 4, 1, 24000, 56, {4, 4, 0, 1, 1}, 4, 1, {0}},
};

static const struct model models[] = {
    {
        .key = "a30",
        .product = "NVIDIA A30",
        .inferred = "its profile ids, decoders and memory come from the listing of a single board, and other sources differ",
        AMPERE,
        .pci_device_id = 0x20B710DE,
        .pci_subsystem_id = 0x153210DE,
        .memory_mib = 24576,
        .memory_slices = 4,
        .max_mig_devices = 4,
        TABLE(a30),
    },
    {
        .key = "a100-40gb-sxm4",
        .product = "NVIDIA A100-SXM4-40GB",
        AMPERE,
        .pci_device_id = 0x20B010DE,
        .pci_subsystem_id = 0x134F10DE,
        .memory_mib = 40960,
        SEVEN_SLICES(a100_40gb),
    },
    {
        .key = "a100-80gb-sxm4",
        .product = "NVIDIA A100-SXM4-80GB",
        AMPERE,
        .pci_device_id = 0x20B210DE,
        .pci_subsystem_id = 0x146310DE,
        .memory_mib = 81920,
        SEVEN_SLICES(a100_80gb),
    },
    {
        .key = "a100-80gb-pcie",
        .product = "NVIDIA A100 80GB PCIe",
        AMPERE,
        .pci_device_id = 0x20B510DE,
        .pci_subsystem_id = 0x153310DE,
        .memory_mib = 81920,
        SEVEN_SLICES(a100_80gb),
    },
};

const struct model_list models_ampere = {models, sizeof models / sizeof models[0]};
