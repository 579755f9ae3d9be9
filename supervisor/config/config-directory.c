/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config-directory.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/syntax/strings.h"
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

static void sort(config_strv names)
{
    if (names)
        qsort(names, strv_length(names), sizeof(char *), compare_names);
}

int config_list(const char *directory, const char *suffix, config_strv *ret)
{
    _cleanup_strings_ struct config_strings names = {0};
    const struct dirent *entry;
    DIR *stream = opendir(directory);
    int r = 0;

    if (!stream)
        return -errno;
    while (r == 0 && (errno = 0, entry = readdir(stream)))
        if (entry->d_name[0] != '.' && config_ends_with(entry->d_name, suffix))
            r = strings_append(&names, entry->d_name);
    if (r == 0 && errno != 0)
        r = -errno;
    (void)closedir(stream);
    if (r < 0)
        return r;
    sort(names.strings);
    *ret = TAKE_PTR(names.strings);
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
    sort(names);
    *ret = names;
    return 0;
}

int config_each_file(const char *directory, const config_strv names, const char *suffix,
                     struct config_problems *problems,
                     int (*read)(void *userdata, const char *path), void *userdata)
{
    int r = 0;

    for (size_t i = 0; r == 0 && names && names[i]; i++) {
        _cleanup_free_ char *path = path_join(directory, names[i], suffix);

        r = path ? read(userdata, path) : -ENOMEM;
        if (r == -ENOENT) /* a dangling link, or just removed */
            r = config_problem_add(problems, path, 0, "no such file");
    }
    return r;
}

char *config_stem(const char *path, const char *suffix)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;

    return strndup(file, strlen(file) - strlen(suffix));
}
