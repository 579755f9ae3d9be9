/* SPDX-License-Identifier: MIT */

#include "supervisor/varlink/varlink.h"

#include "shared/base/fault.h"
#include "shared/base/json-text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- strings ---- */

/* Decodes a string. Its place does not depend on others, so it may be decoded again. */
static struct varlink_bytes string_at(const struct varlink_call *call, const char *value)
{
    char *to = call->strings + (value - call->text);
    const int size = json_text_string(value, to);

    assert(size >= 0);
    return (struct varlink_bytes){to, (size_t)size};
}

/* ---- objects ---- */

/* Returns the number of a field, or -1. */
static int find_field(const struct interface_field *fields, const char *name, size_t size)
{
    for (int i = 0; fields[i].name; i++)
        if (fields[i].size == size && memcmp(fields[i].name, name, size) == 0)
            return i;
    return -1;
}

static int invalid(struct varlink_problem *problem, const char *name, size_t size)
{
    const size_t room = sizeof(problem->member) - 1;

    (void)snprintf(problem->member, sizeof(problem->member), "%.*s",
                   (int)(size < room ? size : room), name);
    return VARLINK_E_INVALID;
}

/* Finds the members of `json`, NULL = none. A member that is null is absent, but may not come
 * twice. */
static int open_object(struct varlink_object *ret, const struct varlink_call *call,
                       const struct interface_field *fields, const char *json,
                       struct varlink_problem *problem)
{
    *ret = (struct varlink_object){.call = call, .fields = fields};
    for (const char *name = json ? json_text_first(json) : NULL; name;) {
        const struct varlink_bytes key = string_at(call, name);
        const char *value = json_text_value(name);
        const int i = find_field(fields, key.data, key.size);

        if (i < 0 || ret->values[i])
            return invalid(problem, key.data, key.size);
        assert(i < VARLINK_FIELDS_MAX);
        ret->values[i] = value;
        name = json_text_next(value);
    }
    for (int i = 0; fields[i].name; i++)
        if (ret->values[i] && *ret->values[i] == 'n')
            ret->values[i] = NULL;
    return 0;
}

static int check_object(const struct varlink_object *object, struct varlink_problem *problem);

static int refused(struct varlink_problem *problem, const struct interface_field *field,
                   const char *allowed)
{
    (void)invalid(problem, field->name, field->size);
    if (allowed)
        (void)snprintf(problem->allowed, sizeof(problem->allowed), "%s", allowed);
    else
        interface_print_words(problem->allowed, field->fields);
    return VARLINK_E_REFUSED;
}

static bool is_named(const struct interface_field *field, const char *name)
{
    return strlen(name) == field->size && memcmp(name, field->name, field->size) == 0;
}

static int check_string(const struct varlink_call *call, const struct interface_field *field,
                        const char *value, struct varlink_problem *problem)
{
    struct varlink_bytes string;

    if (*value != '"')
        return invalid(problem, field->name, field->size);
    string = string_at(call, value);
    if (is_named(field, "data"))
        return 0;
    if (is_named(field, "key"))
        return string.size <= VARLINK_KEY_MAX ? 0 : refused(problem, field, "at most 255 bytes");
    if (strlen(string.data) != string.size)
        return invalid(problem, field->name, field->size);
    if (field->kind == INTERFACE_ENUM && interface_word(field->fields, string.data) < 0)
        return refused(problem, field, NULL);
    return 0;
}

static int check_number(const struct interface_field *field, const char *value,
                        struct varlink_problem *problem)
{
    const bool is_span = field->size > 5 && memcmp(field->name + field->size - 5, "_usec", 5) == 0;
    int64_t number;

    if (json_text_number(value, &number) < 0)
        return invalid(problem, field->name, field->size);
    if (number >= (is_span ? -1 : 0) || is_named(field, "size")) /* the error BadSize says more */
        return 0;
    return refused(problem, field,
                   is_span ? "microseconds; 0 = the default, -1 = no limit" : "0 or more");
}

static int check_value(const struct varlink_call *call, const struct interface_field *field,
                       const char *value, struct varlink_problem *problem)
{
    struct varlink_object object;
    bool fits = *value == '{';
    int r;

    switch (field->kind) {
    case INTERFACE_STRING:
    case INTERFACE_ENUM:
        return check_string(call, field, value, problem);
    case INTERFACE_INT:
        return check_number(field, value, problem);
    case INTERFACE_STRUCT:
        if (!fits)
            break;
        r = open_object(&object, call, field->fields, value, problem);
        return r != 0 ? r : check_object(&object, problem);
    case INTERFACE_BOOL:
        fits = *value == 't' || *value == 'f';
        break;
    default:
        break;
    }
    return fits ? 0 : invalid(problem, field->name, field->size);
}

static int check_object(const struct varlink_object *object, struct varlink_problem *problem)
{
    int r = 0;

    for (size_t i = 0; r == 0 && object->fields[i].name; i++) {
        const struct interface_field *field = &object->fields[i];

        if (object->values[i])
            r = check_value(object->call, field, object->values[i], problem);
        else if (!field->optional)
            r = invalid(problem, field->name, field->size);
    }
    return r;
}

int varlink_read(struct varlink_object *ret, const struct varlink_call *call,
                 const struct interface_field *fields, struct varlink_problem *problem)
{
    int r = open_object(ret, call, fields, call->parameters, problem);

    return r != 0 ? r : check_object(ret, problem);
}

/* ---- members ---- */

/* Returns the number of a field that the interface describes. */
static size_t field_of(const struct varlink_object *object, const char *name)
{
    const int i = find_field(object->fields, name, strlen(name));

    assert(i >= 0);
    return (size_t)i;
}

/* Returns the text of a member; NULL = absent. */
static const char *value_of(const struct varlink_object *object, const char *name)
{
    return object->values[field_of(object, name)];
}

bool varlink_has(const struct varlink_object *object, const char *name)
{
    return value_of(object, name) != NULL;
}

struct varlink_bytes varlink_bytes(const struct varlink_object *object, const char *name)
{
    const char *value = value_of(object, name);

    return value ? string_at(object->call, value) : (struct varlink_bytes){NULL, 0};
}

const char *varlink_string(const struct varlink_object *object, const char *name)
{
    return varlink_bytes(object, name).data;
}

bool varlink_bool(const struct varlink_object *object, const char *name)
{
    const char *value = value_of(object, name);

    return value && *value == 't';
}

int64_t varlink_int(const struct varlink_object *object, const char *name, int64_t otherwise)
{
    const char *value = value_of(object, name);
    int64_t number;

    return value && json_text_number(value, &number) == 0 ? number : otherwise;
}

usec_t varlink_usec(const struct varlink_object *object, const char *name, usec_t otherwise)
{
    const int64_t number = varlink_int(object, name, 0);

    return number == 0 ? otherwise : (usec_t)number;
}

int varlink_choice(const struct varlink_object *object, const char *name)
{
    const size_t i = field_of(object, name);
    const char *value = object->values[i];

    return value ? interface_word(object->fields[i].fields, string_at(object->call, value).data)
                 : -1;
}

bool varlink_object(const struct varlink_object *object, const char *name,
                    struct varlink_object *ret)
{
    const size_t i = field_of(object, name);
    struct varlink_problem problem; /* there is none: it was checked when the call was read */

    (void)open_object(ret, object->call, object->fields[i].fields, object->values[i], &problem);
    return object->values[i] != NULL;
}

/* ---- calls ---- */

/* The members of a call. */
static const struct interface_field CALL[] = {
    {.name = "method", .size = 6, .kind = INTERFACE_STRING},
    {.name = "parameters", .size = 10, .kind = INTERFACE_ANY, .optional = true},
    {.name = "more", .size = 4, .kind = INTERFACE_BOOL, .optional = true},
    {.name = "oneway", .size = 6, .kind = INTERFACE_BOOL, .optional = true},
    {.name = "upgrade", .size = 7, .kind = INTERFACE_BOOL, .optional = true},
    {.name = NULL},
};

int varlink_parse(struct varlink_call *ret, const char *message, size_t size,
                  struct varlink_problem *problem)
{
    struct varlink_object members;
    const char *oneway, *object;
    int r;

    *ret = (struct varlink_call)VARLINK_CALL_NULL;
    if (size > VARLINK_MESSAGE_MAX)
        return VARLINK_E_MALFORMED;
    ret->text = fault_inject("json") < 0 ? NULL : malloc(2 * (size + 1));
    if (!ret->text)
        return -ENOMEM;
    ret->strings = ret->text + size + 1;
    memcpy(ret->text, message, size);
    ret->text[size] = '\0';
    object = ret->text + strspn(ret->text, " \t\r\n");
    if (!json_text_check(ret->text, size, VARLINK_VALUES_MAX) || *object != '{')
        return VARLINK_E_MALFORMED;
    ret->parameters = object;
    r = varlink_read(&members, ret, CALL, problem);
    if (r != 0) {
        /* A oneway call gets no error reply either. */
        oneway = json_text_member(object, "oneway");
        ret->oneway = oneway && *oneway == 't';
        return r;
    }
    ret->method = varlink_string(&members, "method");
    ret->parameters = value_of(&members, "parameters");
    ret->more = varlink_bool(&members, "more");
    ret->oneway = varlink_bool(&members, "oneway");
    ret->upgrade = varlink_bool(&members, "upgrade");
    return 0;
}

void varlink_call_deinit(struct varlink_call *call)
{
    free(call->text);
    *call = (struct varlink_call)VARLINK_CALL_NULL;
}

size_t varlink_interface_length(const char *method)
{
    const char *dot = strrchr(method, '.');

    return !dot || dot[1] == '\0' ? 0 : (size_t)(dot - method);
}
