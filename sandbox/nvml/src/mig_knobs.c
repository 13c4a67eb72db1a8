/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Knobs by name.
 */
#include "mig_knobs.h"
#include "nvml_abi.h"
#include "text.h"

#include <string.h>

static const struct {
    const char *name;
    size_t offset;
    uint32_t highest;
} table[] = {
    {"names", offsetof(struct mig_knobs, names), 1},
    {"known-enums", offsetof(struct mig_knobs, known_enums), GI_PROFILE_COUNT - 1},
    {"instance-counts", offsetof(struct mig_knobs, instance_counts), 1},
    {"profiles-need-mode", offsetof(struct mig_knobs, profiles_need_mode), 1},
    {"bad-version", offsetof(struct mig_knobs, bad_version), 1},
    {"parent-query", offsetof(struct mig_knobs, parent_query), 1},
    {"uuid-mode", offsetof(struct mig_knobs, uuid_mode), 1},
    {"nvl-compute", offsetof(struct mig_knobs, nvl_compute), 1},
};
enum { KNOBS = sizeof table / sizeof table[0] };

uint32_t *mig_knob(struct mig_knobs *knobs, const char *name, uint32_t *highest)
{
    for (unsigned i = 0; i < KNOBS; i++)
        if (strcmp(table[i].name, name) == 0) {
            *highest = table[i].highest;
            return (uint32_t *)((char *)knobs + table[i].offset);
        }
    return NULL;
}

void mig_knobs_describe(const struct mig_knobs *knobs, struct text *text)
{
    text_add(text, "{");
    for (unsigned i = 0; i < KNOBS; i++)
        text_add(text, "%s\"%s\": %u", i ? ", " : "", table[i].name, *(const uint32_t *)((const char *)knobs + table[i].offset));
    text_add(text, "}");
}
