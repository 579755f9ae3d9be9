/* SPDX-License-Identifier: MIT */
#include "user.h"

#include <errno.h>
#include <grp.h>
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
