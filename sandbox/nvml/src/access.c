/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Access by device nodes.
 */
#define _DEFAULT_SOURCE
#include "access.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CONFIG_MINOR = 1, MONITOR_MINOR = 2, FIRST_INSTANCE_MINOR = 3, MINORS_PER_GPU_INSTANCE = 9 };

/* 0 if the node can be opened, else an errno value. Without a kernel module behind the node the kernel answers ENXIO or ENODEV, after
 * the permission checks: that counts as opened. */
static int probe(const char *name, int flags)
{
    char path[PATH_LENGTH];
    const char *root = getenv("NVML_EMULATOR_DEV");
    snprintf(path, sizeof path, "%s/%s", root && *root ? root : "/dev", name);
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    return errno == ENXIO || errno == ENODEV ? 0 : errno;
}

static bool nodes_decide(void)
{
    const char *root = getenv("NVML_EMULATOR_DEV");
    return (root && *root) || !state_directory_is_given();
}

static bool capability(unsigned minor)
{
    char name[64];
    snprintf(name, sizeof name, "nvidia-caps/nvidia-cap%u", minor);
    return probe(name, O_RDONLY) == 0;
}

nvmlReturn_t access_control_node(void)
{
    if (!nodes_decide())
        return NVML_SUCCESS;
    switch (probe("nvidiactl", O_RDWR)) {
    case 0:
        return NVML_SUCCESS;
    case EPERM:
    case EACCES:
        return NVML_ERROR_OPERATING_SYSTEM;
    default:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
}

bool access_gpu(unsigned minor)
{
    char name[32];
    snprintf(name, sizeof name, "nvidia%u", minor);
    return !nodes_decide() || probe(name, O_RDWR) == 0;
}

bool access_all_instances(void)
{
    return !nodes_decide() || capability(CONFIG_MINOR) || capability(MONITOR_MINOR);
}

bool access_instance(unsigned minor, unsigned gpu_instance, int compute_instance)
{
    if (access_all_instances())
        return true;
    return capability(access_gpu_instance_minor(minor, gpu_instance))
        && (compute_instance < 0 || capability(access_compute_instance_minor(minor, gpu_instance, (unsigned)compute_instance)));
}

bool access_may_change(void)
{
    const char *given = getenv("NVML_EMULATOR_UID");
    long user = given && *given ? strtol(given, NULL, 10) : (long)geteuid();
    return user == 0 && state_is_writable() && (!nodes_decide() || capability(CONFIG_MINOR));
}

unsigned access_gpu_instance_minor(unsigned gpu_minor, unsigned gpu_instance)
{
    return FIRST_INSTANCE_MINOR + (gpu_minor * MAX_GPU_INSTANCES + gpu_instance) * MINORS_PER_GPU_INSTANCE;
}

unsigned access_compute_instance_minor(unsigned gpu_minor, unsigned gpu_instance, unsigned compute_instance)
{
    return access_gpu_instance_minor(gpu_minor, gpu_instance) + 1 + compute_instance;
}
