/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The table of handles. Called with the library's mutex held.
 */
#include "handles.h"

#include <stdlib.h>

struct entry {
    struct handle handle;
    struct entry *next;
};

static struct entry *entries;

struct handle *handle_for(struct handle content)
{
    for (struct entry *entry = entries; entry; entry = entry->next) {
        const struct handle *handle = &entry->handle;
        if (handle->kind == content.kind && handle->gpu == content.gpu && handle->gpu_instance == content.gpu_instance
            && handle->compute_instance == content.compute_instance && handle->generation == content.generation)
            return &entry->handle;
    }
    struct entry *entry = malloc(sizeof *entry);
    if (!entry)
        return NULL;
    *entry = (struct entry){content, entries};
    entries = entry;
    return &entry->handle;
}

bool handle_is_known(const struct handle *handle)
{
    for (const struct entry *entry = entries; entry; entry = entry->next)
        if (&entry->handle == handle)
            return true;
    return false;
}

__attribute__((destructor)) static void free_entries(void)
{
    while (entries) {
        struct entry *next = entries->next;
        free(entries);
        entries = next;
    }
}
