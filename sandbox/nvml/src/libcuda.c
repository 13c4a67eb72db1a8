/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * A libcuda.so.1 that says what it is: CDI specifications mount the driver's libraries by name, so the file must be there, but there
 * is no GPU to compute on.
 */
#include "nvml_abi.h"

enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_STUB_LIBRARY = 34, CUDA_DRIVER_VERSION = 13020 };

NVML_EXPORT int cuInit(unsigned flags);
NVML_EXPORT int cuDriverGetVersion(int *version);

/* CUDA's own code for "the driver that the application has loaded is a stub library". */
int cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_STUB_LIBRARY;
}

int cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_DRIVER_VERSION;
    return CUDA_SUCCESS;
}
