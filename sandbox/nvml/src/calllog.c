/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Writing of the call log. Called with the state locked for a change, so lines of several processes do not mix; each line is
 * one write to a file opened for appending in any case.
 */
#define _GNU_SOURCE
#include "calllog.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LOG_BYTES = 16 << 20, LINE_LENGTH = 768 };

static int open_log(void)
{
    char path[PATH_LENGTH], old[PATH_LENGTH];
    struct stat status;
    state_path(path, sizeof path, "calls.jsonl");
    state_path(old, sizeof old, "calls.jsonl.1");
    if (stat(path, &status) == 0 && status.st_size >= MAX_LOG_BYTES)
        rename(path, old);
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

/* The process name as JSON text: everything that would need an escape becomes "?". */
static void process_name(char name[32])
{
    unsigned i = 0;
    for (; i < 31 && program_invocation_short_name[i]; i++) {
        char c = program_invocation_short_name[i];
        name[i] = c >= ' ' && c <= '~' && c != '"' && c != '\\' ? c : '?';
    }
    name[i] = '\0';
}

/* The injected fault that decided the call. One before the effect shadows one after it, unless it is a mere delay. */
static void add_fault(struct text *text, const struct call *call)
{
    static const char *const actions[] = {[FAULT_CODE] = "code", [FAULT_KILL] = "kill", [FAULT_DELAY] = "delay"};
    const struct fault_hit *before = &call->faults[FAULT_BEFORE], *after = &call->faults[FAULT_AFTER];
    bool late = before->action == FAULT_NONE || (before->action == FAULT_DELAY && after->action != FAULT_NONE);
    const struct fault_hit *fault = late ? after : before;
    if (fault->action != FAULT_NONE)
        text_add(text, ", \"fault\": {\"id\": %u, \"when\": \"%s\", \"action\": \"%s\"}", fault->id, late ? "after" : "before",
                 actions[fault->action]);
}

void calllog_write(const struct call *call, nvmlReturn_t rc)
{
    char line[LINE_LENGTH];
    struct text text = {line, sizeof line, 0};
    struct timespec now;
    char name[32];
    int fd = open_log();
    if (fd < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    process_name(name);
    text_add(&text, "{\"time\": %lld.%06ld, \"pid\": %d, \"comm\": \"%s\", \"symbol\": \"%s\"", (long long)now.tv_sec, now.tv_nsec / 1000,
           (int)getpid(), name, call->symbol);
    text_add(&text, ", \"mutating\": %s", call->mutating ? "true" : "false");
    if (call->gpu)
        text_add(&text, ", \"gpu\": \"%s\"", call->gpu->uuid);
    text_add(&text, ", \"args\": {%s}, \"rc\": %d", call->arguments, (int)rc);
    if (call->activation >= 0)
        text_add(&text, ", \"activation\": %d", call->activation);
    add_fault(&text, call);
    text_add(&text, "}\n");
    if (write(fd, text.data, text.length) < 0) {
        /* A full disk must not fail the call: the log is an aid, the state is the truth. */
    }
    close(fd);
}
