/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The part of NVML's binary interface that the emulator speaks: type layouts, return codes, numbers.
 * Written from the documented API. Every layout that a caller allocates is pinned by an assertion (LP64).
 */
#ifndef NVML_ABI_H
#define NVML_ABI_H

#define NVML_EXPORT __attribute__((visibility("default")))

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_OPERATING_SYSTEM = 17,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_NOT_READY = 27,
    NVML_ERROR_GPU_NOT_FOUND = 28,
    NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

typedef struct handle *nvmlDevice_t;
typedef struct handle *nvmlGpuInstance_t;
typedef struct handle *nvmlComputeInstance_t;
typedef struct event_set *nvmlEventSet_t;

#define NVML_INIT_FLAG_NO_GPUS 1u
#define NVML_DEVICE_MIG_DISABLE 0u
#define NVML_DEVICE_MIG_ENABLE 1u
#define NVML_NO_INSTANCE 0xffffffffu

enum { NVML_ARCH_AMPERE = 7, NVML_ARCH_ADA = 8, NVML_ARCH_HOPPER = 9, NVML_ARCH_BLACKWELL = 10 };
enum { NVML_BRAND_NVIDIA = 14 };
enum { NVML_ADDRESSING_MODE_NONE = 0, NVML_ADDRESSING_MODE_HMM = 1, NVML_ADDRESSING_MODE_ATS = 2 };
enum { NVML_FI_RESETLESS_MIG_SUPPORTED = 184, NVML_FI_MIG_MODE_INDEPENDENT_QUERY = 199 };
enum { NVML_VALUE_TYPE_UNSIGNED_INT = 1 };
enum { NVML_GPU_VIRTUALIZATION_MODE_NONE = 0 };

/* GPU instance profile enums: index of the profile queries, not the numeric profile id. */
enum {
    GI_1_SLICE = 0, GI_2_SLICE = 1, GI_3_SLICE = 2, GI_4_SLICE = 3, GI_7_SLICE = 4, GI_1_SLICE_REV1 = 7, GI_2_SLICE_REV1 = 8,
    GI_1_SLICE_REV2 = 9, GI_1_SLICE_GFX = 10, GI_2_SLICE_GFX = 11, GI_4_SLICE_GFX = 12, GI_1_SLICE_NO_ME = 13,
    GI_2_SLICE_NO_ME = 14, GI_1_SLICE_ALL_ME = 15, GI_2_SLICE_ALL_ME = 16, GI_3_SLICE_GFX = 17, GI_PROFILE_COUNT = 18,
};
/* Compute instance profile enums; each is its numeric id, too. */
enum {
    CI_1_SLICE = 0, CI_2_SLICE = 1, CI_3_SLICE = 2, CI_4_SLICE = 3, CI_7_SLICE = 4, CI_8_SLICE = 5, CI_6_SLICE = 6, CI_1_SLICE_REV1 = 7,
    CI_7_SLICE_NVL = 8, CI_PROFILE_COUNT = 9,
};
enum { CI_ENGINE_PROFILE_COUNT = 1 };
enum { GI_PROFILE_CAPABILITY_GFX = 2 };

/* The word at the head of a versioned struct: its size and version. */
#define NVML_STRUCT_VERSION(type, version) ((unsigned int)(sizeof(type) | ((version) << 24)))

#define ABI_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has the wrong size")

typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device;
    unsigned int pciDeviceId;    /* device id << 16 | vendor id */
    unsigned int pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
ABI_SIZE(nvmlPciInfo_t, 68);

typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
ABI_SIZE(nvmlMemory_t, 24);

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
ABI_SIZE(nvmlMemory_v2_t, 40);

typedef struct { unsigned int version, value; } nvmlDeviceAddressingMode_t;
ABI_SIZE(nvmlDeviceAddressingMode_t, 8);

typedef struct {
    unsigned int fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned int valueType;
    nvmlReturn_t nvmlReturn;
    union { double dVal; unsigned int uiVal; unsigned long long ullVal; } value;
} nvmlFieldValue_t;
ABI_SIZE(nvmlFieldValue_t, 40);

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
ABI_SIZE(nvmlProcessInfo_t, 24);

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
ABI_SIZE(nvmlEventData_t, 32);

typedef struct { unsigned int start, size; } nvmlPlacement_t;    /* of GPU and of compute instances alike */
ABI_SIZE(nvmlPlacement_t, 8);

typedef struct {
    unsigned int id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount;
    unsigned int encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;
ABI_SIZE(nvmlGpuInstanceProfileInfo_t, 48);

typedef struct {
    unsigned int version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount;
    unsigned int encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
} nvmlGpuInstanceProfileInfo_v2_t;
ABI_SIZE(nvmlGpuInstanceProfileInfo_v2_t, 152);

typedef struct {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount;
    unsigned int encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
    unsigned int capabilities;
} nvmlGpuInstanceProfileInfo_v3_t;
ABI_SIZE(nvmlGpuInstanceProfileInfo_v3_t, 152);

typedef struct {
    nvmlDevice_t device;
    unsigned int id, profileId;
    nvmlPlacement_t placement;
} nvmlGpuInstanceInfo_t;
ABI_SIZE(nvmlGpuInstanceInfo_t, 24);

typedef struct {
    unsigned int id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount;
    unsigned int sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;
ABI_SIZE(nvmlComputeInstanceProfileInfo_t, 36);

typedef struct {
    unsigned int version;
    nvmlComputeInstanceProfileInfo_t info;
    char name[96];
} nvmlComputeInstanceProfileInfo_v2_t;
ABI_SIZE(nvmlComputeInstanceProfileInfo_v2_t, 136);

typedef struct {
    unsigned int version;
    nvmlComputeInstanceProfileInfo_t info;
    char name[96];
    unsigned int capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;
ABI_SIZE(nvmlComputeInstanceProfileInfo_v3_t, 140);

typedef struct {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpuInstance;
    unsigned int id, profileId;
    nvmlPlacement_t placement;
} nvmlComputeInstanceInfo_t;
ABI_SIZE(nvmlComputeInstanceInfo_t, 32);

typedef struct {
    unsigned int multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount;
    unsigned int sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;
ABI_SIZE(nvmlDeviceAttributes_t, 40);

#endif
