/* SPDX-License-Identifier: MIT */
#include "user.h"

#include "strv.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

int user_groups(const char *user, gid_t gid, gid_t **ret, size_t *ret_n)
{
    gid_t *groups;
    int n = 0;

    *ret = NULL;
    *ret_n = 0;
    if (!user)
        return 0;
    (void)getgrouplist(user, gid, NULL, &n);
    groups = calloc((size_t)n + 1, sizeof(*groups));
    if (!groups)
        return -ENOMEM;
    if (getgrouplist(user, gid, groups, &n) < 0)
        n = 0; /* it changed in between */
    *ret = groups;
    *ret_n = (size_t)n;
    return 0;
}

static int append_variable(config_strv *strings, const char *name, const char *value)
{
    char variable[4096];
    int n = snprintf(variable, sizeof(variable), "%s=%s", name, value);

    return n < 0 || (size_t)n >= sizeof(variable) ? 0 : strv_append(strings, variable);
}

int user_environment(const char *user, config_strv *ret)
{
    const struct passwd *entry = user ? getpwnam(user) : NULL;
    config_strv strings = NULL;
    int r;

    *ret = NULL;
    if (!entry)
        return 0;
    r = append_variable(&strings, "USER", entry->pw_name);
    if (r == 0)
        r = append_variable(&strings, "LOGNAME", entry->pw_name);
    if (r == 0)
        r = append_variable(&strings, "HOME", entry->pw_dir);
    if (r == 0)
        r = append_variable(&strings, "SHELL", entry->pw_shell);
    if (r < 0) {
        strv_free(strings);
        return r;
    }
    *ret = strings;
    return 0;
}
