/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Event sets: registration, and waiting for what the machine's GPUs post.
 */
#define _POSIX_C_SOURCE 200809L
#include "call.h"
#include "nvml_abi_health.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct event_set {
    uint64_t next;                                /* number of the first event that it has not looked at */
    struct { uint64_t since, types; } registered[MAX_GPUS];
};

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
        *types = SUPPORTED_EVENTS;
    return call_finish(&call, rc);
}

/* As the real call: NOT_SUPPORTED, and nothing registered, if any requested type is not supported; earlier events are not delivered. */
NVML_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, __func__, device, HANDLE_GPU);
    if (rc == NVML_SUCCESS && !set)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && (types & ~(unsigned long long)SUPPORTED_EVENTS))
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS) {
        set->registered[call.handle->gpu].types = types;
        set->registered[call.handle->gpu].since = call.machine->events.posted;
    }
    return call_finish(&call, rc);
}

/* The next event of the set: SUCCESS, TIMEOUT if there is none, GPU_IS_LOST if one of its GPUs is. */
static nvmlReturn_t next_event(nvmlEventSet_t set, const struct machine *machine, struct event *found)
{
    const struct events *events = &machine->events;
    for (unsigned gpu = 0; gpu < machine->gpu_count; gpu++)
        if (set->registered[gpu].types && machine->gpus[gpu].lost)
            return NVML_ERROR_GPU_IS_LOST;
    if (events->posted > MAX_EVENTS && set->next < events->posted - MAX_EVENTS)
        set->next = events->posted - MAX_EVENTS;
    while (set->next < events->posted) {
        uint64_t number = set->next++;
        *found = events->events[number % MAX_EVENTS];
        if ((set->registered[found->gpu].types & found->type) && number >= set->registered[found->gpu].since)
            return NVML_SUCCESS;
    }
    return NVML_ERROR_TIMEOUT;
}

/* Look for an event, and note what to sleep on until the next change. */
static nvmlReturn_t look(nvmlEventSet_t set, nvmlEventData_t *data, struct state_watch *watch)
{
    struct event event;
    nvmlReturn_t rc = NVML_ERROR_UNINITIALIZED;
    library_lock();
    const struct machine *machine = state_is_attached() ? state_read() : NULL;
    if (machine) {
        *watch = state_watch();
        rc = next_event(set, machine, &event);
        state_unlock();
    }
    if (rc == NVML_SUCCESS)
        *data = (nvmlEventData_t){
            .device = handle_for((struct handle){.kind = HANDLE_GPU, .gpu = event.gpu}),
            .eventType = event.type,
            .eventData = event.data,
            .gpuInstanceId = event.gpu_instance,
            .computeInstanceId = event.compute_instance,
        };
    library_unlock();
    return rc;
}

static long long milliseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static nvmlReturn_t wait_for_event(const char *symbol, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    struct call call;
    struct state_watch watch;
    long long end = milliseconds_now() + timeout_ms;
    nvmlReturn_t rc = call_query(&call, symbol, NULL, 0);
    if (rc == NVML_SUCCESS && (!set || !data))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    rc = call_finish(&call, rc);
    if (rc != NVML_SUCCESS)
        return rc;
    while ((rc = look(set, data, &watch)) == NVML_ERROR_TIMEOUT) {
        long long left = end - milliseconds_now();
        if (left <= 0)
            break;
        state_watch_wait(&watch, (unsigned)left);
    }
    return rc;
}

NVML_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    return wait_for_event(__func__, set, data, timeout_ms);
}

/* The first form's data ends before the instance ids. */
NVML_EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    nvmlEventData_t whole;
    nvmlReturn_t rc = wait_for_event(__func__, set, data ? &whole : NULL, timeout_ms);
    if (rc == NVML_SUCCESS)
        memcpy(data, &whole, offsetof(nvmlEventData_t, gpuInstanceId));
    return rc;
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
