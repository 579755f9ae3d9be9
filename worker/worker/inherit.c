/* SPDX-License-Identifier: MIT */
#include "worker/worker/inherit.h"

#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

static int parse_number(const char *text, uint64_t *ret)
{
    char *end;

    /* strtoull() accepts blanks and a sign. */
    if (!text || *text < '0' || *text > '9')
        return -EPROTO;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno != 0 || *end != '\0' ? -EPROTO : 0;
}

static int take_descriptor(const char *variable, int *ret)
{
    uint64_t number;
    int flags, r;

    r = parse_number(getenv(variable), &number);
    if (r < 0)
        return r;
    /* Not a standard stream, since an error would close it. */
    if (number <= STDERR_FILENO || number > INT_MAX)
        return -EPROTO;
    flags = fcntl((int)number, F_GETFD);
    if (flags < 0 || fcntl((int)number, F_SETFD, flags | FD_CLOEXEC) < 0)
        return -EPROTO;
    *ret = (int)number;
    return 0;
}

static int check_control(int fd)
{
    int type;
    socklen_t size = sizeof(type);

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET)
        return -EPROTO;
    return 0;
}

static int take_all(struct inherited *inherited)
{
    const char *name = getenv("TROUPE_WORKER"), *tmp = getenv("TROUPE_PRIVATE_TMP");
    int r = take_descriptor("TROUPE_INBOX", &inherited->fds.inbox);

    if (r == 0)
        r = take_descriptor("TROUPE_OUTBOX", &inherited->fds.outbox);
    if (r == 0)
        r = take_descriptor("TROUPE_CONTROL", &inherited->control);
    if (r == 0)
        r = take_descriptor("TROUPE_WAIT", &inherited->fds.wait_fd);
    if (r == 0 && getenv("TROUPE_WAKE"))
        r = take_descriptor("TROUPE_WAKE", &inherited->fds.wake_fd);
    if (r == 0)
        r = parse_number(getenv("TROUPE_GENERATION"), &inherited->generation);
    if (r == 0)
        r = check_control(inherited->control);
    if (r < 0)
        return r;
    if (!name)
        return -EPROTO;
    inherited->job_tmp = tmp && strcmp(tmp, "job") == 0;
    inherited->name = strdup(name);
    return inherited->name ? 0 : -ENOMEM;
}

static void unset_all(void)
{
    static const char *const variables[] = {
        "TROUPE_INBOX", "TROUPE_OUTBOX", "TROUPE_CONTROL",    "TROUPE_WAIT",
        "TROUPE_WAKE",  "TROUPE_WORKER", "TROUPE_GENERATION", "TROUPE_PRIVATE_TMP",
    };

    for (size_t i = 0; i < ELEMENTS(variables); i++)
        (void)unsetenv(variables[i]);
}

int inherit(struct inherited *ret)
{
    struct inherited inherited = INHERITED_NULL;
    int r;

    if (!getenv("TROUPE_INBOX"))
        return -ENOTCONN;
    r = take_all(&inherited);
    unset_all();
    if (r < 0) {
        inherited_deinit(&inherited);
        return r;
    }
    *ret = inherited;
    return 0;
}

void inherited_deinit(struct inherited *inherited)
{
    close_fd(inherited->fds.inbox);
    close_fd(inherited->fds.outbox);
    close_fd(inherited->fds.wait_fd);
    close_fd(inherited->fds.wake_fd);
    close_fd(inherited->control);
    free(inherited->name);
    *inherited = (struct inherited)INHERITED_NULL;
}
