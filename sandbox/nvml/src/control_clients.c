/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Adding, removing and describing clients.
 */
#include "control_clients.h"
#include "change.h"
#include "control.h"

#include <string.h>

static struct client *free_client(struct machine *machine)
{
    for (unsigned i = 0; i < MAX_CLIENTS; i++)
        if (machine->clients[i].id == 0)
            return &machine->clients[i];
    return NULL;
}

/* The number of the creation of what the client uses; NOT_FOUND if that is not there. */
static nvmlReturn_t find_generation(const struct gpu *gpu, struct client *client)
{
    if (client->gpu_instance == NVML_NO_INSTANCE)
        return client->compute_instance == NVML_NO_INSTANCE ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    if (client->gpu_instance >= MAX_GPU_INSTANCES || !gpu->instances[client->gpu_instance].used)
        return NVML_ERROR_NOT_FOUND;
    const struct gpu_instance *instance = &gpu->instances[client->gpu_instance];
    client->generation = instance->generation;
    if (client->compute_instance == NVML_NO_INSTANCE)
        return NVML_SUCCESS;
    if (client->compute_instance >= MAX_COMPUTE_INSTANCES || !instance->compute[client->compute_instance].used)
        return NVML_ERROR_NOT_FOUND;
    client->generation = instance->compute[client->compute_instance].generation;
    return NVML_SUCCESS;
}

int nvmlEmulatorClientAdd(unsigned gpu, unsigned pid, int follow, unsigned kind, unsigned gpu_instance, unsigned compute_instance,
                          unsigned memory_mib, unsigned blocks, unsigned *id)
{
    struct change change;
    struct client client = {
        .gpu = gpu, .pid = pid, .kind = kind, .blocks = blocks, .gpu_instance = gpu_instance, .compute_instance = compute_instance,
        .memory_mib = memory_mib,
    };
    nvmlReturn_t rc = change_begin_gpu(&change, gpu);
    if (rc == NVML_SUCCESS && (kind >= CLIENT_KINDS || blocks > BLOCKS_ALL || (pid == 0 && kind != CLIENT_UNLISTED)))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && follow) {
        client.started = process_started(pid);
        client.pid_namespace = own_pid_namespace();
        rc = client.started ? NVML_SUCCESS : NVML_ERROR_NO_DATA;
    }
    if (rc == NVML_SUCCESS)
        rc = find_generation(change.gpu, &client);
    if (rc == NVML_SUCCESS) {
        struct client *entry = free_client(change.machine);
        if (entry)
            *id = client.id = ++change.machine->next_client;
        if (entry)
            *entry = client;
        rc = entry ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_RESOURCES;
    }
    return change_finish(&change, rc);
}

int nvmlEmulatorClientRemove(unsigned id)
{
    struct change change;
    nvmlReturn_t rc = change_begin(&change);
    bool found = id == 0;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < MAX_CLIENTS; i++)
        if (id == 0 || change.machine->clients[i].id == id) {
            change.machine->clients[i] = (struct client){0};
            found = true;
        }
    return change_finish(&change, rc == NVML_SUCCESS && !found ? NVML_ERROR_NOT_FOUND : rc);
}

nvmlReturn_t clients_hold(struct machine *machine, struct gpu *gpu, bool held)
{
    unsigned number = (unsigned)(gpu - machine->gpus);
    for (unsigned i = 0; i < MAX_CLIENTS; i++)
        if (machine->clients[i].id != 0 && machine->clients[i].gpu == number && machine->clients[i].pid == 0)
            machine->clients[i] = (struct client){0};
    struct client *entry = held ? free_client(machine) : NULL;
    if (held && !entry)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    if (held)
        *entry = (struct client){
            .id = ++machine->next_client, .gpu = number, .kind = CLIENT_UNLISTED, .blocks = BLOCKS_ALL,
            .gpu_instance = NVML_NO_INSTANCE, .compute_instance = NVML_NO_INSTANCE,
        };
    return NVML_SUCCESS;
}

static void add_number(struct text *text, const char *name, uint32_t number)
{
    if (number == NVML_NO_INSTANCE)
        text_add(text, ", \"%s\": null", name);
    else
        text_add(text, ", \"%s\": %u", name, number);
}

void clients_describe(const struct machine *machine, const struct gpu *gpu, struct text *text)
{
    static const char *const kinds[] = {"compute", "graphics", "mps", "unlisted"}, *const blocks[] = {"mode", "reset", "destroy", "create"};
    const struct client *client;
    text_add(text, "[");
    for (unsigned n = 0; (client = client_at(machine, gpu, n)) != NULL; n++) {
        text_add(text, "%s{\"id\": %u, \"pid\": %u, \"follow\": %s, \"kind\": \"%s\"", n ? ", " : "", client->id, client->pid,
                 client->started ? "true" : "false", kinds[client->kind]);
        add_number(text, "gpu_instance", client->gpu_instance);
        add_number(text, "compute_instance", client->compute_instance);
        text_add(text, ", \"memory_mib\": %u, \"blocks\": [", client->memory_mib);
        const char *separator = "";
        for (unsigned bit = 0; bit < 4; bit++)
            if (client->blocks & 1u << bit) {
                text_add(text, "%s\"%s\"", separator, blocks[bit]);
                separator = ", ";
            }
        text_add(text, "]}");
    }
    text_add(text, "]");
}
