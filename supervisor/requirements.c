/* SPDX-License-Identifier: MIT */
#include "supervisor/requirements.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static int try_clone3(void)
{
    /* The size is invalid, so nothing is made. The C library uses clone() only after ENOSYS. */
    return syscall(SYS_clone3, NULL, 0) < 0 && errno == EPERM ? -errno : 0;
}

static int try_memfd_create(void)
{
    _cleanup_close_ int fd = memfd_create("requirement", MFD_CLOEXEC);

    return fd < 0 ? -errno : 0;
}

static int try_pidfds(bool signal)
{
    _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    if (fd < 0)
        return signal ? 0 : -errno;
    return signal && syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) < 0 ? -errno : 0;
}

static int try_pidfd_open(void)
{
    return try_pidfds(false);
}

static int try_pidfd_send_signal(void)
{
    return try_pidfds(true);
}

static int try_faccessat2(void)
{
    /* Other errors concern the file; after ENOSYS, the C library does without this call. */
    return faccessat(AT_FDCWD, "/", F_OK, AT_EACCESS) < 0 && errno == EPERM ? -errno : 0;
}

static const struct {
    const char *call;
    int (*attempt)(void); /* 0 or -errno */
} requirements[] = {
    {"clone3", try_clone3},         {"memfd_create", try_memfd_create},
    {"pidfd_open", try_pidfd_open}, {"pidfd_send_signal", try_pidfd_send_signal},
    {"faccessat2", try_faccessat2},
};

/* Returns whether the call itself is refused; other errors, such as EMFILE, have other causes. */
static bool is_refusal(int error)
{
    return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

bool requirements_met(void)
{
    bool met = true;

    for (size_t i = 0; i < ELEMENTS(requirements); i++) {
        const int r = requirements[i].attempt();

        if (!is_refusal(r))
            continue;
        log_error(
            "cannot start: the system call %s is refused: %s; allowed: a seccomp filter, such "
            "as the profile of a container, that permits it",
            requirements[i].call, strerror(-r));
        met = false;
    }
    return met;
}
