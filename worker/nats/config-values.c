/* SPDX-License-Identifier: MIT */
/* Checks values of the configuration. */
#include "worker/nats/config.h"

#include "shared/base/log.h"
#include "shared/protocol/job-id.h"
#include "worker/nats/message.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* "STREAM:SEQUENCE:TRY" must fit into the id of a job, TROUPE_ID_MAX. */
#define STREAM_MAX  32u
#define MACHINE_MAX 64u
#define NKEY_LENGTH 56u

#define URL_SEPARATORS ", "
#define PORT_DIGITS    5

/* libnats ignores a scheme that it does not know. */
static bool has_valid_scheme(const char *url, size_t length)
{
    static const char *const schemes[] = {"nats://", "tls://"};

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0)
            return length > strlen(schemes[i]);
    return !memmem(url, length, "://", strlen("://"));
}

/* Returns the part after the last `c`; the URL itself if there is none. libnats does the same. */
static const char *after_last(const char *url, const char *end, char c)
{
    const char *last = memrchr(url, c, (size_t)(end - url));

    return last ? last + 1 : url;
}

/* libnats would show an invalid port, which may be part of a password with a comma. */
static bool has_valid_port(const char *url, size_t length)
{
    const char *end = url + length, *scheme = memmem(url, length, "://", strlen("://"));
    const char *start = scheme ? scheme + strlen("://") : url;
    const char *host = after_last(after_last(start, end, '@'), end, ']');
    const char *port = after_last(host, end, ':');

    if (port == host && *host != ':')
        return true;
    for (const char *c = port; c < end; c++)
        if (*c < '0' || *c > '9')
            return false;
    return port < end && end - port <= PORT_DIGITS;
}

static bool is_url(const char *url, size_t length)
{
    return has_valid_scheme(url, length) && has_valid_port(url, length);
}

bool config_valid_urls(const char *value, const char *group)
{
    size_t n = 0;

    (void)group;
    for (;;) {
        const size_t length = strcspn(value += strspn(value, URL_SEPARATORS), URL_SEPARATORS);

        if (length == 0)
            return n > 0 && n <= CONFIG_URLS_MAX;
        if (!is_url(value, length))
            return false;
        value += length;
        n++;
    }
}

bool config_valid_nkey(const char *value, const char *group)
{
    (void)group;
    return *value == 'U' && strlen(value) == NKEY_LENGTH &&
           strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == NKEY_LENGTH;
}

bool config_valid_name(const char *value, const char *group)
{
    (void)group;
    return protocol_name_valid(value, strlen(value)) && !strpbrk(value, ".:@");
}

bool config_valid_stream(const char *value, const char *group)
{
    return strlen(value) <= STREAM_MAX && config_valid_name(value, group);
}

/* A key of a bucket may have dots in it. */
bool config_valid_machine(const char *value, const char *group)
{
    const size_t length = strlen(value);

    (void)group;
    return length >= 1 && length <= MACHINE_MAX && value[0] != '.' && value[length - 1] != '.' &&
           !strstr(value, "..") && protocol_name_valid(value, length) && !strpbrk(value, ":@");
}

/* Whether it is "jobs.GROUP.", and parts that may be "*", and the last ">". */
bool config_valid_filter(const char *value, const char *group)
{
    char prefix[160];
    const int length = snprintf(prefix, sizeof(prefix), MESSAGE_SUBJECT "%s.", group ? group : "");
    const char *end = value + strlen(value), *part;

    if (!group)
        return true;
    if (strncmp(value, prefix, (size_t)length) != 0)
        return false;
    for (part = value + length; part <= end; part += strcspn(part, ".") + 1) {
        const size_t size = strcspn(part, ".");

        if (size == 0 || (size > 1 && strcspn(part, "*>") < size) ||
            (*part == '>' && part[size] != '\0'))
            return false;
    }
    return strpbrk(value, " \t") == NULL;
}

int config_check_group(const char *group)
{
    if (config_valid_name(group, NULL))
        return 0;
    log_error("group %s: the name cannot be part of a subject; allowed: A-Z a-z 0-9 _ -, not "
              "beginning with -",
              group);
    return -EINVAL;
}

size_t config_split_urls(char *text, const char *urls[static CONFIG_URLS_MAX])
{
    size_t n = 0;

    for (char *url; (url = strsep(&text, URL_SEPARATORS));) {
        if (*url == '\0')
            continue;
        if (n < CONFIG_URLS_MAX)
            urls[n] = url;
        n++;
    }
    return n;
}
