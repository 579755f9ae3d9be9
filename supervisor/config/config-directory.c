/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config-directory.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/syntax/path.h"
#include "supervisor/config/syntax/strv.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool config_ends_with(const char *text, const char *suffix)
{
    size_t size = strlen(text), suffix_size = strlen(suffix);

    return size > suffix_size && strcmp(text + size - suffix_size, suffix) == 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int config_list(const char *directory, const char *suffix, config_strv *ret)
{
    _cleanup_strv_ config_strv names = NULL;
    const struct dirent *entry;
    DIR *stream = opendir(directory);
    int r = 0;

    if (!stream)
        return -errno;
    while (r == 0 && (errno = 0, entry = readdir(stream)))
        if (entry->d_name[0] != '.' && config_ends_with(entry->d_name, suffix))
            r = strv_append(&names, entry->d_name);
    if (r == 0 && errno != 0)
        r = -errno;
    (void)closedir(stream);
    if (r < 0)
        return r;
    if (names)
        qsort(names, strv_length((const char *const *)names), sizeof(char *), compare_names);
    *ret = TAKE_PTR(names);
    return 0;
}

int config_list_stems(const char *directory, const char *suffix, config_strv *ret)
{
    config_strv names = NULL;
    int r = config_list(directory, suffix, &names);

    if (r < 0)
        return r;
    for (char **name = names; name && *name; name++)
        (*name)[strlen(*name) - strlen(suffix)] = '\0';
    if (names)
        qsort(names, strv_length((const char *const *)names), sizeof(char *), compare_names);
    *ret = names;
    return 0;
}

int config_join(char **ret, const char *directory, const char *name, const char *suffix)
{
    *ret = path_join(directory, strlen(directory), name, suffix);
    return *ret ? 0 : -ENOMEM;
}
