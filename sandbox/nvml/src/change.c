/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The frame of every change from outside of NVML.
 */
#include "change.h"
#include "call.h"
#include "capability.h"

nvmlReturn_t change_begin(struct change *change)
{
    nvmlReturn_t rc = NVML_SUCCESS;
    *change = (struct change){0};
    library_lock();
    if (!state_is_attached()) {
        rc = state_attach();
        change->attached = rc == NVML_SUCCESS;
    }
    if (rc == NVML_SUCCESS && !state_is_writable())
        rc = NVML_ERROR_NO_PERMISSION;
    if (rc == NVML_SUCCESS) {
        change->machine = state_write();
        rc = change->machine ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
    }
    return rc;
}

nvmlReturn_t change_begin_gpu(struct change *change, unsigned gpu)
{
    nvmlReturn_t rc = change_begin(change);
    if (rc != NVML_SUCCESS)
        return rc;
    if (gpu >= change->machine->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    change->gpu = &change->machine->gpus[gpu];
    change->model = model_find(change->gpu->model);
    return change->model ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

int change_finish(struct change *change, nvmlReturn_t rc)
{
    struct machine *machine = change->machine;
    for (unsigned i = 0; machine && rc == NVML_SUCCESS && i < machine->gpu_count; i++)
        capability_files_add(&machine->gpus[i]);
    if (machine && rc == NVML_SUCCESS) {
        events_post_mig_changes(machine, state_valid());
        state_publish();
    }
    for (unsigned i = 0; machine && rc == NVML_SUCCESS && i < machine->gpu_count; i++)
        capability_files_remove(&machine->gpus[i]);
    if (machine)
        state_unlock();
    if (change->attached)
        state_detach();
    library_unlock();
    return (int)rc;
}
