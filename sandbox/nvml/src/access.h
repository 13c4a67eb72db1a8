/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Who may see and change what, decided as the kernel does: by device nodes that exist and may be opened.
 *
 * Without NVML_EMULATOR_DEV and with NVML_EMULATOR_DIR (plain library use) nothing is checked but the user id.
 */
#ifndef ACCESS_H
#define ACCESS_H

#include "nvml_abi.h"

#include <stdbool.h>

/* Whether NVML can be used here at all: SUCCESS if nvidiactl can be opened. */
nvmlReturn_t access_control_node(void);
/* Whether the GPU with that device minor is there. */
bool access_gpu(unsigned minor);
/* Whether every MIG instance may be seen: the config or monitor capability can be opened. */
bool access_all_instances(void);
/* Whether that GPU instance, and compute instance if not negative, may be used: its capabilities can be opened. */
bool access_instance(unsigned minor, unsigned gpu_instance, int compute_instance);
/* Whether MIG and the GPU may be changed: root with the config capability and a writable state. NVML_EMULATOR_UID stands in for the
 * effective user id. */
bool access_may_change(void);

/* Minor of /dev/nvidia-caps/nvidia-cap<minor> for a GPU instance, or for one of its compute instances. The table is fixed: config 1,
 * monitor 2, then 15 GPU instances of 9 minors each per GPU. */
unsigned access_gpu_instance_minor(unsigned gpu_minor, unsigned gpu_instance);
unsigned access_compute_instance_minor(unsigned gpu_minor, unsigned gpu_instance, unsigned compute_instance);

#endif
