/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * nvidia-smi mig -lgip, -lgipp, -lgi, -lci, in the layout of recent drivers (names of 18 columns).
 */
#include "nvidia_smi.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PROFILES = 32, MAX_LISTED = 16 };
typedef nvmlGpuInstanceProfileInfo_v2_t profile_t;

static int compare(const void *left, const void *right)
{
    const profile_t *a = left, *b = right;
    if (a->sliceCount != b->sliceCount)
        return a->sliceCount < b->sliceCount ? -1 : 1;
    if (a->memorySizeMB != b->memorySizeMB)
        return a->memorySizeMB < b->memorySizeMB ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The profiles of a GPU, smallest first. */
static unsigned read_profiles(nvmlDevice_t gpu, profile_t *profiles)
{
    unsigned count = 0;
    for (unsigned number = 0; number < MAX_PROFILES; number++) {
        profile_t profile = {.version = NVML_STRUCT_VERSION(profile_t, 2u)};
        if (CALL("nvmlDeviceGetGpuInstanceProfileInfoV", (nvmlDevice_t, unsigned, profile_t *), gpu, number, &profile) == NVML_SUCCESS)
            profiles[count++] = profile;
    }
    qsort(profiles, count, sizeof *profiles, compare);
    return count;
}

static bool mig_is(nvmlDevice_t gpu, bool on)
{
    unsigned current = 0, pending = 0;
    nvmlReturn_t rc = CALL("nvmlDeviceGetMigMode", (nvmlDevice_t, unsigned *, unsigned *), gpu, &current, &pending);
    return rc == NVML_SUCCESS && (!on || current);
}

/* The table's head, until it is printed: a table without rows has none. */
static const char *header = "";

static void print_header(void)
{
    printf("%s", header);
    header = "";
}

static const char *const profile_rule = "+-------------------------------------------------------------------------------+";

static void list_profile(nvmlDevice_t gpu, const profile_t *profile)
{
    unsigned left = 0;
    char memory[32];
    CALL("nvmlDeviceGetGpuInstanceRemainingCapacity", (nvmlDevice_t, unsigned, unsigned *), gpu, profile->id, &left);
    print_header();
    snprintf(memory, sizeof memory, "%.2f", (double)profile->memorySizeMB / 1024);
    printf("|%4u  %-18s  %2u     %u/%u        %-11s%-7s%-7u%-6u%-4u|\n", smi_index(gpu), profile->name, profile->id, left,
           profile->instanceCount, memory, profile->isP2pSupported ? "Yes" : "No", profile->multiprocessorCount, profile->decoderCount,
           profile->encoderCount);
    printf("|%63s%-6u%-6u%-4u|\n%s\n", "", profile->copyEngineCount, profile->jpegCount, profile->ofaCount, profile_rule);
}

static unsigned list_profiles(nvmlDevice_t gpu)
{
    profile_t profiles[MAX_PROFILES];
    unsigned count = read_profiles(gpu, profiles);
    for (unsigned i = 0; i < count; i++)
        list_profile(gpu, &profiles[i]);
    return count;
}

static unsigned list_placements(nvmlDevice_t gpu)
{
    profile_t profiles[MAX_PROFILES];
    unsigned count = read_profiles(gpu, profiles);
    for (unsigned i = 0; i < count; i++) {
        nvmlPlacement_t places[MAX_LISTED];
        unsigned found = MAX_LISTED;
        nvmlReturn_t rc = CALL("nvmlDeviceGetGpuInstancePossiblePlacements_v2", (nvmlDevice_t, unsigned, nvmlPlacement_t *, unsigned *), gpu,
                               profiles[i].id, places, &found);
        if (rc != NVML_SUCCESS) {
            printf("Unable to get possible placements for GPU %2u Profile ID %2u: %s\n", smi_index(gpu), profiles[i].id, smi_error(rc));
            exit((int)rc);
        }
        printf("GPU %2u Profile ID %2u Placement%s: {", smi_index(gpu), profiles[i].id, found == 1 ? " " : "s");
        for (unsigned k = 0; k < found; k++)
            printf("%s%u", k ? "," : "", places[k].start);
        printf("}:%u\n", found ? places[0].size : 0);
    }
    return count;
}

/* Do that with every GPU instance of a GPU. */
static unsigned each_instance(nvmlDevice_t gpu, unsigned (*act)(nvmlDevice_t, const profile_t *, nvmlGpuInstance_t))
{
    profile_t profiles[MAX_PROFILES];
    unsigned count = read_profiles(gpu, profiles), done = 0;
    for (unsigned i = 0; i < count; i++) {
        nvmlGpuInstance_t instances[MAX_LISTED];
        unsigned found = 0;
        CALL("nvmlDeviceGetGpuInstances", (nvmlDevice_t, unsigned, nvmlGpuInstance_t *, unsigned *), gpu, profiles[i].id, instances, &found);
        for (unsigned k = 0; k < found; k++)
            done += act(gpu, &profiles[i], instances[k]);
    }
    return done;
}

static unsigned list_instance(nvmlDevice_t gpu, const profile_t *profile, nvmlGpuInstance_t instance)
{
    nvmlGpuInstanceInfo_t info = {0};
    if (CALL("nvmlGpuInstanceGetInfo", (nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *), instance, &info) != NVML_SUCCESS)
        return 0;
    print_header();
    printf("|%4u  %-18s%6u%9u%11u:%-6u|\n+---------------------------------------------------------+\n", smi_index(gpu), profile->name,
           info.profileId, info.id, info.placement.start, info.placement.size);
    return 1;
}

static unsigned list_instances(nvmlDevice_t gpu)
{
    return each_instance(gpu, list_instance);
}

static unsigned list_compute_instances_of(nvmlDevice_t gpu, const profile_t *profile, nvmlGpuInstance_t instance)
{
    nvmlGpuInstanceInfo_t parent = {0};
    unsigned done = 0;
    (void)profile;
    CALL("nvmlGpuInstanceGetInfo", (nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *), instance, &parent);
    for (unsigned number = 0; number < CI_PROFILE_COUNT; number++) {
        nvmlComputeInstanceProfileInfo_v2_t offered = {.version = NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2u)};
        nvmlComputeInstance_t instances[MAX_LISTED];
        unsigned found = 0;
        if (CALL("nvmlGpuInstanceGetComputeInstanceProfileInfoV",
                 (nvmlGpuInstance_t, unsigned, unsigned, nvmlComputeInstanceProfileInfo_v2_t *), instance, number, 0u, &offered) != NVML_SUCCESS)
            continue;
        CALL("nvmlGpuInstanceGetComputeInstances", (nvmlGpuInstance_t, unsigned, nvmlComputeInstance_t *, unsigned *), instance,
             offered.info.id, instances, &found);
        for (unsigned k = 0; k < found; k++) {
            nvmlComputeInstanceInfo_t info = {0};
            CALL("nvmlComputeInstanceGetInfo_v2", (nvmlComputeInstance_t, nvmlComputeInstanceInfo_t *), instances[k], &info);
            print_header();
            printf("|%4u%7u       %-18s%4u%10u%11u:%-6u|\n+--------------------------------------------------------------------+\n",
                   smi_index(gpu), parent.id, offered.name, info.profileId, info.id, info.placement.start, info.placement.size);
            done++;
        }
    }
    return done;
}

static unsigned list_compute_instances(nvmlDevice_t gpu)
{
    return each_instance(gpu, list_compute_instances_of);
}

static const struct command {
    const char *brief, *full;
    const char *header;           /* of the table */
    unsigned (*list)(nvmlDevice_t gpu);
    bool needs_mode;
    const char *nothing;          /* said if there is nothing to list */
} commands[] = {
    {"-lgip", "--list-gpu-instance-profiles",
     "+-------------------------------------------------------------------------------+\n"
     "| GPU instance profiles:                                                        |\n"
     "| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |\n"
     "|                                Free/Total   GiB              CE    JPEG  OFA  |\n"
     "|===============================================================================|\n",
     list_profiles, false, "No MIG-supported devices found."},
    {"-lgipp", "--list-gpu-instance-possible-placements", "", list_placements, false, "No MIG-supported devices found."},
    {"-lgi", "--list-gpu-instances",
     "+---------------------------------------------------------+\n"
     "| GPU instances:                                          |\n"
     "| GPU   Name               Profile  Instance   Placement  |\n"
     "|                            ID       ID       Start:Size |\n"
     "|=========================================================|\n",
     list_instances, true, "No GPU instances found: Not Found"},
    {"-lci", "--list-compute-instances",
     "+--------------------------------------------------------------------+\n"
     "| Compute instances:                                                 |\n"
     "| GPU     GPU       Name             Profile   Instance   Placement  |\n"
     "|       Instance                       ID        ID       Start:Size |\n"
     "|         ID                                                         |\n"
     "|====================================================================|\n",
     list_compute_instances, true, "No compute instances found: Not Found"},
};

static const struct command *find_command(const char *name)
{
    for (unsigned i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(name, commands[i].brief) == 0 || strcmp(name, commands[i].full) == 0)
            return &commands[i];
    return NULL;
}

int smi_mig(const struct targets *targets, const char *name)
{
    const struct command *command = find_command(name);
    unsigned listed = 0, eligible = 0;
    if (!command) {
        fprintf(stderr, "Invalid combination of input arguments: mig %s. This is the emulated nvidia-smi: mig -lgip, -lgipp, -lgi, -lci.\n", name);
        return EXIT_USAGE;
    }
    for (unsigned i = 0; i < targets->count; i++)
        eligible += mig_is(targets->gpus[i], command->needs_mode);
    if (eligible == 0) {
        printf("%s\n", command->needs_mode ? "No MIG-enabled devices found." : "No MIG-supported devices found.");
        return EXIT_NOT_FOUND;
    }
    header = command->header;
    for (unsigned i = 0; i < targets->count; i++)
        if (mig_is(targets->gpus[i], command->needs_mode))
            listed += command->list(targets->gpus[i]);
    if (listed == 0)
        printf("%s\n", command->nothing);
    return listed ? 0 : EXIT_NOT_FOUND;
}
