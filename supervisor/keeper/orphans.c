/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/orphans.h"
#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int list_fd = -1;
static pid_t cut; /* the digits so far of a number that the end of the last read has cut */

void orphans_open(void)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    list_fd = open(path, O_RDONLY | O_CLOEXEC);
}

void orphans_close(void)
{
    list_fd = close_fd(list_fd);
}

bool orphans_begin(void)
{
    cut = 0;
    return list_fd >= 0 && lseek(list_fd, 0, SEEK_SET) == 0;
}

/* The file has numbers, each followed by a space. */
bool orphans_next(void (*fn)(pid_t pid))
{
    char text[4096];
    const ssize_t n = read(list_fd, text, sizeof(text));
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            cut = cut * 10 + (text[i] - '0');
            continue;
        }
        if (cut > 0)
            fn(cut);
        cut = 0;
    }
    return n > 0;
}
