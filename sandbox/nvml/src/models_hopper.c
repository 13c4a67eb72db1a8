/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Hopper: MIG mode switches at once and is lost with the kernel module.
 */
#include "models_seven.h"

#define HOPPER .architecture = NVML_ARCH_HOPPER, .compute_major = 9, .compute_minor = 0, .brand = NVML_BRAND_NVIDIA, .resetless_mig = true

/* Engines: the same on boards of all these models. */
#define ENGINES_1G {1, 1, 0, 1, 0}
#define ENGINES_1G_ME {1, 1, 0, 1, 1}
#define ENGINES_2G {2, 2, 0, 2, 0}
#define ENGINES_3G {3, 3, 0, 3, 0}
#define ENGINES_4G {4, 4, 0, 4, 0}
#define ENGINES_7G {8, 7, 0, 7, 1}

/* H100 80GB SXM5: every number as boards print it. */
static const struct gi_profile h100_80gb_hbm3[] = {
    ROW_1G("1g.10gb", 9984, 16, ENGINES_1G),
    ROW_1G_ME("1g.10gb+me", 9984, 16, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.20gb", 20096, 26, ENGINES_1G),
    ROW_2G("2g.20gb", 20096, 32, ENGINES_2G),
    ROW_3G("3g.40gb", 40448, 60, ENGINES_3G),
    ROW_4G("4g.40gb", 40448, 64, ENGINES_4G),
    ROW_7G("7g.80gb", 81152, 132, ENGINES_7G),
};

/* H100 80GB PCIe: as a board with driver 570.169 prints it. It has 114 SMs, and the 1g with double memory gets no more of them. */
static const struct gi_profile h100_80gb_pcie[] = {
    ROW_1G("1g.10gb", 9984, 14, ENGINES_1G),
    ROW_1G_ME("1g.10gb+me", 9984, 14, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.20gb", 20096, 14, ENGINES_1G),
    ROW_2G("2g.20gb", 20096, 30, ENGINES_2G),
    ROW_3G("3g.40gb", 40448, 46, ENGINES_3G),
    ROW_4G("4g.40gb", 40448, 62, ENGINES_4G),
    ROW_7G("7g.80gb", 81152, 114, ENGINES_7G),
};

/* H100 NVL: as boards print it (10.75, 21.62 for 21.625, 46.38 for 46.375 and 93.12 for 93.125 GiB). */
static const struct gi_profile h100_nvl[] = {
    ROW_1G("1g.12gb", 11008, 16, ENGINES_1G),
    ROW_1G_ME("1g.12gb+me", 11008, 16, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.24gb", 22144, 26, ENGINES_1G),
    ROW_2G("2g.24gb", 22144, 32, ENGINES_2G),
    ROW_3G("3g.47gb", 47488, 60, ENGINES_3G),
    ROW_4G("4g.47gb", 47488, 64, ENGINES_4G),
    ROW_7G("7g.94gb", 95360, 132, ENGINES_7G),
};

/* H200: as boards print it (16.00, 32.50, 69.50 and 140.00 GiB; another driver shows 32.25 and 139.75). */
static const struct gi_profile h200[] = {
    ROW_1G("1g.18gb", 16384, 16, ENGINES_1G),
    ROW_1G_ME("1g.18gb+me", 16384, 16, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.35gb", 33280, 26, ENGINES_1G),
    ROW_2G("2g.35gb", 33280, 32, ENGINES_2G),
    ROW_3G("3g.71gb", 71168, 60, ENGINES_3G),
    ROW_4G("4g.71gb", 71168, 64, ENGINES_4G),
    ROW_7G("7g.141gb", 143360, 132, ENGINES_7G),
};

/* GH200 with 96 GB: as a board prints it (11.00, 23.00, 46.50 and 93.00 GiB). */
static const struct gi_profile gh200_96gb[] = {
    ROW_1G("1g.12gb", 11264, 16, ENGINES_1G),
    ROW_1G_ME("1g.12gb+me", 11264, 16, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.24gb", 23552, 26, ENGINES_1G),
    ROW_2G("2g.24gb", 23552, 32, ENGINES_2G),
    ROW_3G("3g.48gb", 47616, 60, ENGINES_3G),
    ROW_4G("4g.48gb", 47616, 64, ENGINES_4G),
    ROW_7G("7g.96gb", 95232, 132, ENGINES_7G),
};

/* GH200 with 144 GB: 1g and 2g as a board prints them (17.50 and 35.25 GiB). The memory of 3g, 4g and 7g is inferred: as much below their
 * share of the total as on H200. SMs and engines of these three: those of every other GPU with this chip and 132 SMs. */
static const struct gi_profile gh200_144gb[] = {
    ROW_1G("1g.18gb", 17920, 16, ENGINES_1G),
    ROW_1G_ME("1g.18gb+me", 17920, 16, ENGINES_1G_ME),
    ROW_1G_DOUBLE("1g.36gb", 36096, 26, ENGINES_1G),
    ROW_2G("2g.36gb", 36096, 32, ENGINES_2G),
    ROW_3G("3g.72gb", 72704, 60, ENGINES_3G),
    ROW_4G("4g.72gb", 72704, 64, ENGINES_4G),
    ROW_7G("7g.144gb", 146176, 132, ENGINES_7G),
};

static const struct model models[] = {
    {
        .key = "h100-80gb-hbm3",
        .product = "NVIDIA H100 80GB HBM3",
        HOPPER,
        .pci_device_id = 0x233010DE,
        .pci_subsystem_id = 0x16C110DE,
        .memory_mib = 81559,
        .addressing_mode = NVML_ADDRESSING_MODE_HMM,
        SEVEN_SLICES(h100_80gb_hbm3),
    },
    {
        .key = "h100-80gb-pcie",
        .product = "NVIDIA H100 PCIe",
        HOPPER,
        .pci_device_id = 0x233110DE,
        .pci_subsystem_id = 0x162610DE,
        .memory_mib = 81559,
        .addressing_mode = NVML_ADDRESSING_MODE_HMM,
        SEVEN_SLICES(h100_80gb_pcie),
    },
    {
        .key = "h100-nvl-94gb",
        .product = "NVIDIA H100 NVL",
        HOPPER,
        .pci_device_id = 0x232110DE,
        .pci_subsystem_id = 0x183910DE,
        .memory_mib = 95830,
        .addressing_mode = NVML_ADDRESSING_MODE_HMM,
        SEVEN_SLICES(h100_nvl),
    },
    {
        .key = "h200-sxm",
        .product = "NVIDIA H200",
        HOPPER,
        .pci_device_id = 0x233510DE,
        .pci_subsystem_id = 0x18BE10DE,
        .memory_mib = 143771,
        .addressing_mode = NVML_ADDRESSING_MODE_HMM,
        SEVEN_SLICES(h200),
    },
    {
        .key = "h200-nvl",
        .product = "NVIDIA H200 NVL",
        HOPPER,
        .pci_device_id = 0x233B10DE,
        .pci_subsystem_id = 0x199610DE,
        .memory_mib = 143771,
        .addressing_mode = NVML_ADDRESSING_MODE_HMM,
        SEVEN_SLICES(h200),
    },
    {
        .key = "gh200-96gb",
        .product = "NVIDIA GH200 480GB",
        HOPPER,
        .pci_device_id = 0x234210DE,
        .pci_subsystem_id = 0x180910DE,
        .memory_mib = 97871,
        .addressing_mode = NVML_ADDRESSING_MODE_ATS,
        SEVEN_SLICES(gh200_96gb),
    },
    {
        .key = "gh200-144gb",
        .product = "NVIDIA GH200 144G HBM3e",
        .inferred = "the memory of 3g.72gb, 4g.72gb and 7g.144gb was not seen on a board",
        HOPPER,
        .pci_device_id = 0x234810DE,
        .pci_subsystem_id = 0x18D210DE,
        .memory_mib = 146831,
        .addressing_mode = NVML_ADDRESSING_MODE_ATS,
        SEVEN_SLICES(gh200_144gb),
    },
};

const struct model_list models_hopper = {models, sizeof models / sizeof models[0]};
