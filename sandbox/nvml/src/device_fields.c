/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Field values of a GPU. Each field has a result of its own; the call fails only as a whole if it makes no sense.
 */
#define _POSIX_C_SOURCE 200809L
#include "call.h"
#include "mig.h"
#include "nvml_abi_health.h"

#include <time.h>

static nvmlReturn_t give_number(nvmlFieldValue_t *field, unsigned value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.uiVal = value;
    return NVML_SUCCESS;
}

static nvmlReturn_t give_errors(nvmlFieldValue_t *field, const struct health *health, unsigned dram, unsigned sram)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    field->value.ullVal = (unsigned long long)dram + sram;
    return health->ecc_off ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static nvmlReturn_t give_rows(nvmlFieldValue_t *field, const struct gpu *gpu, unsigned value)
{
    return mig_has_instances(gpu) ? NVML_ERROR_NOT_SUPPORTED : give_number(field, value);
}

static nvmlReturn_t read_field(const struct call *call, nvmlFieldValue_t *field)
{
    const struct gpu *gpu = call->gpu;
    const struct health *health = &gpu->health;
    switch (field->fieldId) {
    case NVML_FI_ECC_SBE_VOLATILE:
        return give_errors(field, health, health->dram_corrected[ECC_VOLATILE], health->sram_corrected[ECC_VOLATILE]);
    case NVML_FI_ECC_DBE_VOLATILE:
        return give_errors(field, health, health->dram_uncorrected[ECC_VOLATILE], health->sram_uncorrected[ECC_VOLATILE]);
    case NVML_FI_ECC_SBE_AGGREGATE:
        return give_errors(field, health, health->dram_corrected[ECC_AGGREGATE], health->sram_corrected[ECC_AGGREGATE]);
    case NVML_FI_ECC_DBE_AGGREGATE:
        return give_errors(field, health, health->dram_uncorrected[ECC_AGGREGATE], health->sram_uncorrected[ECC_AGGREGATE]);
    case NVML_FI_REMAPPED_CORRECTABLE:
        return give_rows(field, gpu, health->remap_correctable);
    case NVML_FI_REMAPPED_UNCORRECTABLE:
        return give_rows(field, gpu, health->remap_uncorrectable);
    case NVML_FI_REMAPPED_PENDING:
        return give_rows(field, gpu, health->remap_pending);
    case NVML_FI_REMAPPED_FAILURE:
        return give_rows(field, gpu, health->remap_failed);
    case NVML_FI_RESETLESS_MIG_SUPPORTED:
        return give_number(field, call->model->resetless_mig);
    case NVML_FI_MIG_MODE_INDEPENDENT_QUERY:
        return give_number(field, !gpu->knobs.profiles_need_mode);
    case NVML_FI_GPU_RECOVERY_ACTION:
        return give_number(field, health->recovery_action);
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct call call;
    struct timespec now;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && (!values || count < 1))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; rc == NVML_SUCCESS && i < count; i++) {
        values[i].timestamp = now.tv_sec * 1000000ll + now.tv_nsec / 1000;
        values[i].latencyUsec = 0;
        values[i].nvmlReturn = read_field(&call, &values[i]);
    }
    return call_finish(&call, rc);
}
