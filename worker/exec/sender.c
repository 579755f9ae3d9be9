/* SPDX-License-Identifier: MIT */
#include "worker/exec/sender.h"

#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Reads name and parent from "7 (name) S 1 …". The name may contain any byte except NUL. */
static void look_at(struct sender *sender)
{
    char path[32], text[256];
    _cleanup_close_ int fd = -1;
    const char *name, *end;
    int parent;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)sender->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return;
    text[n] = '\0';
    name = strchr(text, '(');
    end = strrchr(text, ')');
    if (!name || !end || end < name)
        return;
    (void)snprintf(sender->name, sizeof(sender->name), "%.*s", (int)(end - name - 1), name + 1);
    if (sscanf(end + 1, " %*c %d", &parent) == 1)
        sender->parent = parent;
}

void sender_look_up(struct sender *ret, const struct signalfd_siginfo *info)
{
    *ret = (struct sender){
        .pid = (pid_t)info->ssi_pid,
        .uid = info->ssi_uid,
        .by_kernel = info->ssi_code > 0,
    };
    if (ret->by_kernel)
        ret->pid = 0;
    if (ret->pid > 0)
        look_at(ret);
}

bool sender_is_supervisor(const struct sender *sender)
{
    /* 0 in the first process of a PID namespace: there, all processes outside have the pid 0. */
    const pid_t own = getppid();

    return !sender->by_kernel &&
           (sender->pid == own || (sender->pid > 0 && own > 0 && sender->parent == own));
}

char *sender_describe(const struct sender *sender, char *text, size_t size)
{
    const bool named = sender->name[0] != '\0';

    if (sender->by_kernel)
        (void)snprintf(text, size, "sent by the kernel");
    else if (sender->pid <= 0)
        (void)snprintf(text, size, "sent from another PID namespace");
    else
        (void)snprintf(text, size, "sent by process %d%s%s%s of uid %u", (int)sender->pid,
                       named ? " (" : "", sender->name, named ? ")" : "", (unsigned)sender->uid);
    return text;
}
