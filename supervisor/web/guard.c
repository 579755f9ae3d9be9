/* SPDX-License-Identifier: MIT */
#include "supervisor/web/guard.h"

#include "shared/base/cleanup.h"
#include <ctype.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define NAME_MAX_SIZE 253

static bool is_character(char c, bool address)
{
    return address ? isxdigit((unsigned char)c) || c == ':' || c == '.'
                   : isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/* Returns the size of the name or address at the beginning of a text; 0 if there is none. */
static size_t name_size(const char *text)
{
    bool address = *text == '[';
    size_t size = address;

    while (is_character(text[size], address))
        size++;
    if (address)
        return text[size] == ']' && size > 1 && size < NAME_MAX_SIZE ? size + 1 : 0;
    return size <= NAME_MAX_SIZE ? size : 0;
}

bool guard_is_name(const char *text)
{
    size_t size = name_size(text);

    return size > 0 && text[size] == '\0';
}

/* Returns whether the text is empty, or a colon and a port. */
static bool is_port(const char *text)
{
    size_t digits;

    if (*text == '\0')
        return true;
    digits = strspn(text + 1, "0123456789");
    return *text == ':' && digits > 0 && digits <= 5 && text[1 + digits] == '\0';
}

static bool is_one_of(const char *name, size_t size, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]) == size && strncasecmp(list[i], name, size) == 0)
            return true;
    return false;
}

bool guard_knows_host(const struct guard *guard, const char *host)
{
    static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t size = name_size(host);

    return size > 0 && is_port(host + size) &&
           (is_one_of(host, size, loopback, ELEMENTS(loopback)) ||
            is_one_of(host, size, guard->hosts, guard->n_hosts));
}

/* A page that this server has served has the origin "http://" or "https://" and its host. */
static bool is_own_origin(const char *origin, const char *host)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < ELEMENTS(schemes); i++)
        if (strncasecmp(origin, schemes[i], strlen(schemes[i])) == 0)
            return strcasecmp(origin + strlen(schemes[i]), host) == 0;
    return false;
}

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    const char *rest;

    if (!type || strncasecmp(type, json, sizeof(json) - 1) != 0)
        return false;
    rest = type + sizeof(json) - 1;
    return *rest == '\0' || *rest == ';' || *rest == ' ';
}

static bool is_too_large(const char *length)
{
    return length && (strlen(length) > 9 || strtoul(length, NULL, 10) > GUARD_BODY_MAX);
}

static unsigned refuse(unsigned status, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return status;
}

/* Refuses requests that a page of another site makes a browser send. */
static unsigned check_origin(const struct guard_request *request, const char **ret_reason)
{
    const char *site = request->fetch_site;

    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return refuse(MHD_HTTP_FORBIDDEN, "pages of other sites must not request this", ret_reason);
    if (request->origin && !is_own_origin(request->origin, request->host))
        return refuse(MHD_HTTP_FORBIDDEN, "the header Origin names another site", ret_reason);
    return 0;
}

static unsigned check_change(const struct guard *guard, const struct guard_request *request,
                             const char **ret_reason)
{
    if (!guard->allow_changes)
        return refuse(MHD_HTTP_FORBIDDEN,
                      "this page is read-only; troupe-web --allow-changes permits changes",
                      ret_reason);
    if (!is_json(request->content_type))
        return refuse(MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                      "a change must have the Content-Type application/json", ret_reason);
    if (is_too_large(request->content_length))
        return refuse(MHD_HTTP_CONTENT_TOO_LARGE, "a change must have at most 64 KiB", ret_reason);
    return 0;
}

unsigned guard_check(const struct guard *guard, const struct guard_request *request,
                     const char **ret_reason)
{
    unsigned status;

    if (request->n_hosts != 1)
        return refuse(MHD_HTTP_BAD_REQUEST, "a request must have one header Host", ret_reason);
    if (request->n_lengths > 1) /* a proxy may use another one of them */
        return refuse(MHD_HTTP_BAD_REQUEST,
                      "a request must have one header Content-Length or Transfer-Encoding",
                      ret_reason);
    if (!guard_knows_host(guard, request->host))
        return refuse(MHD_HTTP_MISDIRECTED_REQUEST,
                      "not served under this name; troupe-web --host=NAME allows it", ret_reason);
    if (request->page)
        return 0;
    status = check_origin(request, ret_reason);
    if (status == 0 && request->change)
        status = check_change(guard, request, ret_reason);
    if (status == 0 && (request->change || guard->require_token) &&
        !token_matches(&guard->token, request->authorization))
        return refuse(MHD_HTTP_UNAUTHORIZED,
                      "needs the token of troupe-web, as \"Authorization: Bearer TOKEN\"",
                      ret_reason);
    return status;
}

/* ---- token ---- */

static int check_file(int fd)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EINVAL;
    return status.st_mode & (S_IRWXO | S_IWGRP) ? -EPERM : 0;
}

/* Keeps the first line, if that can be a token. */
static int take_line(struct token *token, size_t size)
{
    token->size = 0;
    while (token->size < size && token->text[token->size] > ' ' && token->text[token->size] < 127)
        token->size++;
    if (token->size < TOKEN_SIZE_MIN || token->size > TOKEN_SIZE_MAX ||
        (token->size < size && token->text[token->size] != '\n'))
        return -EINVAL;
    token->text[token->size] = '\0';
    return 0;
}

int token_read(struct token *ret, const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n;
    int r = fd < 0 ? -errno : check_file(fd);

    *ret = (struct token){.size = 0};
    if (r < 0)
        return r;
    n = read(fd, ret->text, sizeof(ret->text));
    r = n < 0 ? -errno : take_line(ret, (size_t)n);
    if (r < 0)
        ret->size = 0;
    return r;
}

bool token_matches(const struct token *token, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    const char *given;
    size_t size;
    unsigned difference;

    if (token->size == 0 || !authorization ||
        strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
        return false;
    given = authorization + sizeof(scheme) - 1;
    size = strlen(given);
    difference = size != token->size;
    for (size_t i = 0; i < token->size; i++)
        difference |= (unsigned char)token->text[i] ^ (unsigned char)given[i < size ? i : size];
    return difference == 0;
}
