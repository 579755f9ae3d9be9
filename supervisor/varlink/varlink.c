/* SPDX-License-Identifier: MIT */

#include "supervisor/varlink/varlink.h"

#include "supervisor/config/syntax/words.h"
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
    VARLINK_ROW("method", STRING, call_members, method, .required = true),
    VARLINK_ROW("parameters", OBJECT, call_members, parameters),
    VARLINK_ROW("more", BOOL, call_members, more),
    VARLINK_ROW("oneway", BOOL, call_members, oneway),
    VARLINK_ROW("upgrade", BOOL, call_members, upgrade),
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

const struct varlink_parameter *varlink_find(const struct varlink_parameter *table,
                                             const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

static int store_string(const struct varlink_parameter *parameter, json_t *value, void *at)
{
    const struct varlink_bytes bytes = {json_string_value(value), json_string_length(value)};
    int choice;

    if (!bytes.data)
        return VARLINK_E_INVALID;
    if (parameter->type == VARLINK_BYTES) {
        *(struct varlink_bytes *)at = bytes;
        return parameter->max != 0 && bytes.size > (size_t)parameter->max ? VARLINK_E_REFUSED : 0;
    }
    if (strlen(bytes.data) != bytes.size)
        return VARLINK_E_INVALID;
    if (parameter->type == VARLINK_STRING) {
        *(const char **)at = bytes.data;
        return 0;
    }
    choice = words_find(parameter->allowed, bytes.data);
    *(struct varlink_int *)at = (struct varlink_int){true, choice};
    return choice < 0 ? VARLINK_E_REFUSED : 0;
}

static int store_integer(const struct varlink_parameter *parameter, json_t *value, void *at)
{
    const int64_t number = json_integer_value(value);

    if (!json_is_integer(value))
        return VARLINK_E_INVALID;
    if (parameter->type == VARLINK_INT)
        *(struct varlink_int *)at = (struct varlink_int){true, number};
    else if (number != 0)
        *(usec_t *)at = (usec_t)number;
    if (!parameter->allowed ||
        (number >= parameter->min && (parameter->max == 0 || number <= parameter->max)))
        return 0;
    return VARLINK_E_REFUSED;
}

static int store(const struct varlink_parameter *parameter, json_t *value, void *target)
{
    void *at = (char *)target + parameter->offset;

    switch (parameter->type) {
    case VARLINK_STRING:
    case VARLINK_BYTES:
    case VARLINK_CHOICE:
        return store_string(parameter, value, at);
    case VARLINK_INT:
    case VARLINK_SPAN:
        return store_integer(parameter, value, at);
    case VARLINK_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value) ? 0 : VARLINK_E_INVALID;
    case VARLINK_FLAG:
        *(struct varlink_flag *)at = (struct varlink_flag){true, json_is_true(value)};
        return json_is_boolean(value) ? 0 : VARLINK_E_INVALID;
    case VARLINK_OBJECT:
        *(json_t **)at = value;
        return json_is_object(value) ? 0 : VARLINK_E_INVALID;
    }
    return VARLINK_E_INVALID;
}

int varlink_take(json_t *object, const struct varlink_parameter *table, void *target,
                 const char **ret_bad)
{
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const struct varlink_parameter *parameter = varlink_find(table, json_object_iter_key(i));
        json_t *value = json_object_iter_value(i);

        int r = VARLINK_E_INVALID;

        *ret_bad = json_object_iter_key(i);
        if (parameter)
            r = json_is_null(value) ? 0 : store(parameter, value, target);
        if (r != 0)
            return r;
    }
    for (const struct varlink_parameter *p = table; p->name; p++) {
        json_t *value = json_object_get(object, p->name);

        *ret_bad = p->name;
        if (p->required && (!value || json_is_null(value)))
            return VARLINK_E_INVALID;
    }
    return 0;
}
