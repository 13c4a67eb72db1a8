/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * What happens to a machine from outside of NVML: it is made, booted, reset, repartitioned behind everyone's back.
 *
 * nvmlctl calls these. They go by the directory that NVML_EMULATOR_DIR names, check no device nodes, and return 0 or an NVML code;
 * file errors of nvmlEmulatorCreate come as -errno.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include "nvml_abi.h"

/* Version of the driver that this library emulates. */
NVML_EXPORT const char *nvmlEmulatorDriverVersion(void);
/* Description of the index-th model as JSON; NOT_FOUND past the last, INSUFFICIENT_SIZE if the buffer is too small. */
NVML_EXPORT int nvmlEmulatorModel(unsigned index, char *json, unsigned size);
/* The whole machine as JSON. */
NVML_EXPORT int nvmlEmulatorShow(char *json, unsigned size);
/* A new machine with GPUs of those models. UUIDs and serials follow from the seed; minors NULL: the indices. NOT_FOUND for an unknown
 * model, INVALID_ARGUMENT for more GPUs than a machine holds. */
NVML_EXPORT int nvmlEmulatorCreate(const char *seed, unsigned count, const char *const *models, const unsigned *minors);
/* The kernel module of this driver version is loaded anew: at boot, or by hand. */
NVML_EXPORT int nvmlEmulatorLoadModule(const char *version);    /* NULL: the library's own */
/* Reset one GPU; IN_USE while a client blocks it, RESET_REQUIRED where resets are refused, RESET_TYPE_NOT_SUPPORTED if linked GPUs
 * must be reset with it. */
NVML_EXPORT int nvmlEmulatorResetGpu(unsigned gpu);
/* Set MIG mode at once; turning it off wipes the instances. */
NVML_EXPORT int nvmlEmulatorSetMode(unsigned gpu, unsigned mode);
/* Turn MIG on and replace all instances by those profiles, each with a whole compute instance; start -1: the driver's choice.
 * INVALID_ARGUMENT for an unknown profile, INSUFFICIENT_RESOURCES if one does not fit; then nothing is changed. */
NVML_EXPORT int nvmlEmulatorRepartition(unsigned gpu, unsigned count, const char *const *profiles, const int *starts);
/* Destroy a GPU instance with all that is in it. */
NVML_EXPORT int nvmlEmulatorDestroyInstance(unsigned gpu, unsigned gpu_instance);
/* Set a knob of a GPU (knobs.c, mig_knobs.c), "held" (a client without pid that blocks everything) or "log" of the machine. NOT_FOUND
 * for an unknown one, NOT_SUPPORTED for one that the model cannot have. */
NVML_EXPORT int nvmlEmulatorSetKnob(unsigned gpu, const char *knob, unsigned value);
/* Post an XID event; instances NVML_NO_INSTANCE: of the whole GPU. */
NVML_EXPORT int nvmlEmulatorXid(unsigned gpu, unsigned number, unsigned gpu_instance, unsigned compute_instance);
/* Add a client (clients.h says what the numbers mean); its id into *id. NOT_FOUND if the instance is not there, NO_DATA if the process
 * to follow is not, INSUFFICIENT_RESOURCES if there are too many. */
NVML_EXPORT int nvmlEmulatorClientAdd(unsigned gpu, unsigned pid, int follow, unsigned kind, unsigned gpu_instance,
                                      unsigned compute_instance, unsigned memory_mib, unsigned blocks, unsigned *id);
/* Remove the client with that id; 0: all. NOT_FOUND if there is none. */
NVML_EXPORT int nvmlEmulatorClientRemove(unsigned id);
/* Inject a fault (faults.h says what the numbers mean); its id into *id. INSUFFICIENT_RESOURCES if there are too many,
 * INVALID_ARGUMENT for a fault that makes no sense. Calls are counted from now on. */
NVML_EXPORT int nvmlEmulatorFaultAdd(const char *symbol, int gpu, unsigned calls, unsigned nth, unsigned times, unsigned action,
                                     unsigned value, unsigned moment, unsigned *id);
NVML_EXPORT int nvmlEmulatorFaultClear(void);
/* The faults with what they saw and hit, as JSON. */
NVML_EXPORT int nvmlEmulatorFaultList(char *json, unsigned size);
/* Copy the machine out, into a buffer of exactly that size, and make it the machine again. INVALID_ARGUMENT for a snapshot of another
 * build. */
NVML_EXPORT unsigned nvmlEmulatorSnapshotSize(void);
NVML_EXPORT int nvmlEmulatorSave(void *data, unsigned size);
NVML_EXPORT int nvmlEmulatorRestore(const void *data, unsigned size);
/* Minors of the capability devices. */
NVML_EXPORT unsigned nvmlEmulatorGpuInstanceMinor(unsigned gpu_minor, unsigned gpu_instance);
NVML_EXPORT unsigned nvmlEmulatorComputeInstanceMinor(unsigned gpu_minor, unsigned gpu_instance, unsigned compute_instance);

#endif
