/* SPDX-License-Identifier: MIT */

/*
 * How soon the death of a process can be known:
 *
 *     lost robust|pidfd COUNT BYTES
 *
 * robust: by a futex that the process held, which the kernel marks before it tears the memory down;
 * pidfd: by its pidfd, readable afterwards. BYTES is how much memory it has touched. Prints one
 * JSON object.
 */

#include "tests/bench/load/pause.h"
#include "tests/bench/load/samples.h"
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOUCH_BYTES 4096 /* a page, at most */

/* What both processes see. */
struct held {
    struct robust_list entry;
    _Atomic uint32_t word; /* the holder's thread id, FUTEX_WAITERS; marked when it is dead */
    _Atomic uint32_t ready;
};

static void hold_and_wait(struct held *held, size_t n_bytes)
{
    static struct robust_list_head head;
    volatile char *memory = malloc(n_bytes + 1);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!memory)
        _exit(1);
    for (size_t i = 0; i < n_bytes; i += TOUCH_BYTES)
        memory[i] = 1;
    head.list.next = &held->entry;
    held->entry.next = &head.list;
    head.futex_offset = offsetof(struct held, word) - offsetof(struct held, entry);
    if (syscall(SYS_set_robust_list, &head, sizeof(head)) < 0)
        _exit(1);
    atomic_store(&held->word, (uint32_t)syscall(SYS_gettid) | FUTEX_WAITERS);
    atomic_store(&held->ready, 1); /* partner: the loads in kill_one() */
    (void)syscall(SYS_futex, &held->ready, FUTEX_WAKE, 1, NULL, NULL, 0);
    for (;;)
        (void)pause();
}

static int wait_marked(struct held *held)
{
    uint32_t word;

    while (!((word = atomic_load(&held->word)) & FUTEX_OWNER_DIED))
        if (syscall(SYS_futex, &held->word, FUTEX_WAIT, word, NULL, NULL, 0) < 0 &&
            errno != EAGAIN && errno != EINTR)
            return -errno;
    return 0;
}

static int wait_pidfd(int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};

    return poll(&pollfd, 1, -1) < 0 ? -errno : 0;
}

/* A sleeper is there when it is killed: the waiting happens in this process, the killing in
 * another. */
static int kill_one(struct held *held, bool robust, size_t n_bytes, struct samples *samples,
                    _Atomic uint64_t *begin)
{
    pid_t pid = fork(), killer;

    if (pid == 0)
        hold_and_wait(held, n_bytes);
    if (pid < 0)
        return -errno;
    while (atomic_load(&held->ready) == 0)
        (void)syscall(SYS_futex, &held->ready, FUTEX_WAIT, 0, NULL, NULL, 0);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    killer = fork();
    if (killer == 0) {
        pause_usec(5000);
        atomic_store(begin, samples_now());
        (void)kill(pid, SIGKILL);
        _exit(0);
    }
    int r = fd < 0 || killer < 0 ? -errno : robust ? wait_marked(held) : wait_pidfd(fd);
    samples_add(samples, atomic_load(begin), samples_now());
    (void)waitpid(killer, NULL, 0);
    (void)waitpid(pid, NULL, 0);
    (void)close(fd);
    return r;
}

int main(int argc, char **argv)
{
    unsigned count = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    struct samples samples;
    _Atomic uint64_t *begin =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct held *held = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (count == 0 || begin == MAP_FAILED || held == MAP_FAILED)
        return 2;
    int r = samples_init(&samples, count);
    for (unsigned i = 0; r == 0 && i < count; i++) {
        memset(held, 0, sizeof(*held));
        r = kill_one(held, strcmp(argv[1], "robust") == 0, strtoull(argv[3], NULL, 10), &samples,
                     begin);
    }
    if (r < 0) {
        fprintf(stderr, "lost: %s\n", strerror(-r));
        return 1;
    }
    printf("{");
    samples_print(&samples, "known_");
    printf("}\n");
    samples_deinit(&samples);
    return 0;
}
