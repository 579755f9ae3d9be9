/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-root.h"
#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool sandbox_root_matches(const struct sandbox_root *root, const void *seen, size_t size)
{
    return root->fds[SANDBOX_ROOT_NAMESPACE] >= 0 && root->size == size &&
           memcmp(root->seen, seen, size) == 0;
}

static int copy(void)
{
    return unshare(CLONE_NEWNS) < 0 ? -errno : 0;
}

/* Where the keeper's root is that of a chroot, a process that joins the namespace gets what is
 * above. */
int sandbox_root_enter(const struct sandbox_root *root)
{
    if (setns(root->fds[SANDBOX_ROOT_NAMESPACE], CLONE_NEWNS) < 0 ||
        fchdir(root->fds[SANDBOX_ROOT_TOP]) < 0 || chroot(".") < 0)
        return -errno;
    return copy();
}

int sandbox_root_offer(const struct sandbox_root *root, int mounts, const void *seen, size_t size)
{
    _cleanup_close_ int top = open("/", O_PATH | O_CLOEXEC);
    const int fds[_SANDBOX_ROOT_N_FDS] = {
        [SANDBOX_ROOT_NAMESPACE] = mounts,
        [SANDBOX_ROOT_TOP] = top,
    };
    union scm_control control;
    struct iovec parts[] = {{(void *)(uintptr_t)&root->id, sizeof(root->id)},
                            {(void *)(uintptr_t)seen, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    scm_attach(&message, &control, fds, ELEMENTS(fds));
    if (top < 0 || size > SANDBOX_ROOT_SEEN_MAX ||
        sendmsg(root->offers, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return 0;
    return copy();
}
