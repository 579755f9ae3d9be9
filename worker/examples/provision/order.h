/* SPDX-License-Identifier: MIT */
#pragma once

/* A customer's order: the payload of a job, and of requests to providers. */

#include <jansson.h>
#include <stddef.h>

struct order {
    json_t *root;
    const char *customer, *product; /* the root's */
    json_t *properties;             /* the root's: an object of strings */
};

/*
 * Reads an order; `problem` gets a static sentence if it is malformed. 0, -EINVAL, or -ENOMEM. The
 * former content of `ret` is ignored. End it with order_deinit(), even after an error.
 */
int order_parse(struct order *ret, const char *data, size_t size, const char **problem);
void order_deinit(struct order *order);

/* A property, or NULL; "customer" and "product" are found like properties. */
const char *order_get(const struct order *order, const char *name);

/* 0, or -ENOMEM (or if the text is not UTF-8). */
int order_set(struct order *order, const char *name, const char *value);
