/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Posting of events.
 */
#include "events.h"
#include "state.h"

#include <string.h>

void event_post(struct machine *machine, struct event event)
{
    machine->events.events[machine->events.posted++ % MAX_EVENTS] = event;
}

void events_post_mig_changes(struct machine *changed, const struct machine *valid)
{
    for (unsigned i = 0; i < changed->gpu_count && i < valid->gpu_count; i++) {
        const struct gpu *now = &changed->gpus[i], *before = &valid->gpus[i];
        if (now->mig_current != before->mig_current || memcmp(now->instances, before->instances, sizeof now->instances) != 0)
            event_post(changed, (struct event){i, EVENT_MIG_CONFIG_CHANGE, 0, NVML_NO_INSTANCE, NVML_NO_INSTANCE});
    }
}
