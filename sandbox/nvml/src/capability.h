/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Capability files: capabilities/gpuN/mig/giI/access and .../ciC/access below the module's /proc tree, which name the device minors.
 *
 * The tree is NVML_EMULATOR_PROC, else "nvidia" beside the emulator's directory; nothing is written where it does not exist. Files of
 * new instances are made before the state is published and files of gone ones removed after it, so a process killed in between
 * leaves at most files too many, which the next change of that GPU removes.
 */
#ifndef CAPABILITY_H
#define CAPABILITY_H

#include "state.h"

/* Root of the /proc tree into path. */
void capability_root(char *path, size_t size);
/* Make the files of all instances of the GPU. */
void capability_files_add(const struct gpu *gpu);
/* Remove the files of instances that the GPU does not have. */
void capability_files_remove(const struct gpu *gpu);

#endif
