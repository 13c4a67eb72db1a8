/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The state file: mapping, lock, two banks, faults.
 */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct state_file *file;
static int descriptor = -1;
static bool writable;
static pid_t owner;    /* the process that opened the descriptor: flock is shared with forked children, who need their own */

const char *state_directory(void)
{
    const char *given = getenv("NVML_EMULATOR_DIR");
    return given && *given ? given : "/proc/driver/nvml-emulator";
}

bool state_directory_is_given(void)
{
    const char *given = getenv("NVML_EMULATOR_DIR");
    return given && *given;
}

void state_path(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", state_directory(), name);
}

static nvmlReturn_t open_file(void)
{
    char path[PATH_LENGTH];
    state_path(path, sizeof path, "state");
    writable = true;
    descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
        writable = false;
        descriptor = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (descriptor < 0)
        return errno == EACCES || errno == EPERM ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_DRIVER_NOT_LOADED;
    owner = getpid();
    return NVML_SUCCESS;
}

static bool layout_is_ours(void)
{
    return file->magic == STATE_MAGIC && file->layout == STATE_LAYOUT && file->size == sizeof *file
        && file->bank_size == sizeof file->banks[0] && file->active < 2
        && file->banks[file->active].gpu_count <= MAX_GPUS;
}

nvmlReturn_t state_attach(void)
{
    nvmlReturn_t rc = open_file();
    if (rc != NVML_SUCCESS)
        return rc;
    struct stat status;
    if (fstat(descriptor, &status) != 0 || status.st_size != (off_t)sizeof *file) {
        state_detach();
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    }
    void *map = mmap(NULL, sizeof *file, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor, 0);
    if (map == MAP_FAILED) {
        state_detach();
        return NVML_ERROR_MEMORY;
    }
    file = map;
    if (!layout_is_ours()) {
        state_detach();
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    }
    return NVML_SUCCESS;
}

void state_detach(void)
{
    if (file)
        munmap(file, sizeof *file);
    if (descriptor >= 0)
        close(descriptor);
    file = NULL;
    descriptor = -1;
}

bool state_is_writable(void)
{
    return writable;
}

bool state_is_attached(void)
{
    return file != NULL;
}

static bool lock(int operation)
{
    if (owner != getpid()) {
        close(descriptor);
        if (open_file() != NVML_SUCCESS)
            return false;
    }
    int rc;
    do
        rc = flock(descriptor, operation);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

struct machine *state_read(void)
{
    return lock(LOCK_SH) ? &file->banks[file->active] : NULL;
}

struct machine *state_write(void)
{
    if (!lock(LOCK_EX))
        return NULL;
    struct machine *spare = &file->banks[1 - file->active];
    memcpy(spare, &file->banks[file->active], sizeof *spare);
    return spare;
}

struct fault_table *state_faults(void)
{
    return &file->faults;
}

const struct machine *state_valid(void)
{
    return &file->banks[file->active];
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

struct state_watch state_watch(void)
{
    return (struct state_watch){&file->changes, atomic_load(&file->changes)};
}

/* The file may have been unmapped meanwhile by another thread: then the kernel answers EFAULT at once. */
void state_watch_wait(const struct state_watch *watch, unsigned milliseconds)
{
    struct timespec timeout = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    futex(watch->changes, FUTEX_WAIT, watch->seen, &timeout);
}

void state_publish(void)
{
    atomic_store_explicit(&file->active, 1 - file->active, memory_order_release);
    atomic_fetch_add(&file->changes, 1);
    futex(&file->changes, FUTEX_WAKE, INT_MAX, NULL);
}

void state_unlock(void)
{
    flock(descriptor, LOCK_UN);
}

static bool write_all(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = write(fd, (const char *)data + done, size - done);
        if (count < 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

int state_create(const struct machine *machine)
{
    char path[PATH_LENGTH], temporary[PATH_LENGTH];
    state_path(path, sizeof path, "state");
    snprintf(temporary, sizeof temporary, "%s/state.new.%d", state_directory(), (int)getpid());
    struct state_file *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return ENOMEM;
    fresh->magic = STATE_MAGIC;
    fresh->layout = STATE_LAYOUT;
    fresh->size = sizeof *fresh;
    fresh->bank_size = sizeof fresh->banks[0];
    fresh->banks[0] = *machine;
    int rc = 0, fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || !write_all(fd, fresh, sizeof *fresh) || fchmod(fd, 0644) != 0 || rename(temporary, path) != 0)
        rc = errno;
    if (fd >= 0)
        close(fd);
    if (rc != 0)
        unlink(temporary);
    free(fresh);
    return rc;
}
