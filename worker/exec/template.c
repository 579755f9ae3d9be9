/* SPDX-License-Identifier: MIT */
#include "worker/exec/template.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

/* The kernel's MAX_ARG_STRLEN: 32 pages, including the NUL. */
#define ARGUMENT_MAX ((size_t)131072)

struct piece {
    const void *data;
    size_t size;
};

/* Finds the value for the placeholder at the start of `text`. Returns the placeholder's length,
 * 0 if there is none. */
static size_t placeholder(const char *text, const struct template_values *values,
                          const char *attempt, struct piece *ret)
{
    const struct {
        const char *name;
        struct piece piece;
    } known[] = {
        {"{}", {values->payload, values->payload_size}},
        {"{id}", {values->id, strlen(values->id)}},
        {"{key}", {values->key, values->key_size}},
        {"{attempt}", {attempt, strlen(attempt)}},
    };

    for (size_t i = 0; i < ELEMENTS(known); i++) {
        size_t length = strlen(known[i].name);

        if (strncmp(text, known[i].name, length) == 0) {
            *ret = known[i].piece;
            return length;
        }
    }
    return 0;
}

/* Appends a piece, within the kernel's limit for an argument. */
static int append(struct buffer *text, const struct piece *piece)
{
    if (piece->size > 0 && memchr(piece->data, '\0', piece->size))
        return -EINVAL;
    if (piece->size >= ARGUMENT_MAX - text->size)
        return -E2BIG;
    buffer_add(text, piece->data, piece->size);
    return text->failed ? -ENOMEM : 0;
}

static int expand_argument(const char *from, const struct template_values *values, char **ret)
{
    struct buffer text = BUFFER_NULL;
    char attempt[16];
    int r = 0;

    snprintf(attempt, sizeof(attempt), "%u", values->attempt);
    while (r == 0 && *from != '\0') {
        struct piece piece;
        size_t length = 0;

        if (*from == '{')
            length = placeholder(from, values, attempt, &piece);
        if (length == 0) {
            length = 1 + strcspn(from + 1, "{");
            piece = (struct piece){from, length};
        }
        r = append(&text, &piece);
        from += length;
    }
    *ret = r == 0 ? buffer_take(&text, NULL) : NULL;
    buffer_deinit(&text);
    return r == 0 && !*ret ? -ENOMEM : r;
}

bool template_takes_payload(char *const *argv)
{
    for (size_t i = 1; argv[i]; i++)
        if (strstr(argv[i], "{}"))
            return true;
    return false;
}

int template_expand(char *const *argv, const struct template_values *values, char ***ret)
{
    size_t count = 0;
    char **expanded;

    while (argv[count])
        count++;
    expanded = calloc(count + 1, sizeof(*expanded));
    if (!expanded)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        int r = 0;

        if (i > 0)
            r = expand_argument(argv[i], values, &expanded[i]);
        else if (!(expanded[i] = strdup(argv[i])))
            r = -ENOMEM;
        if (r < 0) {
            template_free(expanded);
            return r;
        }
    }
    *ret = expanded;
    return 0;
}

void template_free(char **argv)
{
    if (!argv)
        return;
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
    free(argv);
}

static int check_program(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || access(path, X_OK) < 0)
        return -EACCES;
    return 0;
}

static int copy_if_program(const char *path, char **ret)
{
    int r = check_program(path);

    if (r < 0)
        return r == -ENOTDIR || r == -ENAMETOOLONG ? -ENOENT : r;
    *ret = strdup(path);
    return *ret ? 0 : -ENOMEM;
}

int template_find_program(const char *program, char **ret)
{
    const char *directory = getenv("PATH");
    int result = -ENOENT;

    if (*program == '\0')
        return -ENOENT;
    if (strchr(program, '/'))
        return copy_if_program(program, ret);
    if (!directory)
        directory = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        size_t length = strcspn(directory, ":");
        char path[PATH_MAX];
        int r;

        /* An empty element means the working directory. */
        r = snprintf(path, sizeof(path), "%.*s/%s", length > 0 ? (int)length : 1,
                     length > 0 ? directory : ".", program);
        r = r < (int)sizeof(path) ? copy_if_program(path, ret) : -ENOENT;
        if (r == 0 || r == -ENOMEM)
            return r;
        if (r == -EACCES)
            result = r;
        if (directory[length] == '\0')
            return result;
        directory += length + 1;
    }
}

bool template_has_private_root(void)
{
    struct statfs root;

    /* PrivateRoot= mounts a read-only root in memory. */
    return statfs("/", &root) == 0 && root.f_type == TMPFS_MAGIC && (root.f_flags & ST_RDONLY);
}

bool template_is_hidden(const void *payload, size_t size)
{
    char path[PATH_MAX];
    struct statfs found;

    if (size < 2 || size >= sizeof(path) || *(const char *)payload != '/')
        return false;
    memcpy(path, payload, size);
    path[size] = '\0';
    if (access(path, F_OK) == 0 || !template_has_private_root())
        return false;
    /* Directories of the machine that the worker may see are not in memory. */
    do
        *strrchr(path, '/') = '\0';
    while (*path != '\0' && statfs(path, &found) < 0);
    return *path == '\0' || found.f_type == TMPFS_MAGIC;
}
