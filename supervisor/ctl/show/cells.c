/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/cells.h"

#include "supervisor/ctl/text/field.h"
#include <string.h>

json_t *cells_merge(const json_t *group)
{
    const json_t *cells = json_object_get(group, "cells");
    json_t *whole = json_copy((json_t *)(uintptr_t)group), *workers;
    json_int_t size = 0;

    if (!cells)
        return whole;
    workers = json_array();
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);

        size += field_int(cell, "size");
        if (workers)
            (void)json_array_extend(workers, json_object_get(cell, "workers"));
    }
    if (!whole || json_object_set_new(whole, "workers", workers) < 0 ||
        json_object_set_new(whole, "size", json_integer(size)) < 0) {
        json_decref(whole);
        return NULL;
    }
    return whole;
}

json_t *cells_as_group(const json_t *group, const json_t *cell)
{
    json_t *alone = json_copy((json_t *)(uintptr_t)cell);
    json_t *names = json_pack(
        "{s:o*, s:s, s:s}", "name",
        json_sprintf("%s/%s", field_text(group, "name"), field_text(cell, "key")), "description",
        field_text(group, "description"), "type", field_text(group, "type"));

    if (!alone || !names || json_object_update(alone, names) < 0) {
        json_decref(alone);
        alone = NULL;
    }
    json_decref(names);
    return alone;
}

const json_t *cells_find(const json_t *group, const char *target)
{
    const json_t *cells = json_object_get(group, "cells");
    const char *key = strchr(target, '/');

    for (size_t i = 0; key && i < json_array_size(cells); i++)
        if (field_is(json_array_get(cells, i), "key", key + 1))
            return json_array_get(cells, i);
    return NULL;
}
