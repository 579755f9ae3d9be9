/* SPDX-License-Identifier: MIT */
#include "worker/examples/provision/order.h"
#include <errno.h>
#include <string.h>

static int check_properties(json_t *properties)
{
    const char *name;
    json_t *value;

    if (!json_is_object(properties))
        return -EINVAL;
    json_object_foreach(properties, name, value) if (!json_is_string(value)) return -EINVAL;
    return 0;
}

int order_parse(struct order *ret, const char *data, size_t size, const char **problem)
{
    json_error_t error;

    *ret = (struct order){.root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error)};
    *problem = "not understood: want {\"customer\": …, \"product\": …, \"properties\": {…}}";
    if (!ret->root)
        return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EINVAL;
    ret->customer = json_string_value(json_object_get(ret->root, "customer"));
    ret->product = json_string_value(json_object_get(ret->root, "product"));
    if (!ret->customer || !ret->product)
        return -EINVAL;
    ret->properties = json_object_get(ret->root, "properties");
    if (!ret->properties) {
        ret->properties = json_object();
        if (json_object_set_new(ret->root, "properties", ret->properties) < 0) {
            ret->properties = NULL;
            return -ENOMEM;
        }
    }
    *problem = "properties must be an object of strings";
    return check_properties(ret->properties);
}

void order_deinit(struct order *order)
{
    json_decref(order->root);
    *order = (struct order){0};
}

const char *order_get(const struct order *order, const char *name)
{
    if (strcmp(name, "customer") == 0)
        return order->customer;
    if (strcmp(name, "product") == 0)
        return order->product;
    return json_string_value(json_object_get(order->properties, name));
}

int order_set(struct order *order, const char *name, const char *value)
{
    return json_object_set_new(order->properties, name, json_string(value)) < 0 ? -ENOMEM : 0;
}
