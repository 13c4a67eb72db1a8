/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Which clients are there, and what they block.
 */
#include "clients.h"
#include "state.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

uint64_t process_started(uint32_t pid)
{
    char path[32], line[512];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return 0;
    size_t length = fread(line, 1, sizeof line - 1, stream);
    fclose(stream);
    line[length] = '\0';
    /* pid (name) state, then numbers; the name may hold anything. The start time is the 19th number after the state. */
    const char *rest = strrchr(line, ')');
    char state = 'Z';
    unsigned long long started = 0;
    if (!rest || sscanf(rest, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &state, &started) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : started;
}

uint64_t own_pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* In another namespace, as in a container, the pid says nothing: the client counts as alive. */
static bool process_is_there(const struct client *client)
{
    return client->started == 0 || client->pid_namespace != own_pid_namespace() || process_started(client->pid) == client->started;
}

static bool instance_is_there(const struct client *client, const struct gpu *gpu)
{
    if (client->gpu_instance == NVML_NO_INSTANCE)
        return true;
    const struct gpu_instance *instance = &gpu->instances[client->gpu_instance];
    if (client->compute_instance == NVML_NO_INSTANCE)
        return instance->used && instance->generation == client->generation;
    const struct compute_instance *compute = &instance->compute[client->compute_instance];
    return instance->used && compute->used && compute->generation == client->generation;
}

static bool uses(const struct client *client, const struct machine *machine, const struct gpu *gpu)
{
    return client->id != 0 && &machine->gpus[client->gpu] == gpu && instance_is_there(client, gpu) && process_is_there(client);
}

const struct client *client_at(const struct machine *machine, const struct gpu *gpu, unsigned n)
{
    for (unsigned i = 0; i < MAX_CLIENTS; i++)
        if (uses(&machine->clients[i], machine, gpu) && n-- == 0)
            return &machine->clients[i];
    return NULL;
}

bool clients_block(const struct machine *machine, const struct gpu *gpu, unsigned what)
{
    for (unsigned i = 0; i < MAX_CLIENTS; i++)
        if ((machine->clients[i].blocks & what) && uses(&machine->clients[i], machine, gpu))
            return true;
    return false;
}

bool clients_block_gpu_instance(const struct machine *machine, const struct gpu *gpu, unsigned gpu_instance)
{
    for (unsigned i = 0; i < MAX_CLIENTS; i++) {
        const struct client *client = &machine->clients[i];
        bool concerned = client->gpu_instance == gpu_instance || client->gpu_instance == NVML_NO_INSTANCE;
        if (concerned && (client->blocks & BLOCKS_DESTROY) && uses(client, machine, gpu))
            return true;
    }
    return false;
}

bool clients_block_compute_instance(const struct machine *machine, const struct gpu *gpu, unsigned gpu_instance, unsigned compute_instance)
{
    for (unsigned i = 0; i < MAX_CLIENTS; i++) {
        const struct client *client = &machine->clients[i];
        bool concerned = client->gpu_instance == gpu_instance && client->compute_instance == compute_instance;
        if (concerned && (client->blocks & BLOCKS_DESTROY) && uses(client, machine, gpu))
            return true;
    }
    return false;
}

unsigned clients_memory(const struct machine *machine, const struct gpu *gpu, unsigned gpu_instance)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < MAX_CLIENTS; i++) {
        const struct client *client = &machine->clients[i];
        if ((gpu_instance == NVML_NO_INSTANCE || client->gpu_instance == gpu_instance) && uses(client, machine, gpu))
            sum += client->memory_mib;
    }
    return sum;
}

void clients_after_boot(struct machine *machine)
{
    for (unsigned i = 0; i < MAX_CLIENTS; i++)
        if (machine->clients[i].pid != 0)
            machine->clients[i] = (struct client){0};
}
