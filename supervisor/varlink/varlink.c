/* SPDX-License-Identifier: MIT */

#include "supervisor/varlink/varlink.h"

#include "supervisor/varlink/varlink-memory.h"

#include <errno.h>
#include <string.h>

/* Cheap: counts an upper bound without parsing. */
static bool too_many_values(const char *message, size_t size)
{
    size_t n = 0;
    bool in_string = false;

    for (size_t i = 0; i < size; i++) {
        char c = message[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == ',' || c == '[' || c == '{') && ++n > VARLINK_VALUES_MAX)
            return true;
    }
    return false;
}

struct call_members {
    const char *method;
    json_t *parameters;
    bool more, oneway, upgrade;
};

static const struct varlink_parameter call_table[] = {
    {"method", VARLINK_STRING, true, offsetof(struct call_members, method)},
    {"parameters", VARLINK_OBJECT, false, offsetof(struct call_members, parameters)},
    {"more", VARLINK_BOOL, false, offsetof(struct call_members, more)},
    {"oneway", VARLINK_BOOL, false, offsetof(struct call_members, oneway)},
    {"upgrade", VARLINK_BOOL, false, offsetof(struct call_members, upgrade)},
    {0},
};

int varlink_parse(struct varlink_call *ret, const char *message, size_t size, const char **ret_bad)
{
    struct call_members members = {0};
    int r;

    *ret = (struct varlink_call)VARLINK_CALL_NULL;
    if (size > VARLINK_MESSAGE_MAX || too_many_values(message, size))
        return VARLINK_E_MALFORMED;
    r = varlink_memory_init();
    if (r < 0)
        return r;
    varlink_memory_begin();
    ret->root = json_loadb(message, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (varlink_memory_ran_out()) {
        varlink_call_deinit(ret);
        return -ENOMEM;
    }
    if (!json_is_object(ret->root))
        return VARLINK_E_MALFORMED;
    /* Read first: a oneway call gets no error reply either. */
    ret->oneway = json_is_true(json_object_get(ret->root, "oneway"));
    r = varlink_take(ret->root, call_table, &members, ret_bad);
    if (r != 0)
        return r;
    ret->method = members.method;
    ret->parameters = members.parameters;
    ret->more = members.more;
    ret->upgrade = members.upgrade;
    return 0;
}

void varlink_call_deinit(struct varlink_call *call)
{
    json_decref(call->root);
    *call = (struct varlink_call)VARLINK_CALL_NULL;
}

size_t varlink_interface_length(const char *method)
{
    const char *dot = strrchr(method, '.');

    return !dot || dot[1] == '\0' ? 0 : (size_t)(dot - method);
}

static const struct varlink_parameter *find(const struct varlink_parameter *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

/* False if the value has the wrong type. */
static bool store(const struct varlink_parameter *parameter, json_t *value, void *target)
{
    void *at = (char *)target + parameter->offset;

    switch (parameter->type) {
    case VARLINK_STRING:
        if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
            return false;
        *(const char **)at = json_string_value(value);
        return true;
    case VARLINK_BYTES:
        if (!json_is_string(value))
            return false;
        *(struct varlink_bytes *)at =
            (struct varlink_bytes){json_string_value(value), json_string_length(value)};
        return true;
    case VARLINK_INT:
        if (!json_is_integer(value))
            return false;
        *(struct varlink_int *)at = (struct varlink_int){true, json_integer_value(value)};
        return true;
    case VARLINK_BOOL:
        if (!json_is_boolean(value))
            return false;
        *(bool *)at = json_is_true(value);
        return true;
    case VARLINK_FLAG:
        if (!json_is_boolean(value))
            return false;
        *(struct varlink_flag *)at = (struct varlink_flag){true, json_is_true(value)};
        return true;
    case VARLINK_OBJECT:
        if (!json_is_object(value))
            return false;
        *(json_t **)at = value;
        return true;
    }
    return false;
}

int varlink_take(json_t *object, const struct varlink_parameter *table, void *target,
                 const char **ret_bad)
{
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const struct varlink_parameter *parameter = find(table, json_object_iter_key(i));
        json_t *value = json_object_iter_value(i);

        *ret_bad = json_object_iter_key(i);
        if (!parameter || (!json_is_null(value) && !store(parameter, value, target)))
            return VARLINK_E_INVALID;
    }
    for (const struct varlink_parameter *p = table; p->name; p++) {
        json_t *value = json_object_get(object, p->name);

        *ret_bad = p->name;
        if (p->required && (!value || json_is_null(value)))
            return VARLINK_E_INVALID;
    }
    return 0;
}
