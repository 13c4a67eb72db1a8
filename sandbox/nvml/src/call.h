/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The frame of every NVML call: initialisation check, lock, handle resolution, injected faults, permission, publication,
 * log.
 */
#ifndef CALL_H
#define CALL_H

#include "handles.h"
#include "state.h"

/* A call in progress. The pointers are valid between call_query or call_change and call_finish. */
struct call {
    const char *symbol;
    bool locked;
    bool mutating;                                /* the call is one that changes the machine: always logged */
    bool change;                                  /* and the caller may: the exclusive lock is held */
    struct machine *machine;
    const struct handle *handle;
    struct gpu *gpu;
    const struct model *model;
    struct gpu_instance *gpu_instance;            /* of GPU instance, compute instance and MIG handles */
    struct compute_instance *compute_instance;    /* of compute instance and MIG handles */
    struct fault_hit faults[FAULT_MOMENTS];       /* injected faults that the call meets */
    int activation;                               /* activation status for the log; negative: none */
    char arguments[160];                          /* JSON members for the log */
};

/* Begin a call that reads. `kinds` (a mask of enum handle_kind) says which handles it takes; 0: none. */
nvmlReturn_t call_query(struct call *call, const char *symbol, const struct handle *handle, unsigned kinds);
/* Begin a call that changes the machine; NO_PERMISSION unless the caller may, NOT_SUPPORTED in a vGPU guest. */
nvmlReturn_t call_change(struct call *call, const char *symbol, const struct handle *handle, unsigned kinds);
/* Note the arguments for the log, as JSON members: call_arguments(&call, "\"mode\": %u", mode). */
void call_arguments(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* End a call: publish the change if rc is SUCCESS, log it, unlock. Returns rc, or the code of a fault that was injected there. */
nvmlReturn_t call_finish(struct call *call, nvmlReturn_t rc);

/* Copy text into a caller's buffer. INVALID_ARGUMENT without buffer, INSUFFICIENT_SIZE if it does not fit. */
nvmlReturn_t copy_text(char *buffer, unsigned length, const char *text);

/* nvmlInit in the form that `symbol` names, and nvmlShutdown. */
nvmlReturn_t library_init(const char *symbol, unsigned flags);
nvmlReturn_t library_shutdown(const char *symbol);
/* Hold the library's mutex around work outside of a call. */
void library_lock(void);
void library_unlock(void);

/* Position of a GPU among those visible to this process, and back: the machine's number of the GPU at a visible index, or -1. */
unsigned visible_count(void);
int visible_gpu(unsigned index);
int visible_index(unsigned gpu);

#endif
