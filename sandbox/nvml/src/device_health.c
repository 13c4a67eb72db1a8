/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Health as NVML tells it: ECC, row remapping, repairs, clocks. Values that need ECC or row remapping are not there without it.
 */
#include "call.h"
#include "mig.h"
#include "nvml_abi_health.h"

/* Banks of spare rows, as nvidia-smi shows them for an A100; other GPUs have other numbers. */
#define BANKS 640u

static nvmlReturn_t begin_ecc(struct call *call, const char *symbol, nvmlDevice_t device)
{
    nvmlReturn_t rc = call_query(call, symbol, device, HANDLE_GPU);
    return rc == NVML_SUCCESS && call->gpu->health.ecc_off ? NVML_ERROR_NOT_SUPPORTED : rc;
}

/* Row remapping is not told while MIG instances exist. */
static nvmlReturn_t begin_rows(struct call *call, const char *symbol, nvmlDevice_t device)
{
    nvmlReturn_t rc = call_query(call, symbol, device, HANDLE_GPU);
    return rc == NVML_SUCCESS && mig_has_instances(call->gpu) ? NVML_ERROR_NOT_SUPPORTED : rc;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && (!current || !pending))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        *current = !call.gpu->health.ecc_off;
        *pending = !call.gpu->health.ecc_off_pending;
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type, unsigned counter, unsigned long long *count)
{
    struct call call;
    nvmlReturn_t rc = begin_ecc(&call, __func__, device);
    if (rc == NVML_SUCCESS && (!count || type >= NVML_MEMORY_ERROR_TYPES || counter >= ECC_COUNTERS))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        const struct health *health = &call.gpu->health;
        *count = type == NVML_MEMORY_ERROR_CORRECTED ? (unsigned long long)health->dram_corrected[counter] + health->sram_corrected[counter]
                                                     : (unsigned long long)health->dram_uncorrected[counter] + health->sram_uncorrected[counter];
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned type, unsigned counter, unsigned location,
                                                         unsigned long long *count)
{
    struct call call;
    nvmlReturn_t rc = begin_ecc(&call, __func__, device);
    if (rc == NVML_SUCCESS && (!count || type >= NVML_MEMORY_ERROR_TYPES || counter >= ECC_COUNTERS || location >= NVML_MEMORY_LOCATIONS))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        const struct health *health = &call.gpu->health;
        bool corrected = type == NVML_MEMORY_ERROR_CORRECTED;
        if (location == NVML_MEMORY_LOCATION_DEVICE_MEMORY)
            *count = corrected ? health->dram_corrected[counter] : health->dram_uncorrected[counter];
        else if (location == NVML_MEMORY_LOCATION_SRAM)
            *count = corrected ? health->sram_corrected[counter] : health->sram_uncorrected[counter];
        else
            rc = NVML_ERROR_NOT_SUPPORTED;
    }
    return call_finish(&call, rc);
}

/* The uncorrected errors of the SRAM count as parity errors of the SMs. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_t *status)
{
    struct call call;
    nvmlReturn_t rc = begin_ecc(&call, __func__, device);
    if (rc == NVML_SUCCESS && !status)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && status->version != NVML_STRUCT_VERSION(nvmlEccSramErrorStatus_t, 1u))
        rc = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (rc == NVML_SUCCESS) {
        const struct health *health = &call.gpu->health;
        *status = (nvmlEccSramErrorStatus_t){
            .version = status->version,
            .aggregateUncParity = health->sram_uncorrected[ECC_AGGREGATE],
            .aggregateCor = health->sram_corrected[ECC_AGGREGATE],
            .volatileUncParity = health->sram_uncorrected[ECC_VOLATILE],
            .volatileCor = health->sram_corrected[ECC_VOLATILE],
            .aggregateUncBucketSm = health->sram_uncorrected[ECC_AGGREGATE],
            .bThresholdExceeded = health->sram_threshold_exceeded,
        };
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending,
                                                   unsigned *failed)
{
    struct call call;
    nvmlReturn_t rc = begin_rows(&call, __func__, device);
    if (rc == NVML_SUCCESS && (!correctable || !uncorrectable || !pending || !failed))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        *correctable = call.gpu->health.remap_correctable;
        *uncorrectable = call.gpu->health.remap_uncorrectable;
        *pending = call.gpu->health.remap_pending;
        *failed = call.gpu->health.remap_failed;
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *values)
{
    struct call call;
    nvmlReturn_t rc = begin_rows(&call, __func__, device);
    if (rc == NVML_SUCCESS && !values)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        const struct health *health = &call.gpu->health;
        unsigned fewer = health->banks_high + health->banks_partial + health->banks_low + health->banks_none;
        *values = (nvmlRowRemapperHistogramValues_t){
            .max = fewer < BANKS ? BANKS - fewer : 0,
            .high = health->banks_high,
            .partial = health->banks_partial,
            .low = health->banks_low,
            .none = health->banks_none,
        };
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *status)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !status)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && status->version != NVML_STRUCT_VERSION(nvmlRepairStatus_t, 1u))
        rc = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (rc == NVML_SUCCESS) {
        status->bChannelRepairPending = call.gpu->health.channel_repair_pending;
        status->bTpcRepairPending = call.gpu->health.tpc_repair_pending;
    }
    return call_finish(&call, rc);
}

static nvmlReturn_t clock_reasons(const char *symbol, nvmlDevice_t device, unsigned long long *reasons)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, symbol, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !reasons)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *reasons = call.gpu->health.clock_event_reasons;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return clock_reasons(__func__, device, reasons);
}

/* The older name of the same. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return clock_reasons(__func__, device, reasons);
}
