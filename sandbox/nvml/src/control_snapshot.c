/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Saving the whole machine and going back to it, without its call log and its faults.
 */
#include "change.h"
#include "control.h"

#include <string.h>

/* What a snapshot holds. Private to one build of the library, as the state file is. */
struct snapshot {
    uint32_t magic, layout, size;
    struct machine machine;
};

unsigned nvmlEmulatorSnapshotSize(void)
{
    return (unsigned)sizeof(struct snapshot);
}

int nvmlEmulatorSave(void *data, unsigned size)
{
    struct change change;
    nvmlReturn_t rc = size == sizeof(struct snapshot) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t begun = change_begin(&change);
    if (begun == NVML_SUCCESS && rc == NVML_SUCCESS) {
        struct snapshot snapshot = {STATE_MAGIC, STATE_LAYOUT, (uint32_t)sizeof snapshot, *change.machine};
        memcpy(data, &snapshot, sizeof snapshot);
    }
    return change_finish(&change, begun == NVML_SUCCESS ? rc : begun);
}

/* Numbers of creations go on counting, so that no handle to an instance of the time in between becomes valid for another one. */
int nvmlEmulatorRestore(const void *data, unsigned size)
{
    struct change change;
    struct snapshot snapshot = {0};
    nvmlReturn_t rc = change_begin(&change);
    if (size == sizeof snapshot)
        memcpy(&snapshot, data, sizeof snapshot);
    if (rc == NVML_SUCCESS && (snapshot.magic != STATE_MAGIC || snapshot.layout != STATE_LAYOUT || snapshot.size != sizeof snapshot))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS) {
        uint32_t next_generation = change.machine->next_generation;
        *change.machine = snapshot.machine;
        if (change.machine->next_generation < next_generation)
            change.machine->next_generation = next_generation;
    }
    return change_finish(&change, rc);
}
