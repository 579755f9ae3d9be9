/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-namespace.h"
#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

static void drop(int fd)
{
    close_fd(fd);
}

/* Returns a descriptor of its own, -EAGAIN if there is none, or -errno. What is in the storage
 * stays there, so it is never empty again. */
static int copy(int storage)
{
    union scm_control control;
    struct msghdr header = {.msg_control = &control, .msg_controllen = sizeof(control)};
    int fd;
    if (recvmsg(storage, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
        return -errno;
    return scm_take(&header, &fd, 1, drop) == 1 ? fd : -EBADMSG;
}

static int put(int storage, int fd)
{
    union scm_control control;
    struct msghdr header = {0};
    scm_attach(&header, &control, &fd, 1);
    return sendmsg(storage, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Returns 0, -EAGAIN if the storage is empty, or -errno. */
static int enter(int storage, int type)
{
    _cleanup_close_ int fd = copy(storage);
    if (fd < 0)
        return fd;
    return setns(fd, type) < 0 ? -errno : 0;
}

static int make_and_put(int storage, int (*make)(void))
{
    _cleanup_close_ int fd = make();
    return fd < 0 ? fd : put(storage, fd);
}

/* The lock ends with the process, if not earlier: one that is killed here leaves the storage
 * empty. */
static int enter_or_make(const struct sandbox_namespace *namespace, int type, int (*make)(void))
{
    struct flock lock = {.l_type = F_WRLCK};
    int r;
    if (fcntl(namespace->storage[0], F_SETLKW, &lock) < 0)
        return -errno;
    r = enter(namespace->storage[0], type);
    if (r == -EAGAIN)
        r = make_and_put(namespace->storage[1], make);
    lock.l_type = F_UNLCK;
    (void)fcntl(namespace->storage[0], F_SETLK, &lock);
    return r;
}

int sandbox_namespace_join(const struct sandbox_namespace *namespace, int type, int (*make)(void))
{
    const int r = enter(namespace->storage[0], type);
    return r == -EAGAIN ? enter_or_make(namespace, type, make) : r;
}
