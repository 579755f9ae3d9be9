/* SPDX-License-Identifier: MIT */
#include "supervisor/web/token.h"

#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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
