/* SPDX-License-Identifier: MIT */
#include "supervisor/web/parameter.h"

#include "shared/base/utf8.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int parameters_init(struct parameters *parameters)
{
    *parameters = (struct parameters){.call = json_object(), .local = json_object()};
    if (parameters->call && parameters->local)
        return 0;
    parameters_deinit(parameters);
    return -ENOMEM;
}

void parameters_deinit(struct parameters *parameters)
{
    json_decref(parameters->call);
    json_decref(parameters->local);
    *parameters = (struct parameters){.call = NULL};
}

/* Foreign text appears in reasons only if it is short and printable. */
static int bad(struct parameter_reason *reason, const char *name, const char *allowed)
{
    for (const char *c = name; *c; c++)
        if (*c < ' ' || *c == 127 || c - name > 64)
            name = "a parameter";
    snprintf(reason->text, sizeof(reason->text), "%s: %s", name, allowed);
    return PARAMETER_E_BAD;
}

static const struct {
    const char *allowed;
    json_int_t min, max; /* of a number */
} types[] = {
    [PARAMETER_TEXT] = {.allowed = "must be text in UTF-8 of at most 512 bytes"},
    [PARAMETER_NUMBER] = {"must be a number, 0 or more", 0, INT64_MAX},
    [PARAMETER_FLAG] = {.allowed = "must be true or false"},
    [PARAMETER_LIMIT] = {"must be a number from 1 to 200", 1, PARAMETER_LIMIT_MAX},
};

static const struct parameter *find(const struct parameter *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

/* Returns NULL if the text is not a number of 63 bits. */
static json_t *parse_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    long long number;

    if (digits == 0 || text[digits] != '\0')
        return NULL;
    errno = 0;
    number = strtoll(text, NULL, 10);
    return errno == 0 ? json_integer(number) : NULL;
}

/* A value of the query as JSON; NULL if it is not of that type. */
static json_t *parse(enum parameter_type type, const char *text)
{
    if (type == PARAMETER_TEXT)
        return json_string(text); /* NULL unless UTF-8 */
    if (type != PARAMETER_FLAG)
        return parse_number(text);
    return strcmp(text, "true") == 0    ? json_true()
           : strcmp(text, "false") == 0 ? json_false()
                                        : NULL;
}

static bool is_allowed(enum parameter_type type, const json_t *value)
{
    const json_int_t number = json_integer_value(value);

    if (type == PARAMETER_TEXT)
        return json_is_string(value) && json_string_length(value) <= PARAMETER_TEXT_MAX &&
               utf8_is_text(json_string_value(value), json_string_length(value));
    if (type == PARAMETER_FLAG)
        return json_is_boolean(value);
    return json_is_integer(value) && number >= types[type].min && number <= types[type].max;
}

/* Returns the borrowed object of a parameter; NULL when out of memory. */
static json_t *home_of(struct parameters *parameters, const struct parameter *parameter)
{
    json_t *home = parameter->local ? parameters->local : parameters->call;

    if (!parameter->object)
        return home;
    if (!json_object_get(home, parameter->object))
        json_object_set_new(home, parameter->object, json_object());
    return json_object_get(home, parameter->object);
}

/* Takes ownership of the value; NULL = it has the wrong type. */
static int add(struct parameters *parameters, const struct parameter *table, const char *name,
               json_t *value, struct parameter_reason *reason)
{
    const struct parameter *parameter = find(table, name);
    json_t *home;
    int r;

    if (!parameter || !is_allowed(parameter->type, value)) {
        json_decref(value);
        return bad(reason, name,
                   parameter ? types[parameter->type].allowed : "there is no such parameter");
    }
    home = home_of(parameters, parameter);
    if (home && json_object_get(home, name)) {
        json_decref(value);
        return bad(reason, name, "must be given once");
    }
    r = home ? json_object_set_new(home, name, value) : -1;
    return r < 0 ? -ENOMEM : 0;
}

int parameters_add_text(struct parameters *parameters, const struct parameter *table,
                        const char *name, const char *value, struct parameter_reason *reason)
{
    const struct parameter *parameter = find(table, name);

    return add(parameters, table, name, parameter ? parse(parameter->type, value) : NULL, reason);
}

int parameters_add_body(struct parameters *parameters, const struct parameter *table,
                        const char *body, size_t size, struct parameter_reason *reason)
{
    json_auto_t *root = json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL);
    const char *name;
    json_t *value;
    int r = 0;

    if (!json_is_object(root))
        return bad(reason, "the body", "must be a JSON object");
    json_object_foreach(root, name, value)
    {
        r = add(parameters, table, name, json_incref(value), reason);
        if (r != 0)
            break;
    }
    return r;
}

int parameters_complete(struct parameters *parameters, const struct parameter *table)
{
    const struct parameter *limit = find(table, "limit");

    if (!limit || limit->local || json_object_get(parameters->call, "limit"))
        return 0;
    return json_object_set_new(parameters->call, "limit", json_integer(PARAMETER_LIMIT_DEFAULT)) < 0
               ? -ENOMEM
               : 0;
}
