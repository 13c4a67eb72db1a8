/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The frame of every NVML call.
 */
#include "call.h"
#include "access.h"
#include "calllog.h"
#include "capability.h"
#include "nvml_abi_health.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned inits;
static unsigned visible[MAX_GPUS], visible_gpus;

void library_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void library_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A child forked by another thread in the middle of a call must find the mutex free. */
__attribute__((constructor)) static void register_fork_handlers(void)
{
    pthread_atfork(library_lock, library_unlock, library_unlock);
}

static void find_visible_gpus(const struct machine *machine)
{
    visible_gpus = 0;
    for (unsigned i = 0; i < machine->gpu_count; i++)
        if (access_gpu(machine->gpus[i].minor))
            visible[visible_gpus++] = i;
}

static nvmlReturn_t first_init(unsigned flags)
{
    nvmlReturn_t rc = access_control_node();
    if (rc == NVML_SUCCESS)
        rc = state_attach();
    if (rc != NVML_SUCCESS)
        return rc;
    const struct machine *machine = state_read();
    if (!machine)
        rc = NVML_ERROR_UNKNOWN;
    else if (strncmp(machine->module_version, DRIVER_VERSION, sizeof machine->module_version) != 0)
        rc = NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    else
        find_visible_gpus(machine);
    if (machine)
        state_unlock();
    if (rc == NVML_SUCCESS && visible_gpus == 0 && !(flags & NVML_INIT_FLAG_NO_GPUS))
        rc = NVML_ERROR_GPU_NOT_FOUND;
    if (rc != NVML_SUCCESS)
        state_detach();
    return rc;
}

static nvmlReturn_t take_init(unsigned flags)
{
    library_lock();
    nvmlReturn_t rc = inits == 0 ? first_init(flags) : NVML_SUCCESS;
    if (rc == NVML_SUCCESS)
        inits++;
    library_unlock();
    return rc;
}

static nvmlReturn_t drop_init(void)
{
    nvmlReturn_t rc = NVML_SUCCESS;
    library_lock();
    if (inits == 0)
        rc = NVML_ERROR_UNINITIALIZED;
    else if (--inits == 0)
        state_detach();
    library_unlock();
    return rc;
}

/* A call without effect of its own, for the log and for injected faults. */
static nvmlReturn_t note_call(const char *symbol)
{
    struct call call;
    return call_finish(&call, call_query(&call, symbol, NULL, 0));
}

nvmlReturn_t library_init(const char *symbol, unsigned flags)
{
    nvmlReturn_t rc = take_init(flags);
    if (rc != NVML_SUCCESS)
        return rc;
    rc = note_call(symbol);
    if (rc != NVML_SUCCESS)
        drop_init();
    return rc;
}

nvmlReturn_t library_shutdown(const char *symbol)
{
    nvmlReturn_t rc = note_call(symbol);
    return rc == NVML_SUCCESS ? drop_init() : rc;
}

unsigned visible_count(void)
{
    return visible_gpus;
}

int visible_gpu(unsigned index)
{
    return index < visible_gpus ? (int)visible[index] : -1;
}

int visible_index(unsigned gpu)
{
    for (unsigned i = 0; i < visible_gpus; i++)
        if (visible[i] == gpu)
            return (int)i;
    return -1;
}

/* Point the call at the live objects that the handle names. NOT_FOUND for a stale handle. */
static nvmlReturn_t resolve(struct call *call)
{
    const struct handle *handle = call->handle;
    if (handle->gpu >= call->machine->gpu_count)
        return NVML_ERROR_NOT_FOUND;
    call->gpu = &call->machine->gpus[handle->gpu];
    call->model = model_find(call->gpu->model);
    if (!call->model)
        return NVML_ERROR_UNKNOWN;
    if (call->gpu->lost || call->gpu->not_ready)
        return call->gpu->lost ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_NOT_READY;
    if (handle->kind == HANDLE_GPU)
        return NVML_SUCCESS;
    call->gpu_instance = &call->gpu->instances[handle->gpu_instance];
    if (!call->gpu_instance->used)
        return NVML_ERROR_NOT_FOUND;
    if (handle->kind == HANDLE_GPU_INSTANCE)
        return call->gpu_instance->generation == handle->generation ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
    call->compute_instance = &call->gpu_instance->compute[handle->compute_instance];
    if (!call->compute_instance->used || call->compute_instance->generation != handle->generation)
        return NVML_ERROR_NOT_FOUND;
    return NVML_SUCCESS;
}

/* A query that is not for such a handle. Real drivers are not known to have one code for a MIG device where a GPU is asked for. */
static nvmlReturn_t wrong_kind(const struct machine *machine, const struct handle *handle)
{
    bool known = handle->kind == HANDLE_MIG && handle->gpu < machine->gpu_count;
    return known && machine->gpus[handle->gpu].knobs.parent_query ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

/* Take the locks and find the objects. */
static nvmlReturn_t enter(struct call *call, const struct handle *handle, unsigned kinds)
{
    library_lock();
    if (inits == 0) {
        library_unlock();
        return NVML_ERROR_UNINITIALIZED;
    }
    call->machine = call->change ? state_write() : state_read();
    if (!call->machine) {
        library_unlock();
        return NVML_ERROR_UNKNOWN;
    }
    call->locked = true;
    if (kinds == 0)
        return NVML_SUCCESS;
    if (!handle_is_known(handle))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!(handle->kind & kinds))
        return wrong_kind(call->machine, handle);
    call->handle = handle;
    return resolve(call);
}

static void leave(struct call *call)
{
    state_unlock();
    library_unlock();
    call->locked = false;
}

/* Begin, and meet the fault that was injected before the effect. A delay holds no lock, and the objects are looked up after it. */
static nvmlReturn_t begin(struct call *call, const struct handle *handle, unsigned kinds)
{
    nvmlReturn_t rc = enter(call, handle, kinds);
    if (!call->locked)
        return rc;
    const struct fault_hit *fault = &call->faults[FAULT_BEFORE];
    faults_meet(call->symbol, call->gpu ? (int)(call->gpu - call->machine->gpus) : ANY_GPU, call->mutating, call->faults);
    switch (fault->action) {
    case FAULT_CODE:
        return (nvmlReturn_t)fault->value;
    case FAULT_KILL:
        calllog_write(call, rc);
        fault_kill();
        return rc;
    case FAULT_DELAY:
        leave(call);
        fault_delay(fault->value);
        return enter(call, handle, kinds);
    default:
        return rc;
    }
}

nvmlReturn_t call_query(struct call *call, const char *symbol, const struct handle *handle, unsigned kinds)
{
    *call = (struct call){.symbol = symbol, .activation = -1};
    return begin(call, handle, kinds);
}

/* A caller without permission gets only a read lock: the state may be mapped read-only. */
nvmlReturn_t call_change(struct call *call, const char *symbol, const struct handle *handle, unsigned kinds)
{
    *call = (struct call){.symbol = symbol, .activation = -1, .mutating = true, .change = access_may_change()};
    nvmlReturn_t rc = begin(call, handle, kinds);
    if (rc == NVML_SUCCESS && !call->change)
        return NVML_ERROR_NO_PERMISSION;
    bool guest = call->gpu && call->gpu->virtualization == NVML_GPU_VIRTUALIZATION_MODE_VGPU;
    return rc == NVML_SUCCESS && guest ? NVML_ERROR_NOT_SUPPORTED : rc;
}

void call_arguments(struct call *call, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->arguments, sizeof call->arguments, format, arguments);
    va_end(arguments);
}

nvmlReturn_t call_finish(struct call *call, nvmlReturn_t rc)
{
    if (!call->locked)
        return rc;
    if (call->change && rc == NVML_SUCCESS) {
        capability_files_add(call->gpu);
        events_post_mig_changes(call->machine, state_valid());
        state_publish();
        capability_files_remove(call->gpu);
    }
    const struct fault_hit fault = call->faults[FAULT_AFTER];
    if (fault.action == FAULT_CODE)
        rc = (nvmlReturn_t)fault.value;
    if (call->mutating || call->machine->log_level == LOG_ALL || fault.id || call->faults[FAULT_BEFORE].id)
        calllog_write(call, rc);
    if (fault.action == FAULT_KILL)
        fault_kill();
    leave(call);
    if (fault.action == FAULT_DELAY)
        fault_delay(fault.value);
    return rc;
}

nvmlReturn_t copy_text(char *buffer, unsigned length, const char *text)
{
    if (!buffer)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return NVML_SUCCESS;
}
