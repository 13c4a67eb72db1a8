/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The forms of nvidia-smi that scripts rely on: the table, -L, -q, --version, --query-gpu, mig -lgip|-lgipp|-lgi|-lci, and -r (reset).
 * Everything comes from the libnvidia-ml.so.1 that the loader finds.
 */
#include "nvidia_smi.h"

#include <string.h>

static int usage(const char *argument)
{
    fprintf(stderr,
            "Invalid combination of input arguments: %s. This is the emulated nvidia-smi: no argument, -L, -q, --version, --query-gpu=FIELD,... "
            "--format=csv[,noheader][,nounits], mig -lgip|-lgipp|-lgi|-lci, -r; all with [-i GPU,...].\n",
            argument);
    return EXIT_USAGE;
}

static bool is(const char *argument, const char *brief, const char *full)
{
    return strcmp(argument, brief) == 0 || strcmp(argument, full) == 0;
}

/* The value of an argument of the form NAME=VALUE; NULL if it is another one. */
static const char *value_of(const char *argument, const char *name)
{
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

/* What the command line asks for. */
struct request {
    const char *ids, *fields, *format, *mig;
    bool list, report, version, reset;
};

/* The first argument that is not understood, or NULL. */
static const char *parse(int count, char **arguments, struct request *request)
{
    bool of_mig = count > 1 && strcmp(arguments[1], "mig") == 0;
    for (int i = of_mig ? 2 : 1; i < count; i++) {
        const char *argument = arguments[i], *fields = value_of(argument, "--query-gpu"), *format = value_of(argument, "--format");
        if (is(argument, "-i", "--id") && i + 1 < count)
            request->ids = arguments[++i];
        else if (value_of(argument, "--id"))
            request->ids = value_of(argument, "--id");
        else if (of_mig && !request->mig)
            request->mig = argument;
        else if (of_mig)
            return argument;
        else if (is(argument, "-L", "--list-gpus"))
            request->list = true;
        else if (is(argument, "-q", "--query"))
            request->report = true;
        else if (is(argument, "--version", "--version"))
            request->version = true;
        else if (is(argument, "-r", "--gpu-reset"))
            request->reset = true;
        else if (fields)
            request->fields = fields;
        else if (format)
            request->format = format;
        else
            return argument;
    }
    return of_mig && !request->mig ? "mig" : NULL;
}

int main(int count, char **arguments)
{
    struct request request = {.format = ""};
    const char *unknown = parse(count, arguments, &request);
    if (unknown)
        return usage(unknown);
    smi_start();
    if (request.version)
        return smi_version();
    struct targets targets = smi_targets(request.ids);
    if (request.mig)
        return smi_mig(&targets, request.mig);
    if (request.fields)
        return smi_query(&targets, request.fields, request.format);
    if (request.list)
        return smi_list(&targets);
    if (request.report)
        return smi_report(&targets);
    return request.reset ? smi_reset(&targets) : smi_table(&targets);
}
