/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Field values, processes and events of a GPU. The emulator has no processes on its GPUs and no events of its own yet.
 */
#define _POSIX_C_SOURCE 200809L
#include "call.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct event_set {
    unsigned registered;    /* number of GPUs registered with it */
};

static void read_field(const struct call *call, nvmlFieldValue_t *field)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    field->timestamp = now.tv_sec * 1000000ll + now.tv_nsec / 1000;
    field->latencyUsec = 0;
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->nvmlReturn = NVML_SUCCESS;
    if (field->fieldId == NVML_FI_RESETLESS_MIG_SUPPORTED)
        field->value.uiVal = call->model->resetless_mig;
    else if (field->fieldId == NVML_FI_MIG_MODE_INDEPENDENT_QUERY)
        field->value.uiVal = !call->gpu->knobs.profiles_need_mode;
    else
        field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && (!values || count < 1))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; rc == NVML_SUCCESS && i < count; i++)
        read_field(&call, &values[i]);
    return call_finish(&call, rc);
}

static nvmlReturn_t no_processes(const char *symbol, nvmlDevice_t device, unsigned *count)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, symbol, device, HANDLE_GPU | HANDLE_MIG);
    if (rc == NVML_SUCCESS && !count)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *count = 0;
    return call_finish(&call, rc);
}

/* The _v2 and _v3 forms have the same layout. */
#define PROCESS_LIST(name)                                                                              \
    NVML_EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)   \
    {                                                                                                   \
        (void)processes;                                                                                \
        return no_processes(#name, device, count);                                                      \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3)

NVML_EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, NULL, 0);
    if (rc == NVML_SUCCESS && !set)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        *set = calloc(1, sizeof **set);
        rc = *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
    }
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !types)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *types = 0;
    return call_finish(&call, rc);
}

/* As the real call: NOT_SUPPORTED, and nothing registered, if any requested type is not supported. */
NVML_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !set)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && types != 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        set->registered++;
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, NULL, 0);
    if (rc == NVML_SUCCESS && (!set || !data))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    rc = call_finish(&call, rc);
    if (rc != NVML_SUCCESS)
        return rc;
    struct timespec pause = {.tv_sec = timeout_ms / 1000, .tv_nsec = (long)(timeout_ms % 1000) * 1000000};
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR) {
    }
    return NVML_ERROR_TIMEOUT;
}

NVML_EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}

NVML_EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, NULL, 0);
    if (rc == NVML_SUCCESS && !set)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        free(set);
    return call_finish(&call, rc);
}
