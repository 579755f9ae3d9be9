/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/scratch.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* In memory, if possible: thousands of syncs take a while on a disk. */
void scratch_init(struct scratch *scratch)
{
    scratch_init_in(scratch, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

void scratch_init_in(struct scratch *scratch, const char *place)
{
    (void)snprintf(scratch->parent, sizeof(scratch->parent), "%s/troupe-store-XXXXXX", place);
    ck_assert_ptr_nonnull(mkdtemp(scratch->parent));
    (void)snprintf(scratch->directory, sizeof(scratch->directory), "%s/state", scratch->parent);
    (void)snprintf(scratch->path, sizeof(scratch->path), "%s/troupe.db", scratch->directory);
}

static int remove_entry(const char *path, const struct stat *unused, int type, struct FTW *position)
{
    return remove(path);
}

void scratch_deinit(struct scratch *scratch)
{
    (void)nftw(scratch->parent, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
