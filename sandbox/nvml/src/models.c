/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Lookup of models and profiles.
 */
#include "models.h"

#include <string.h>
#include <strings.h>

static const struct model_list *const lists[] = {&models_ampere, &models_ada, &models_hopper, &models_blackwell};

const struct model *model_at(size_t index)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (index < lists[i]->count)
            return &lists[i]->models[index];
        index -= lists[i]->count;
    }
    return NULL;
}

const struct model *model_find(const char *key)
{
    const struct model *model;
    for (size_t i = 0; (model = model_at(i)); i++)
        if (strcmp(model->key, key) == 0)
            return model;
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
