/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The part of NVML's binary interface that is about health, the NVLink fabric and the links. Written from the documented API; layouts
 * are pinned as in nvml_abi.h.
 */
#ifndef NVML_ABI_HEALTH_H
#define NVML_ABI_HEALTH_H

#include "nvml_abi.h"

enum { NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3 };
/* Field values. Retired pages (31) are of GPUs before Ampere. */
enum {
    NVML_FI_ECC_SBE_VOLATILE = 3, NVML_FI_ECC_DBE_VOLATILE = 4, NVML_FI_ECC_SBE_AGGREGATE = 5, NVML_FI_ECC_DBE_AGGREGATE = 6,
    NVML_FI_REMAPPED_CORRECTABLE = 142, NVML_FI_REMAPPED_UNCORRECTABLE = 143, NVML_FI_REMAPPED_PENDING = 144,
    NVML_FI_REMAPPED_FAILURE = 145, NVML_FI_GPU_RECOVERY_ACTION = 230,
};
enum { NVML_GPU_RECOVERY_ACTION_GPU_RESET = 1, NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET = 4 };
enum { NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2 };

enum { NVML_MEMORY_ERROR_CORRECTED = 0, NVML_MEMORY_ERROR_UNCORRECTED = 1, NVML_MEMORY_ERROR_TYPES = 2 };
enum { NVML_MEMORY_LOCATION_DEVICE_MEMORY = 2, NVML_MEMORY_LOCATION_SRAM = 7, NVML_MEMORY_LOCATIONS = 8 };

typedef struct {
    unsigned int version;
    unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity, volatileUncSecDed, volatileCor;
    unsigned long long aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie, aggregateUncBucketMcu, aggregateUncBucketOther;
    unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_t;
ABI_SIZE(nvmlEccSramErrorStatus_t, 104);

typedef struct { unsigned int max, high, partial, low, none; } nvmlRowRemapperHistogramValues_t;
ABI_SIZE(nvmlRowRemapperHistogramValues_t, 20);

typedef struct { unsigned int version, bChannelRepairPending, bTpcRepairPending; } nvmlRepairStatus_t;
ABI_SIZE(nvmlRepairStatus_t, 12);

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
    unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;
ABI_SIZE(nvmlGpuFabricInfo_v2_t, 36);

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;
ABI_SIZE(nvmlGpuFabricInfo_v3_t, 40);

enum { NVML_NVLINK_MAX_LINKS = 18, NVML_NVLINK_DEVICE_TYPE_GPU = 0, NVML_NVLINK_DEVICE_TYPE_SWITCH = 2 };

#endif
