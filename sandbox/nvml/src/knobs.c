/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The table of knobs.
 */
#include "knobs.h"

#include <string.h>

#define ANY UINT32_MAX

static const struct {
    const char *name;
    size_t offset;
    uint32_t highest;
} table[] = {
    {"lost", offsetof(struct gpu, lost), 1},
    {"not-ready", offsetof(struct gpu, not_ready), 1},
    {"persistence", offsetof(struct gpu, persistence_mode), 1},
    {"virtualization", offsetof(struct gpu, virtualization), 4},
    {"reset-refused", offsetof(struct gpu, reset_refused), 1},
    {"in-use-form", offsetof(struct gpu, in_use_form), IN_USE_BY_RETURN},
    {"activation", offsetof(struct gpu, activation), ANY},
    {"nvlink", offsetof(struct gpu, nvlink_group), ANY},
    {"nvlink-reset", offsetof(struct gpu, nvlink_reset_group), 1},
    {"ecc", offsetof(struct gpu, health.ecc_off), 1},
    {"ecc-pending", offsetof(struct gpu, health.ecc_off_pending), 1},
    {"dram-corrected-volatile", offsetof(struct gpu, health.dram_corrected[ECC_VOLATILE]), ANY},
    {"dram-corrected-aggregate", offsetof(struct gpu, health.dram_corrected[ECC_AGGREGATE]), ANY},
    {"dram-uncorrected-volatile", offsetof(struct gpu, health.dram_uncorrected[ECC_VOLATILE]), ANY},
    {"dram-uncorrected-aggregate", offsetof(struct gpu, health.dram_uncorrected[ECC_AGGREGATE]), ANY},
    {"sram-corrected-volatile", offsetof(struct gpu, health.sram_corrected[ECC_VOLATILE]), ANY},
    {"sram-corrected-aggregate", offsetof(struct gpu, health.sram_corrected[ECC_AGGREGATE]), ANY},
    {"sram-uncorrected-volatile", offsetof(struct gpu, health.sram_uncorrected[ECC_VOLATILE]), ANY},
    {"sram-uncorrected-aggregate", offsetof(struct gpu, health.sram_uncorrected[ECC_AGGREGATE]), ANY},
    {"sram-threshold", offsetof(struct gpu, health.sram_threshold_exceeded), 1},
    {"remap-correctable", offsetof(struct gpu, health.remap_correctable), ANY},
    {"remap-uncorrectable", offsetof(struct gpu, health.remap_uncorrectable), ANY},
    {"remap-pending", offsetof(struct gpu, health.remap_pending), 1},
    {"remap-failed", offsetof(struct gpu, health.remap_failed), 1},
    {"banks-high", offsetof(struct gpu, health.banks_high), ANY},
    {"banks-partial", offsetof(struct gpu, health.banks_partial), ANY},
    {"banks-low", offsetof(struct gpu, health.banks_low), ANY},
    {"banks-none", offsetof(struct gpu, health.banks_none), ANY},
    {"channel-repair-pending", offsetof(struct gpu, health.channel_repair_pending), 1},
    {"tpc-repair-pending", offsetof(struct gpu, health.tpc_repair_pending), 1},
    {"recovery-action", offsetof(struct gpu, health.recovery_action), ANY},
    {"clock-reasons", offsetof(struct gpu, health.clock_event_reasons), ANY},
    {"fabric-state", offsetof(struct gpu, health.fabric_state), FABRIC_COMPLETED},
    {"fabric-status", offsetof(struct gpu, health.fabric_status), ANY},
    {"fabric-health-mask", offsetof(struct gpu, health.fabric_health_mask), ANY},
    {"fabric-summary", offsetof(struct gpu, health.fabric_summary), 255},
    {"fabric-clique", offsetof(struct gpu, health.fabric_clique), ANY},
};
enum { KNOBS = sizeof table / sizeof table[0] };

static uint32_t *field(struct gpu *gpu, unsigned index)
{
    return (uint32_t *)((char *)gpu + table[index].offset);
}

uint32_t *knob_find(struct gpu *gpu, const char *name, uint32_t *highest)
{
    for (unsigned i = 0; i < KNOBS; i++)
        if (strcmp(table[i].name, name) == 0) {
            *highest = table[i].highest;
            return field(gpu, i);
        }
    return mig_knob(&gpu->knobs, name, highest);
}

void knobs_describe(struct gpu *gpu, struct text *text)
{
    text_add(text, "{");
    for (unsigned i = 0; i < KNOBS; i++)
        text_add(text, "%s\"%s\": %u", i ? ", " : "", table[i].name, *field(gpu, i));
    text_add(text, "}");
}
