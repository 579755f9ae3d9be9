/* SPDX-License-Identifier: MIT */
#pragma once

/* The products: the property that an order needs, and the one that the product adds. */

#include "worker/examples/provision/order.h"

struct product {
    const char *name;
    const char *needs;                     /* a property */
    const char *gives_name, *gives_format; /* another one; {property} stands for its value */
};

/* NULL = there is none of that name. */
const struct product *catalogue_find(const char *name);

/* Adds the property that the product gives. 0 or -ENOMEM. */
int catalogue_fill(const struct product *product, struct order *order);
