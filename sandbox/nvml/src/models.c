/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Lookup of models and profiles.
 */
#include "models.h"

#include <string.h>
#include <strings.h>

static const struct model *const models[] = {
    &model_a100_80gb_pcie,
    &model_h100_80gb_hbm3,
    &model_h200_nvl,
    &model_rtx_pro_6000_server,
};

size_t model_count(void)
{
    return sizeof models / sizeof models[0];
}

const struct model *model_at(size_t index)
{
    return index < model_count() ? models[index] : NULL;
}

const struct model *model_find(const char *key)
{
    for (size_t i = 0; i < model_count(); i++)
        if (strcmp(models[i]->key, key) == 0)
            return models[i];
    return NULL;
}

const struct gi_profile *profile_by_enum(const struct model *model, unsigned enum_index)
{
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].enum_index == enum_index)
            return &model->profiles[i];
    return NULL;
}

const struct gi_profile *profile_by_id(const struct model *model, unsigned id)
{
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].id == id)
            return &model->profiles[i];
    return NULL;
}

const struct gi_profile *profile_by_name(const struct model *model, const char *name)
{
    for (size_t i = 0; i < model->profile_count; i++)
        if (strcasecmp(model->profiles[i].name, name) == 0)
            return &model->profiles[i];
    return NULL;
}

const struct gi_profile *profile_whole(const struct model *model)
{
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].size == model->memory_slices)
            return &model->profiles[i];
    return NULL;
}
