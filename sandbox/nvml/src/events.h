/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Events of the machine's GPUs. The last ones lie in the machine; an event set sees those that came after its registration.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdint.h>

struct machine;
struct gpu;

enum { MAX_EVENTS = 64 };
enum { EVENT_SINGLE_BIT_ECC = 0x1, EVENT_DOUBLE_BIT_ECC = 0x2, EVENT_XID = 0x8, EVENT_MIG_CONFIG_CHANGE = 0x100 };
#define SUPPORTED_EVENTS (EVENT_SINGLE_BIT_ECC | EVENT_DOUBLE_BIT_ECC | EVENT_XID | EVENT_MIG_CONFIG_CHANGE)

struct event {
    uint32_t gpu;
    uint32_t type;                                /* one EVENT_* */
    uint64_t data;                                /* of an XID: its number */
    uint32_t gpu_instance, compute_instance;      /* NVML_NO_INSTANCE: the whole GPU */
};

struct events {
    uint64_t posted;                              /* number of the next event; events[n % MAX_EVENTS] is the n-th */
    struct event events[MAX_EVENTS];
};

void event_post(struct machine *machine, struct event event);
/* Post MIG_CONFIG_CHANGE for every GPU whose mode or instances are not those of the valid machine. */
void events_post_mig_changes(struct machine *changed, const struct machine *valid);

#endif
