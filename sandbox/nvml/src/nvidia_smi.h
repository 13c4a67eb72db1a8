/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * What the parts of nvidia-smi share: the library that it found, and the GPUs that the command line names.
 */
#ifndef NVIDIA_SMI_H
#define NVIDIA_SMI_H

#include "nvml_abi.h"

#include <stdbool.h>
#include <stdio.h>

enum { MAX_TARGETS = 16 };
/* Exit statuses. Real ones are NVML codes, but for a refused reset. */
enum { EXIT_USAGE = 2, EXIT_NOT_SUPPORTED = 3, EXIT_PERMISSION = 4, EXIT_NOT_FOUND = 6, EXIT_DRIVER = 9, EXIT_LIBRARY = 12,
       EXIT_RESET_REFUSED = 255 };

/* The GPUs that a command is about. */
struct targets {
    unsigned count;
    nvmlDevice_t gpus[MAX_TARGETS];
};

/* Function of the library; ends the program if it is not there. */
void *smi_function(const char *name);
/* Call a function of the library by name; only its arguments' types say what it takes. */
#define CALL(name, signature, ...) (((nvmlReturn_t(*) signature)smi_function(name))(__VA_ARGS__))

/* Load the library and initialise it; ends the program with NVIDIA's words if that fails. */
void smi_start(void);
/* The GPUs of a list of indices, UUIDs and PCI addresses, or all if it is NULL; ends the program if one is not there. */
struct targets smi_targets(const char *ids);
unsigned smi_index(nvmlDevice_t gpu);
const char *smi_pci_bus_id(nvmlDevice_t gpu, char text[32]);
/* What a function of the form (device, buffer, length) answers; empty if it fails. */
const char *smi_text(const char *function, nvmlDevice_t device, char text[96]);
const char *smi_error(nvmlReturn_t rc);

/* The commands; each returns the exit status. */
int smi_version(void);
int smi_list(const struct targets *targets);
int smi_table(const struct targets *targets);
int smi_report(const struct targets *targets);
int smi_query(const struct targets *targets, const char *fields, const char *format);
int smi_reset(const struct targets *targets);
int smi_mig(const struct targets *targets, const char *command);

#endif
