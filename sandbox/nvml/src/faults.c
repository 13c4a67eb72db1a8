/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Matching of calls with injected faults.
 */
#define _POSIX_C_SOURCE 200809L
#include "faults.h"
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Length of a symbol without its version: "nvmlDeviceGetCount_v2" -> that of "nvmlDeviceGetCount". */
static size_t unversioned_length(const char *symbol)
{
    const char *suffix = strrchr(symbol, '_');
    return suffix && suffix[1] == 'v' && isdigit((unsigned char)suffix[2]) ? (size_t)(suffix - symbol) : strlen(symbol);
}

static bool names(const char *pattern, const char *symbol)
{
    return strcmp(pattern, "*") == 0 || strcmp(pattern, symbol) == 0
        || (strlen(pattern) == unversioned_length(symbol) && strncmp(pattern, symbol, strlen(pattern)) == 0);
}

static bool matches(const struct fault *fault, const char *symbol, int gpu, bool changing)
{
    return fault->id != 0 && (fault->gpu == ANY_GPU || fault->gpu == gpu)
        && (fault->calls == FAULT_ANY_CALL || (fault->calls == FAULT_CHANGING_CALLS) == changing) && names(fault->symbol, symbol);
}

void faults_meet(const char *symbol, int gpu, bool changing, struct fault_hit hits[FAULT_MOMENTS])
{
    struct fault_table *table = state_faults();
    if (atomic_load_explicit(&table->count, memory_order_relaxed) == 0 || !state_is_writable())
        return;
    for (unsigned i = 0; i < MAX_FAULTS; i++) {
        struct fault *fault = &table->faults[i];
        if (!matches(fault, symbol, gpu, changing))
            continue;
        uint32_t number = atomic_fetch_add(&fault->seen, 1) + 1;
        if (number < fault->nth || (fault->times != 0 && number - fault->nth >= fault->times))
            continue;
        atomic_fetch_add(&fault->hits, 1);
        if (hits[fault->moment].action == FAULT_NONE)
            hits[fault->moment] = (struct fault_hit){fault->id, fault->action, fault->value};
    }
}

void fault_kill(void)
{
    kill(getpid(), SIGKILL);
    /* The signal is delivered to this process, not necessarily to this thread first. */
    for (;;)
        pause();
}

void fault_delay(uint32_t milliseconds)
{
    struct timespec left = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
