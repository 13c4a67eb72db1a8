/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Setting, listing and clearing of injected faults.
 */
#include "change.h"
#include "control.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

static bool is_symbol(const char *text)
{
    size_t length = text ? strspn(text, "*_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") : 0;
    return length > 0 && length < FAULT_SYMBOL_LENGTH && text[length] == '\0';
}

static bool is_sound(const char *symbol, unsigned calls, unsigned nth, unsigned action, unsigned value, unsigned moment)
{
    bool code_is_error = action != FAULT_CODE || value != NVML_SUCCESS;
    return is_symbol(symbol) && calls <= FAULT_READING_CALLS && nth > 0 && action > FAULT_NONE && action <= FAULT_DELAY
        && moment < FAULT_MOMENTS && code_is_error;
}

int nvmlEmulatorFaultAdd(const char *symbol, int gpu, unsigned calls, unsigned nth, unsigned times, unsigned action, unsigned value,
                         unsigned moment, unsigned *id)
{
    struct change change;
    nvmlReturn_t rc = gpu < 0 ? change_begin(&change) : change_begin_gpu(&change, (unsigned)gpu);
    if (rc == NVML_SUCCESS && !is_sound(symbol, calls, nth, action, value, moment))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc != NVML_SUCCESS)
        return change_finish(&change, rc);
    struct fault_table *table = state_faults();
    struct fault *free_entry = NULL;
    for (unsigned i = 0; i < MAX_FAULTS && !free_entry; i++)
        if (table->faults[i].id == 0)
            free_entry = &table->faults[i];
    if (!free_entry)
        return change_finish(&change, NVML_ERROR_INSUFFICIENT_RESOURCES);
    *free_entry = (struct fault){.gpu = gpu, .calls = calls, .nth = nth, .times = times, .action = action, .value = value, .moment = moment};
    snprintf(free_entry->symbol, sizeof free_entry->symbol, "%s", symbol);
    *id = free_entry->id = ++table->next_id;
    atomic_fetch_add(&table->count, 1);
    return change_finish(&change, NVML_SUCCESS);
}

int nvmlEmulatorFaultClear(void)
{
    struct change change;
    nvmlReturn_t rc = change_begin(&change);
    if (rc == NVML_SUCCESS) {
        memset(state_faults()->faults, 0, sizeof state_faults()->faults);
        atomic_store(&state_faults()->count, 0);
    }
    return change_finish(&change, rc);
}

static void add_fault(struct text *text, struct fault *fault)
{
    static const char *const calls[] = {"any", "mutating", "reading"}, *const moments[] = {"before", "after"};
    text_add(text, "{\"id\": %u, \"symbol\": \"%s\", \"gpu\": ", fault->id, fault->symbol);
    text_add(text, fault->gpu == ANY_GPU ? "null" : "%d", (int)fault->gpu);
    text_add(text, ", \"calls\": \"%s\", \"nth\": %u, \"times\": %u, \"when\": \"%s\"", calls[fault->calls], fault->nth, fault->times,
             moments[fault->moment]);
    if (fault->action == FAULT_CODE)
        text_add(text, ", \"action\": \"code\", \"code\": %u", fault->value);
    else if (fault->action == FAULT_DELAY)
        text_add(text, ", \"action\": \"delay\", \"milliseconds\": %u", fault->value);
    else
        text_add(text, ", \"action\": \"kill\"");
    text_add(text, ", \"seen\": %u, \"hits\": %u}", atomic_load(&fault->seen), atomic_load(&fault->hits));
}

int nvmlEmulatorFaultList(char *json, unsigned size)
{
    struct change change;
    struct text text = {json, size, 0};
    nvmlReturn_t rc = change_begin(&change);
    text_add(&text, "[");
    for (unsigned i = 0; rc == NVML_SUCCESS && i < MAX_FAULTS; i++)
        if (state_faults()->faults[i].id != 0) {
            text_add(&text, "%s", text.length > 1 ? ", " : "");
            add_fault(&text, &state_faults()->faults[i]);
        }
    text_add(&text, "]");
    if (rc == NVML_SUCCESS && !text_is_whole(&text))
        rc = NVML_ERROR_INSUFFICIENT_SIZE;
    return change_finish(&change, rc);
}
