/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/ringer.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Reports that the kernel keeps at least until they are taken. */
#define N_REPORTS 64

void ringer_init(struct ringer *ringer)
{
    *ringer = (struct ringer){.file = open("/dev/null", O_RDONLY | O_CLOEXEC)};
}

void ringer_deinit(struct ringer *ringer)
{
    if (ringer->context != 0)
        (void)syscall(SYS_io_destroy, ringer->context);
    close_fd(ringer->file);
}

/*
 * At the first use: the end of a process that has a context takes the kernel milliseconds. Others
 * may have taken all requests that the machine permits (fs.aio-max-nr), and give them back later.
 */
bool ringer_works(struct ringer *ringer)
{
    if (ringer->context != 0 || ringer->refused)
        return !ringer->refused;
    ringer->refused = ringer->file < 0 || fault_inject("aio") < 0 ||
                      (syscall(SYS_io_setup, N_REPORTS, &ringer->context) < 0 && errno != EAGAIN);
    return ringer->context != 0;
}

/* A read of nothing, which is done when it is submitted. */
static int submit(const struct ringer *ringer, int fd)
{
    struct iocb request = {
        .aio_lio_opcode = IOCB_CMD_PREAD,
        .aio_fildes = (uint32_t)ringer->file,
        .aio_flags = IOCB_FLAG_RESFD,
        .aio_resfd = (uint32_t)fd,
    };
    struct iocb *requests = &request;
    return syscall(SYS_io_submit, ringer->context, 1, &requests) == 1 ? 0 : -errno;
}

static void drop_reports(const struct ringer *ringer)
{
    struct io_event reports[N_REPORTS];
    struct timespec at_once = {0};
    while (syscall(SYS_io_getevents, ringer->context, 0, N_REPORTS, reports, &at_once) == N_REPORTS)
        ;
}

int ringer_ring(struct ringer *ringer, int fd)
{
    if (!ringer_works(ringer))
        return -ENOSYS;
    int r = submit(ringer, fd);
    if (r != -EAGAIN)
        return r;
    drop_reports(ringer);
    return submit(ringer, fd);
}
