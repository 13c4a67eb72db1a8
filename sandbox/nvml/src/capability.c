/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Capability files of MIG instances.
 */
#define _DEFAULT_SOURCE
#include "capability.h"
#include "access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void capability_root(char *path, size_t size)
{
    const char *given = getenv("NVML_EMULATOR_PROC");
    if (given && *given)
        snprintf(path, size, "%s", given);
    else
        snprintf(path, size, "%s/../nvidia", state_directory());
}

/* The mig directory of the GPU, which nvmlctl boot makes; false where there is none. */
static bool mig_directory(const struct gpu *gpu, char *path, size_t size)
{
    char root[PATH_LENGTH - 64];
    struct stat status;
    capability_root(root, sizeof root);
    snprintf(path, size, "%s/capabilities/gpu%u/mig", root, gpu->minor);
    return stat(path, &status) == 0;
}

static void add_access_file(const char *directory, unsigned minor)
{
    char path[PATH_LENGTH + 16], temporary[PATH_LENGTH + 16];
    snprintf(path, sizeof path, "%s/access", directory);
    snprintf(temporary, sizeof temporary, "%s/.access", directory);
    if (access(path, F_OK) == 0 || (mkdir(directory, 0755) != 0 && errno != EEXIST))
        return;
    FILE *stream = fopen(temporary, "we");
    if (!stream)
        return;
    fprintf(stream, "DeviceFileMinor: %u\nDeviceFileMode: 292\nDeviceFileModify: 1\n", minor);
    if (fclose(stream) == 0 && chmod(temporary, 0444) == 0)
        rename(temporary, path);
}

static void remove_access_file(const char *directory)
{
    char path[PATH_LENGTH + 16];
    snprintf(path, sizeof path, "%s/access", directory);
    unlink(path);
    rmdir(directory);
}

void capability_files_add(const struct gpu *gpu)
{
    char mig[PATH_LENGTH], path[PATH_LENGTH];
    if (!mig_directory(gpu, mig, sizeof mig - 32))
        return;
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++) {
        if (!gpu->instances[gi].used)
            continue;
        snprintf(path, sizeof path, "%.470s/gi%u", mig, gi);
        add_access_file(path, access_gpu_instance_minor(gpu->minor, gi));
        for (unsigned ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
            if (!gpu->instances[gi].compute[ci].used)
                continue;
            snprintf(path, sizeof path, "%.470s/gi%u/ci%u", mig, gi, ci);
            add_access_file(path, access_compute_instance_minor(gpu->minor, gi, ci));
        }
    }
}

void capability_files_remove(const struct gpu *gpu)
{
    char mig[PATH_LENGTH], path[PATH_LENGTH];
    if (!mig_directory(gpu, mig, sizeof mig - 32))
        return;
    for (unsigned gi = 0; gi < MAX_GPU_INSTANCES; gi++) {
        const struct gpu_instance *instance = &gpu->instances[gi];
        for (unsigned ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
            snprintf(path, sizeof path, "%.470s/gi%u/ci%u", mig, gi, ci);
            if (!instance->used || !instance->compute[ci].used)
                remove_access_file(path);
        }
        snprintf(path, sizeof path, "%.470s/gi%u", mig, gi);
        if (!instance->used)
            remove_access_file(path);
    }
}
