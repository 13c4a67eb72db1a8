/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Initialisation, versions, error texts.
 */
#include "call.h"

#include <stdlib.h>

#define CUDA_DRIVER_VERSION 13020    /* CUDA 13.2, which the R595 drivers support */
#define NVML_VERSION "13." DRIVER_VERSION

NVML_EXPORT nvmlReturn_t nvmlInit(void)
{
    return library_init(__func__, 0);
}

NVML_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return library_init(__func__, 0);
}

NVML_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    return library_init(__func__, flags);
}

NVML_EXPORT nvmlReturn_t nvmlShutdown(void)
{
    return library_shutdown(__func__);
}

NVML_EXPORT const char *nvmlErrorString(nvmlReturn_t rc)
{
    switch (rc) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
    case NVML_ERROR_OPERATING_SYSTEM: return "The operating system has blocked the request";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NVML_ERROR_IN_USE: return "In use by another client";
    case NVML_ERROR_MEMORY: return "Insufficient Memory";
    case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient Resources";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    case NVML_ERROR_NOT_READY: return "System is not in ready state";
    case NVML_ERROR_GPU_NOT_FOUND: return "GPU not found";
    default: return "Unknown Error";
    }
}

static nvmlReturn_t system_text(const char *symbol, char *buffer, unsigned length, const char *text)
{
    struct call call;
    nvmlReturn_t rc = call_query(&call, symbol, NULL, 0);
    if (rc == NVML_SUCCESS)
        rc = copy_text(buffer, length, text);
    return call_finish(&call, rc);
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    return system_text(__func__, version, length, DRIVER_VERSION);
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    return system_text(__func__, version, length, NVML_VERSION);
}

/* The only queries that real libraries answer before initialisation. */
NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = CUDA_DRIVER_VERSION;
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}
