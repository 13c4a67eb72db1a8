/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The call log: one JSON object per line in calls.jsonl of the emulator's directory.
 */
#ifndef CALLLOG_H
#define CALLLOG_H

#include "call.h"

/* Append the call with its result. At 16 MiB the log becomes calls.jsonl.1, replacing an older one. */
void calllog_write(const struct call *call, nvmlReturn_t rc);

#endif
