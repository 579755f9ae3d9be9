/* SPDX-License-Identifier: MIT */

#include "supervisor/varlink/reply.h"

#include "shared/base/base64.h"
#include "shared/base/utf8.h"
#include "supervisor/varlink/account.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void reply_init(struct reply *reply, struct account *account, size_t limit)
{
    *reply = (struct reply){.account = account, .limit = limit};
}

void reply_deinit(struct reply *reply)
{
    account_free(reply->account, ACCOUNT_ANSWERS, &reply->data, &reply->allocated);
    reply_reset(reply);
}

void reply_reset(struct reply *reply)
{
    reply->size = 0;
    reply->error = 0;
    reply->separate = false;
}

/* Room for `size` more bytes; NULL after a failure. */
static char *reserve(struct reply *reply, size_t size)
{
    size_t wanted;

    if (reply->error != 0)
        return NULL;
    if (size > reply->limit - reply->size) {
        reply->error = -EMSGSIZE;
        return NULL;
    }
    if (reply->size + size <= reply->allocated)
        return reply->data + reply->size;
    wanted = reply->allocated < 512 ? 1024 : reply->allocated * 2;
    if (wanted < reply->size + size)
        wanted = reply->size + size;
    reply->error =
        account_realloc(reply->account, ACCOUNT_ANSWERS, &reply->data, &reply->allocated, wanted);
    return reply->error < 0 ? NULL : reply->data + reply->size;
}

void reply_raw(struct reply *reply, const char *text, size_t size)
{
    char *at = reserve(reply, size);

    if (!at)
        return;
    memcpy(at, text, size);
    reply->size += size;
}

static void member(struct reply *reply, const char *key)
{
    if (reply->separate)
        reply_raw(reply, ",", 1);
    reply->separate = true;
    if (!key)
        return;
    reply_raw(reply, "\"", 1);
    reply_raw(reply, key, strlen(key));
    reply_raw(reply, "\":", 2);
}

void reply_object(struct reply *reply, const char *key)
{
    member(reply, key);
    reply_raw(reply, "{", 1);
    reply->separate = false;
}

void reply_end_object(struct reply *reply)
{
    reply_raw(reply, "}", 1);
    reply->separate = true;
}

void reply_array(struct reply *reply, const char *key)
{
    member(reply, key);
    reply_raw(reply, "[", 1);
    reply->separate = false;
}

void reply_end_array(struct reply *reply)
{
    reply_raw(reply, "]", 1);
    reply->separate = true;
}

static void escaped(struct reply *reply, uint8_t c)
{
    static const char *const short_forms[] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n",  ['\f'] = "\\f",
        ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\",
    };
    static const char digits[] = "0123456789abcdef";
    const char text[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};

    if (c < sizeof(short_forms) / sizeof(short_forms[0]) && short_forms[c]) {
        reply_raw(reply, short_forms[c], 2);
        return;
    }
    reply_raw(reply, text, sizeof(text));
}

static bool plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void reply_text(struct reply *reply, const char *key, const void *data, size_t size)
{
    const char *s = data;

    member(reply, key);
    reply_raw(reply, "\"", 1);
    for (size_t i = 0; i < size && reply->error == 0;) {
        size_t run = 0, length;

        while (i + run < size && plain((uint8_t)s[i + run]))
            run++;
        if (run > 0)
            reply_raw(reply, s + i, run);
        i += run;
        if (i == size)
            break;
        length = s[i] != '\0' ? utf8_character(s + i, size - i) : 0;
        if (length == 0)
            reply_raw(reply, "\xef\xbf\xbd", 3);
        else if (length == 1)
            escaped(reply, (uint8_t)s[i]);
        else
            reply_raw(reply, s + i, length);
        i += length == 0 ? 1 : length;
    }
    reply_raw(reply, "\"", 1);
}

void reply_string(struct reply *reply, const char *key, const char *text)
{
    reply_text(reply, key, text, strlen(text));
}

void reply_string_if(struct reply *reply, const char *key, const char *text)
{
    if (text && *text != '\0')
        reply_string(reply, key, text);
}

void reply_uint_if(struct reply *reply, const char *key, uint64_t value)
{
    if (value != 0)
        reply_uint(reply, key, value);
}

void reply_int(struct reply *reply, const char *key, int64_t value)
{
    char digits[24], *at = digits + sizeof(digits);
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--at = '-';
    member(reply, key);
    reply_raw(reply, at, (size_t)(digits + sizeof(digits) - at));
}

void reply_uint(struct reply *reply, const char *key, uint64_t value)
{
    reply_int(reply, key, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

void reply_reference(struct reply *reply, uint64_t value)
{
    char digits[24];

    (void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
    reply_string(reply, "reference", digits);
}

void reply_bool(struct reply *reply, const char *key, bool value)
{
    member(reply, key);
    reply_raw(reply, value ? "true" : "false", value ? 4 : 5);
}

void reply_payload(struct reply *reply, const char *key, const void *data, size_t size)
{
    char *at;

    reply_object(reply, key);
    if (utf8_is_text(data, size)) {
        reply_string(reply, "encoding", "utf8");
        reply_text(reply, "data", data, size);
    } else {
        reply_string(reply, "encoding", "base64");
        member(reply, "data");
        reply_raw(reply, "\"", 1);
        at = size <= reply->limit ? reserve(reply, base64_size(size)) : NULL;
        if (at) {
            base64_encode(at, data, size);
            reply->size += base64_size(size);
        } else if (reply->error == 0) {
            reply->error = -EMSGSIZE;
        }
        reply_raw(reply, "\"", 1);
    }
    reply_end_object(reply);
}

struct reply_mark reply_mark(const struct reply *reply)
{
    return (struct reply_mark){reply->size, reply->error, reply->separate};
}

void reply_rewind(struct reply *reply, struct reply_mark mark)
{
    reply->size = mark.size;
    reply->error = mark.error;
    reply->separate = mark.separate;
}
