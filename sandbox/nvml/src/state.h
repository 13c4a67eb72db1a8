/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The machine: what the kernel module would know, in one file that all processes map.
 *
 * The file holds two copies of the machine ("banks"). A change is written into the spare bank and becomes valid by one store of the
 * active bank's number, so a process killed at any point leaves either the old machine or the new one. Injected faults lie beside the
 * banks.
 */
#ifndef STATE_H
#define STATE_H

#include "clients.h"
#include "events.h"
#include "faults.h"
#include "health.h"
#include "mig_knobs.h"
#include "models.h"
#include "nvml_abi.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    MAX_GPUS = 16,
    MAX_GPU_INSTANCES = 15,       /* ids: full 0, half 1-2, quarter 3-6, eighth 7-14 */
    MAX_COMPUTE_INSTANCES = 8,
    STATE_LAYOUT = 2,
    PATH_LENGTH = 512,
};
#define STATE_MAGIC 0x4c4d564eu    /* "NVML" */

/* Which calls the log keeps. */
enum { LOG_CHANGES = 0, LOG_ALL = 1 };
/* How nvmlDeviceSetMigMode tells that the GPU is in use: by the activation status, or by its return code. Real drivers are not known
 * to do only one of them. */
enum { IN_USE_BY_ACTIVATION = 0, IN_USE_BY_RETURN = 1 };
#define NVLINK_SWITCH 0xffffffffu

struct compute_instance {
    uint32_t used;
    uint32_t generation;          /* unique per creation on this machine */
    uint32_t profile;             /* NVML_COMPUTE_INSTANCE_PROFILE_*; equals the numeric id */
    uint32_t start, size;         /* compute slices within the GPU instance */
    uint32_t mig_index;           /* index of its MIG device under the GPU */
    uint32_t uuid_salt;           /* hashed into the UUID of its MIG device; 0: none */
};

struct gpu_instance {
    uint32_t used;
    uint32_t generation;
    uint32_t profile_id;
    uint32_t start, size;         /* memory slices */
    struct compute_instance compute[MAX_COMPUTE_INSTANCES];    /* by compute instance id */
};

struct gpu {
    char model[40];
    char uuid[48];
    char serial[24];
    uint32_t minor;
    uint32_t pci_bus;             /* domain 0, device 0, function 0 */
    uint32_t persistence_mode;
    uint32_t mig_current, mig_pending;
    uint32_t lost;                /* fallen off the bus: every call fails with GPU_IS_LOST */
    uint32_t not_ready;           /* every call fails with NOT_READY */
    uint32_t virtualization;      /* NVML_GPU_VIRTUALIZATION_MODE_*; in a vGPU guest nothing can be changed */
    uint32_t reset_refused;       /* the GPU cannot be reset from here, as in a virtual machine */
    uint32_t in_use_form;         /* IN_USE_BY_* */
    uint32_t activation;          /* status of the next changes of MIG mode, which then do not take effect; 0: they do */
    uint32_t nvlink_group;        /* GPUs of one group are linked with each other; 0: no NVLink, NVLINK_SWITCH: all through switches */
    uint32_t nvlink_reset_group;  /* linked GPUs must be reset together */
    struct health health;
    struct mig_knobs knobs;
    struct gpu_instance instances[MAX_GPU_INSTANCES];          /* by GPU instance id */
};

struct machine {
    char module_version[32];      /* of the loaded kernel module */
    uint32_t gpu_count;
    uint32_t next_generation;
    uint32_t log_level;           /* LOG_* */
    uint32_t boots;               /* how often the module was loaded */
    uint32_t next_client;
    struct gpu gpus[MAX_GPUS];
    struct client clients[MAX_CLIENTS];
    struct events events;
};

struct state_file {
    uint32_t magic, layout;
    uint32_t size, bank_size;     /* of the file, of a bank */
    _Atomic uint32_t active;      /* number of the valid bank */
    _Atomic uint32_t changes;     /* counts publications; who waits for one sleeps on this word */
    struct machine banks[2];
    struct fault_table faults;
};

/* The emulator's directory: NVML_EMULATOR_DIR, else /proc/driver/nvml-emulator. */
const char *state_directory(void);
/* Whether NVML_EMULATOR_DIR names the directory (plain library use, outside of an emulated host). */
bool state_directory_is_given(void);
/* "directory/name" into path. */
void state_path(char *path, size_t size, const char *name);

/* Map the state file. DRIVER_NOT_LOADED without one, LIB_RM_VERSION_MISMATCH if it has another layout. */
nvmlReturn_t state_attach(void);
bool state_is_attached(void);
void state_detach(void);
/* Whether this process may write the state. */
bool state_is_writable(void);

/* Lock for reading; the machine is valid until state_unlock. NULL if the lock cannot be had. */
struct machine *state_read(void);
/* Lock for writing; a copy of the machine to change. */
struct machine *state_write(void);
/* The injected faults; valid while attached. */
struct fault_table *state_faults(void);
/* The valid machine while a changed copy is prepared. */
const struct machine *state_valid(void);
/* Make the changed copy the machine, and wake who waits for a change. */
void state_publish(void);
/* What to sleep on until the next change; taken under a lock, waited for without. */
struct state_watch {
    _Atomic uint32_t *changes;
    uint32_t seen;
};
struct state_watch state_watch(void);
void state_watch_wait(const struct state_watch *watch, unsigned milliseconds);
void state_unlock(void);

/* Write a new state file with that machine, in one step. 0, or an errno value. */
int state_create(const struct machine *machine);

#endif
