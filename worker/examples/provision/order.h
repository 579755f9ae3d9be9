/* SPDX-License-Identifier: MIT */
#pragma once

/* What a customer has ordered: the payload of a job, and of what providers are asked. */

#include <jansson.h>
#include <stddef.h>

struct order {
    json_t *root;
    const char *customer, *product; /* the root's */
    json_t *properties;             /* the root's: an object of strings */
};

/*
 * Reads one; `problem` gets a sentence (static) when it is not understood. 0, -EINVAL, or -ENOMEM.
 * What came before in `ret` is not looked at. To be ended with order_deinit(), whatever came.
 */
int order_parse(struct order *ret, const char *data, size_t size, const char **problem);
void order_deinit(struct order *order);

/* A property, or NULL; "customer" and "product" are found like properties. */
const char *order_get(const struct order *order, const char *name);

/* 0, or -ENOMEM (also for text that is not UTF-8). */
int order_set(struct order *order, const char *name, const char *value);
