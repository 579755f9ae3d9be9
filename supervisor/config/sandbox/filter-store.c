/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/filter-store.h"
#include <stdlib.h>
#include <string.h>

static struct filter *filters;

struct filter *filter_ref_by_settings(const char *settings)
{
    struct filter *filter = filters;

    while (filter && strcmp(filter->settings, settings) != 0)
        filter = filter->next;
    if (filter)
        filter->n_references++;
    return filter;
}

struct filter *filter_new(const char *settings, const void *code, size_t size)
{
    const size_t length = strlen(settings) + 1;
    struct filter *filter = malloc(sizeof(*filter) + length);
    void *copy = malloc(size);

    if (!filter || !copy) {
        free(filter);
        free(copy);
        return NULL;
    }
    memcpy(copy, code, size);
    *filter = (struct filter){
        .next = filters, .n_references = 1, .program = {.code = copy, .size = size}};
    memcpy(filter->settings, settings, length);
    return filters = filter;
}

struct filter *filter_unref(struct filter *filter)
{
    struct filter **link = &filters;

    if (!filter || --filter->n_references > 0)
        return NULL;
    while (*link != filter)
        link = &(*link)->next;
    *link = filter->next;
    free(filter->program.code);
    free(filter);
    return NULL;
}
