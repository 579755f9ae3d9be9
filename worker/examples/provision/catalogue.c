/* SPDX-License-Identifier: MIT */
#include "worker/examples/provision/catalogue.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct product products[] = {
    {"mailbox", "name", "address", "{name}@{customer}.example"},
    {"website", "name", "url", "https://{name}.{customer}.example/"},
    {"line", "number", "dial", "sip:{number}@{customer}.example"},
};

const struct product *catalogue_find(const char *name)
{
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++)
        if (strcmp(products[i].name, name) == 0)
            return &products[i];
    return NULL;
}

/* Expands a format of the table above, in which each brace has its partner. */
static void expand(FILE *out, const char *format, const struct order *order)
{
    char name[32];

    for (const char *at = format; *at; at++) {
        const char *value = NULL;

        if (*at == '{' && sscanf(at, "{%31[^}]}", name) == 1) {
            value = order_get(order, name);
            at = strchr(at, '}');
            fputs(value ? value : "", out);
        } else {
            fputc(*at, out);
        }
    }
}

int catalogue_fill(const struct product *product, struct order *order)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int r = -ENOMEM;

    if (!out)
        return -ENOMEM;
    expand(out, product->gives_format, order);
    if (fclose(out) == 0)
        r = order_set(order, product->gives_name, text);
    free(text);
    return r;
}
