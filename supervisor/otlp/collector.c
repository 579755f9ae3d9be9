/* SPDX-License-Identifier: MIT */
#include "supervisor/otlp/collector.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/quantity.h"
#include <stdio.h>
#include <string.h>

#define ENDPOINT "OTEL_EXPORTER_OTLP_ENDPOINT"
#define HEADERS  "OTEL_EXPORTER_OTLP_HEADERS"
#define TIMEOUT  "OTEL_EXPORTER_OTLP_TIMEOUT"

#define DEFAULT_ENDPOINT "http://localhost:4318"
#define DEFAULT_TIMEOUT  10000u /* ms */
#define TIMEOUT_MAX      600000u
#define PATH             "/v1/traces"

/* An empty variable is like none. */
static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value && *value ? value : otherwise;
}

/* Reads an address, adds the path, and takes the name from it. Returns 0, -EINVAL or -ENOMEM. */
static int take_url(struct collector *collector, CURLU *parts, const char *base)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL, *url = NULL;
    _cleanup_free_ char *longer = NULL;
    size_t length;
    int r = -EINVAL;

    if (curl_url_set(parts, CURLUPART_URL, base, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_PATH, &path, 0) == CURLUE_OK &&
        (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0)) {
        length = strlen(path);
        while (length > 0 && path[length - 1] == '/')
            length--;
        if (asprintf(&longer, "%.*s" PATH, (int)length, path) >= 0 &&
            asprintf(&collector->name, "%s://%s:%s", scheme, host, port) >= 0 &&
            curl_url_set(parts, CURLUPART_PATH, longer, 0) == CURLUE_OK &&
            curl_url_get(parts, CURLUPART_URL, &url, 0) == CURLUE_OK)
            collector->url = strdup(url);
        r = collector->url ? 0 : -ENOMEM;
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_free(url);
    return r;
}

static int read_endpoint(struct collector *collector)
{
    CURLU *parts = curl_url();
    int r = parts ? take_url(collector, parts, variable(ENDPOINT, DEFAULT_ENDPOINT)) : -ENOMEM;

    curl_url_cleanup(parts);
    if (r == -EINVAL)
        log_error(ENDPOINT ": must be an address such as " DEFAULT_ENDPOINT);
    return r;
}

static int add_header(struct collector *collector, const char *line)
{
    struct curl_slist *longer = curl_slist_append(collector->headers, line);

    if (!longer)
        return -ENOMEM;
    collector->headers = longer;
    return 0;
}

/* What RFC 9110 calls a token. */
static bool is_token(const char *text)
{
    return *text != '\0' && text[strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

static bool is_printable(const char *text, int size)
{
    for (int i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return size > 0;
}

static char *trim(char *text)
{
    size_t length;

    text += strspn(text, " \t");
    length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        text[--length] = '\0';
    return text;
}

/* `pair` is KEY=VALUE, with the value percent-encoded. */
static int read_header(struct collector *collector, char *pair)
{
    _cleanup_free_ char *line = NULL;
    char *value = strchr(pair, '='), *decoded;
    int size = 0, r = -EINVAL;

    if (!value)
        return -EINVAL;
    *value++ = '\0';
    pair = trim(pair);
    value = trim(value);
    decoded = curl_easy_unescape(NULL, value, 0, &size);
    if (decoded && is_token(pair) && is_printable(decoded, size))
        r = asprintf(&line, "%s: %s", pair, decoded) < 0 ? -ENOMEM : add_header(collector, line);
    curl_free(decoded);
    return r;
}

static int read_headers(struct collector *collector)
{
    _cleanup_free_ char *copy = strdup(variable(HEADERS, ""));
    int r = copy ? add_header(collector, "Content-Type: application/json") : -ENOMEM;
    char *rest;

    /* Keeps libcurl from asking before each body (100-continue). */
    if (r == 0)
        r = add_header(collector, "Expect:");
    for (char *pair = copy ? strtok_r(copy, ",", &rest) : NULL; r == 0 && pair;
         pair = strtok_r(NULL, ",", &rest))
        r = read_header(collector, pair);
    if (r == -EINVAL)
        log_error(HEADERS ": must be NAME=VALUE,... with percent-encoded values");
    return r;
}

static int read_timeout(struct collector *collector)
{
    const char *text = variable(TIMEOUT, NULL), *end = "";
    uint64_t msec = DEFAULT_TIMEOUT;

    if (text && (quantity_parse_number(text, &msec, &end) < 0 || *end != '\0' || msec == 0 ||
                 msec > TIMEOUT_MAX)) {
        log_error(TIMEOUT ": must be 1 to 600000 milliseconds");
        return -EINVAL;
    }
    collector->timeout = msec * USEC_PER_MSEC;
    return 0;
}

int collector_init(struct collector *collector)
{
    int r;

    *collector = (struct collector){.timeout = 0};
    r = read_endpoint(collector);
    if (r == 0)
        r = read_headers(collector);
    return r == 0 ? read_timeout(collector) : r;
}

void collector_deinit(struct collector *collector)
{
    free(collector->url);
    free(collector->name);
    curl_slist_free_all(collector->headers);
}
