/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Rows of the GPUs with seven compute slices over eight memory slices (A100, H100, H200, GH200, B200, GB200), whose profiles differ only
 * in names, memory, SMs and engines.
 *
 * Ids, enums and instance limits: as `nvidia-smi mig -lgip` prints them on boards of all these models. Placements: as `-lgipp` prints them
 * on H100 80GB and H100 NVL, and as NVIDIA's MIG user guide has them for A100; the other GPUs with the GH100 chip are taken to have those
 * of H100. Memory slice 7 is reached only by 7g, by 3g at 4 and by the 1g with double memory at 6.
 */
#ifndef MODELS_SEVEN_H
#define MODELS_SEVEN_H

#include "models.h"
#include "nvml_abi.h"

/* Arguments: name, memory in MiB, SMs, {copy, decode, encode, JPEG, OFA engines}. */
#define ROW_1G(name, mib, sms, ...) {GI_1_SLICE, 19, name, 1, 7, mib, sms, __VA_ARGS__, 1, 7, {0, 1, 2, 3, 4, 5, 6}}
#define ROW_1G_ME(name, mib, sms, ...) {GI_1_SLICE_REV1, 20, name, 1, 1, mib, sms, __VA_ARGS__, 1, 7, {0, 1, 2, 3, 4, 5, 6}}
#define ROW_1G_DOUBLE(name, mib, sms, ...) {GI_1_SLICE_REV2, 15, name, 1, 4, mib, sms, __VA_ARGS__, 2, 4, {0, 2, 4, 6}}
#define ROW_2G(name, mib, sms, ...) {GI_2_SLICE, 14, name, 2, 3, mib, sms, __VA_ARGS__, 2, 3, {0, 2, 4}}
#define ROW_3G(name, mib, sms, ...) {GI_3_SLICE, 9, name, 3, 2, mib, sms, __VA_ARGS__, 4, 2, {0, 4}}
#define ROW_4G(name, mib, sms, ...) {GI_4_SLICE, 5, name, 4, 1, mib, sms, __VA_ARGS__, 4, 1, {0}}
#define ROW_7G(name, mib, sms, ...) {GI_7_SLICE, 0, name, 7, 1, mib, sms, __VA_ARGS__, 8, 1, {0}}

#define TABLE(table) .profiles = table, .profile_count = sizeof table / sizeof table[0]
/* Which half the driver numbers first differs from board to board, even between boards of one machine; this is one of the two orders. */
#define SEVEN_SLICES(table) .memory_slices = 8, .max_mig_devices = 7, .upper_half_first = true, TABLE(table)

#endif
