/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Injected faults: the Nth call that matches fails, kills its caller, or is slow.
 *
 * The table lies in the state file outside of the two banks, so that calls which only read can count too: its numbers are atomic, its
 * entries change only under the exclusive lock. It outlasts module loads and restores of the machine.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAX_FAULTS = 16, FAULT_SYMBOL_LENGTH = 72, ANY_GPU = -1 };

enum fault_action { FAULT_NONE = 0, FAULT_CODE, FAULT_KILL, FAULT_DELAY };
/* before: the call has no effect. after: it took effect, and then comes the fault. */
enum fault_moment { FAULT_BEFORE = 0, FAULT_AFTER, FAULT_MOMENTS };
enum fault_calls { FAULT_ANY_CALL = 0, FAULT_CHANGING_CALLS, FAULT_READING_CALLS };

struct fault {
    uint32_t id;                  /* 0: no fault */
    char symbol[FAULT_SYMBOL_LENGTH];    /* "*": any; without version suffix: all versions of the function */
    int32_t gpu;                  /* the machine's number of it, or ANY_GPU */
    uint32_t calls;               /* enum fault_calls */
    uint32_t nth, times;          /* the nth matching call and the times - 1 after it; times 0: all after it */
    uint32_t action;              /* enum fault_action */
    uint32_t value;               /* FAULT_CODE: NVML return code, FAULT_DELAY: milliseconds */
    uint32_t moment;              /* enum fault_moment */
    _Atomic uint32_t seen, hits;  /* calls that matched, calls that were hit */
};

struct fault_table {
    _Atomic uint32_t count;
    uint32_t next_id;
    struct fault faults[MAX_FAULTS];
};

/* What a call meets at one moment. */
struct fault_hit {
    uint32_t id;
    enum fault_action action;
    uint32_t value;
};

/* Count a call against all faults; says what it meets before and after. `gpu` is negative for a call on no GPU. A process that may not
 * write the state cannot count, and meets none. */
void faults_meet(const char *symbol, int gpu, bool changing, struct fault_hit hits[FAULT_MOMENTS]);
/* End this process as SIGKILL does. */
void fault_kill(void);
/* Sleep that long. */
void fault_delay(uint32_t milliseconds);

#endif
