/* SPDX-License-Identifier: MIT */

/*
 * Lets each system call of the shared modules that may run out of resources fail once, one after
 * the other. The error must be returned unchanged, and nothing may leak. Needs a build with
 * -DTROUPE_FAULTS.
 */

#ifndef TROUPE_FAULTS
#error "to be built with -DTROUPE_FAULTS"
#endif

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/protocol/payload-wire.h"
#include "shared/ring/channel.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct resources {
    unsigned descriptors, mappings;
};

static unsigned open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

/* Counts mappings of Troupe's memfds; the C library's own mappings vary. */
static unsigned troupe_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    unsigned count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, "/memfd:troupe-") != NULL;
    if (file)
        fclose(file);
    return count;
}

static struct resources take_stock(void)
{
    return (struct resources){open_descriptors(), troupe_mappings()};
}

static int try_futex_channel(void)
{
    struct channel_options options = {.ring_size = 4096, .backend = WAKE_FUTEX};
    struct channel channel = CHANNEL_NULL;
    struct channel_fds fds;
    int r = channel_create(&channel, &options, &fds);

    channel_deinit(&channel);
    return r;
}

static int try_eventfd_channel(void)
{
    struct channel_options options = {.ring_size = 4096, .backend = WAKE_EVENTFD};
    struct channel channel = CHANNEL_NULL;
    struct channel_fds fds;
    int r = channel_create(&channel, &options, &fds);

    channel_deinit(&channel);
    return r;
}

/* Opens the other side of a channel. On failure the caller keeps the descriptors. */
static int try_open(void)
{
    struct channel_options options = {.ring_size = 4096, .backend = WAKE_EVENTFD};
    _cleanup_(channel_deinit)
    struct channel channel = CHANNEL_NULL, peer = CHANNEL_NULL;
    struct channel_fds fds, copies;
    int r = channel_create(&channel, &options, &fds);

    if (r < 0)
        return r;
    copies = (struct channel_fds){.inbox = dup(fds.inbox),
                                  .outbox = dup(fds.outbox),
                                  .wait_fd = dup(fds.wait_fd),
                                  .wake_fd = dup(fds.wake_fd)};
    r = channel_open(&peer, &copies);
    if (r < 0) {
        close_fd(copies.inbox);
        close_fd(copies.outbox);
        close_fd(copies.wait_fd);
        close_fd(copies.wake_fd);
    }
    return r;
}

static int try_blob(void)
{
    _cleanup_close_ int fd = -1;
    const void *read_only;
    void *data;
    int r = payload_blob_new(100, &fd, &data);

    if (r < 0)
        return r;
    r = payload_blob_seal(fd, data, 100);
    if (r == 0)
        r = payload_blob_map(fd, 100, &read_only);
    if (r == 0)
        (void)munmap((void *)(uintptr_t)read_only, 100);
    return r;
}

/* Fails call 1, 2, 3 … of one kind until `attempt` succeeds. Checks that it makes `calls` calls. */
static int walk(const char *name, int (*attempt)(void), const char *what, unsigned calls, int error)
{
    for (unsigned nth = 1; nth <= calls + 1; nth++) {
        int wanted = nth <= calls ? -error : 0, r;
        struct resources before = take_stock(), after;
        char specification[64];

        (void)snprintf(specification, sizeof(specification), "%s:%u", what, nth);
        fault_arm(specification);
        r = attempt();
        fault_arm(NULL);
        after = take_stock();
        if (r != wanted || before.descriptors != after.descriptors ||
            before.mappings != after.mappings) {
            fprintf(stderr,
                    "%s, %s: returned %d instead of %d; descriptors %u, %u; mappings %u, %u\n",
                    name, specification, r, wanted, before.descriptors, after.descriptors,
                    before.mappings, after.mappings);
            return 1;
        }
    }
    printf("%s, %s: ok\n", name, what);
    return 0;
}

/* Checks each form of specification: one call, all calls from one on, an errno, several kinds. */
static int check_specifications(void)
{
    int failed = 0;

    fault_arm("write:2");
    failed |= fault_inject("write") != 0 || fault_inject("read") != 0;
    failed |= fault_inject("write") != -ENOSPC || fault_inject("write") != 0;
    fault_arm("write:2+=5,clone:1");
    failed |= fault_inject("write") != 0 || fault_inject("write") != -EIO;
    failed |= fault_inject("write") != -EIO;
    failed |= fault_inject("clone") != -EAGAIN || fault_inject("clone") != 0;
    fault_arm(NULL);
    failed |= fault_inject("write") != 0;
    printf("specifications: %s\n", failed ? "FAILED" : "ok");
    return failed;
}

int main(void)
{
    int failed = check_specifications();

    failed |= walk("futex channel", try_futex_channel, "memfd", 2, EMFILE);
    failed |= walk("futex channel", try_futex_channel, "mmap", 2, ENOMEM);
    failed |= walk("eventfd channel", try_eventfd_channel, "memfd", 2, EMFILE);
    failed |= walk("eventfd channel", try_eventfd_channel, "mmap", 2, ENOMEM);
    failed |= walk("eventfd channel", try_eventfd_channel, "eventfd", 2, EMFILE);
    failed |= walk("worker's side", try_open, "mmap", 4, ENOMEM);
    failed |= walk("blob", try_blob, "memfd", 1, EMFILE);
    failed |= walk("blob", try_blob, "mmap", 2, ENOMEM);
    return failed;
}
