/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/orphans.h"
#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int list_fd = -1;

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

/* The file has numbers, each followed by a space. A read may end within a number. */
void orphans_each(void (*fn)(pid_t pid))
{
    char text[4096];
    pid_t pid = 0;
    if (list_fd < 0 || lseek(list_fd, 0, SEEK_SET) < 0)
        return;
    for (ssize_t n; (n = read(list_fd, text, sizeof(text))) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid > 0)
                fn(pid);
            pid = 0;
        }
    }
}
