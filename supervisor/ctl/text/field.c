/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/field.h"

#include "shared/base/base64.h"
#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include <string.h>

const char *field_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static void replace(char *text, char from, char to)
{
    while ((text = strchr(text, from)))
        *text = to;
}

json_t *field_enum_new(const char *text)
{
    _cleanup_free_ char *copy = text ? strdup(text) : NULL;

    if (copy)
        replace(copy, '-', '_');
    return copy ? json_string(copy) : NULL;
}

json_t *field_given(usec_t time)
{
    return time > 0 ? json_integer((json_int_t)time) : NULL;
}

json_t *field_ago(usec_t span)
{
    const usec_t date = usec_sub(clock_realtime(), span);

    return span > 0 ? json_integer(date > 0 ? (json_int_t)date : 1) : NULL;
}

bool field_has(const json_t *object, const char *name)
{
    const json_t *member = json_object_get(object, name);

    return member && !json_is_null(member);
}

bool field_is(const json_t *object, const char *name, const char *text)
{
    return strcmp(field_text(object, name), text) == 0;
}

bool field_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

int64_t field_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

uint64_t field_count(const json_t *object, const char *name)
{
    int64_t value = field_int(object, name);

    return value < 0 ? 0 : (uint64_t)value;
}

usec_t field_usec(const json_t *object, const char *name)
{
    return field_count(object, name);
}

static json_t *payload_base64(const void *data, size_t size)
{
    size_t text_size = base64_size(size);
    _cleanup_free_ char *text = malloc(text_size + 1);

    if (!text)
        return NULL;
    base64_encode(text, data, size);
    return json_pack("{s:s, s:s%}", "encoding", "base64", "data", text, text_size);
}

json_t *field_payload_new(const void *data, size_t size)
{
    if (!utf8_is_text(data, size))
        return payload_base64(data, size);
    return json_pack("{s:s, s:s%}", "encoding", "utf8", "data", data, size);
}

int field_payload(const json_t *object, const char *name, char **ret, size_t *ret_size)
{
    const json_t *payload = json_object_get(object, name);
    const json_t *data = json_object_get(payload, "data");
    const char *text = json_string_value(data);
    size_t size = json_string_length(data);
    _cleanup_free_ char *bytes = NULL;

    *ret = NULL;
    *ret_size = 0;
    if (!field_has(object, name))
        return 0;
    if (!text)
        return -EPROTO;
    bytes = malloc(size + 1);
    if (!bytes)
        return -ENOMEM;
    if (!field_is(payload, "encoding", "base64"))
        memcpy(bytes, text, size);
    else if (base64_decode(bytes, &size, text, size) < 0)
        return -EPROTO;
    bytes[size] = '\0';
    *ret_size = size;
    *ret = TAKE_PTR(bytes);
    return 0;
}
