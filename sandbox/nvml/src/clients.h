/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Clients: processes that use a GPU, a GPU instance or a compute instance, and what they stand in the way of.
 */
#ifndef CLIENTS_H
#define CLIENTS_H

#include "nvml_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct machine;

enum { MAX_CLIENTS = 64 };
/* Which of NVML's process lists names the client; unlisted ones (monitoring agents, say) are in none. */
enum client_kind { CLIENT_COMPUTE = 0, CLIENT_GRAPHICS, CLIENT_MPS, CLIENT_UNLISTED, CLIENT_KINDS };
/* What a client may block: a change of MIG mode, a reset, the destruction of what it uses, the creation of the first GPU instance. */
enum { BLOCKS_MODE = 1, BLOCKS_RESET = 2, BLOCKS_DESTROY = 4, BLOCKS_CREATE = 8, BLOCKS_ALL = 15 };

struct client {
    uint32_t id;                  /* 0: no client */
    uint32_t gpu;
    uint32_t pid;                 /* 0: none, such a client is there again after a boot */
    uint32_t kind, blocks;
    uint32_t gpu_instance, compute_instance;    /* NVML_NO_INSTANCE: it uses the whole GPU, or the whole GPU instance */
    uint32_t generation;          /* of the instance that it uses; the client ends with it */
    uint32_t memory_mib;
    uint64_t started;             /* start time of its process, if it ends with that process; else 0 */
    uint64_t pid_namespace;       /* where the pid counts */
};

/* The n-th client that uses the GPU now; NULL past the last. */
const struct client *client_at(const struct machine *machine, const struct gpu *gpu, unsigned n);
/* Whether a client of the GPU, or of an instance of it, blocks that (BLOCKS_MODE, BLOCKS_RESET, BLOCKS_CREATE). */
bool clients_block(const struct machine *machine, const struct gpu *gpu, unsigned what);
/* Whether a client blocks the destruction of that GPU instance or compute instance. A client blocks just what it uses: a GPU instance is
 * blocked by clients of it and of the whole GPU, a compute instance by its own. */
bool clients_block_gpu_instance(const struct machine *machine, const struct gpu *gpu, unsigned gpu_instance);
bool clients_block_compute_instance(const struct machine *machine, const struct gpu *gpu, unsigned gpu_instance, unsigned compute_instance);
/* Memory in MiB that clients use of the GPU, or of one GPU instance unless it is NVML_NO_INSTANCE. */
unsigned clients_memory(const struct machine *machine, const struct gpu *gpu, unsigned gpu_instance);

/* Start time of a process in clock ticks since boot, 0 if there is no such process (or only its zombie); the namespace of our pids. */
uint64_t process_started(uint32_t pid);
uint64_t own_pid_namespace(void);
/* All processes end, as at a boot; the clients without pid stay. */
void clients_after_boot(struct machine *machine);

#endif
