/* SPDX-License-Identifier: MIT */

/*
 * What the machine allows: Troupe's rings and the sleeping, and nothing else. ADDRESS says through
 * how many hops:
 *
 *     2             submitter <-> worker, both sleep in futex(2)
 *     4 or 4:N      submitter <-> broker <-> N workers; the broker sleeps in its io_uring, as the
 *                   supervisor does, in futex waits; it hands records on, one worker after the
 * other
 */

#include "shared/ring/channel.h"
#include "supervisor/loop/loop-private.h"
#include "tests/bench/load/load.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define RING        (UINT32_C(1) << 18)
#define KIND        1
#define WORKERS_MAX 64u

/* The broker's side of a channel, and whether its io_uring waits on it. */
struct end {
    struct channel channel;
    bool armed;
};

struct broker {
    struct loop_ring ring;
    struct end ends[1 + WORKERS_MAX]; /* the submitter's is the first */
    unsigned n, turn;
};

static struct broker broker; /* for the wake callback, which has no userdata */

static int copy_record(struct channel *to, const struct ring_record *record)
{
    void *body;
    int r = ring_reserve(&to->out, record->size, &body);

    if (r != 0)
        return r == RING_E_FULL ? -ENOBUFS : r; /* no window is as large as the rings */
    memcpy(body, record->body, record->size);
    ring_commit(&to->out, KIND, record->size);
    return 0;
}

static int echo(const struct channel_fds *fds)
{
    struct channel channel = CHANNEL_NULL;
    struct ring_record record;
    int r = channel_open(&channel, fds);

    while (r == 0) {
        r = ring_next(&channel.in, &record);
        if (r == 0) {
            r = copy_record(&channel, &record);
        } else if (r == RING_E_EMPTY) {
            channel_release(&channel);
            channel_publish(&channel);
            r = channel_wait(&channel, USEC_INFINITY);
        }
    }
    return r;
}

/* In a child that ends with this process. Never returns there. */
static int fork_child(int (*fn)(const struct channel_fds *fds), const struct channel_fds *fds)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid < 0 ? -errno : 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(fn(fds) != 0);
}

static int new_channel(struct channel *ret, struct channel_fds *ret_fds)
{
    struct channel_options options = {
        .ring_size = RING, .inline_max = RING / 4, .backend = WAKE_FUTEX};

    return channel_create(ret, &options, ret_fds);
}

static void wake_with_next_submission(struct channel *channel, const _Atomic uint32_t *word)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&broker.ring.uring);

    loop_ring_prep_futex_wake(sqe, (const void *)word, 1);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    sqe->user_data = 0;
}

/* Hands on what one end has sent. 1 if there was anything. */
static int hand_on(struct end *end)
{
    struct ring_record record;
    int r, any = 0;

    while ((r = ring_next(&end->channel.in, &record)) == 0) {
        struct end *to = &broker.ends[0];

        if (end == to) {
            to = &broker.ends[1 + broker.turn];
            broker.turn = (broker.turn + 1) % (broker.n - 1);
        }
        r = copy_record(&to->channel, &record);
        if (r < 0)
            return r;
        any = 1;
    }
    if (r != RING_E_EMPTY)
        return r;
    channel_release(&end->channel);
    return any;
}

static int hand_all_on(void)
{
    int any = 0;

    for (unsigned i = 0; i < broker.n; i++) {
        int r = hand_on(&broker.ends[i]);
        if (r < 0)
            return r;
        any |= r;
    }
    for (unsigned i = 0; any && i < broker.n; i++)
        channel_publish(&broker.ends[i].channel);
    return any;
}

/* Wakes whoever sleeps and waits for any end, all in one system call. */
static int sleep_on_all(void)
{
    bool pending = false;

    for (unsigned i = 0; i < broker.n; i++) {
        struct end *end = &broker.ends[i];
        uint32_t expected;

        if (!channel_prepare_sleep(&end->channel, &expected)) {
            pending = true;
        } else if (!end->armed) {
            struct io_uring_sqe *sqe = io_uring_get_sqe(&broker.ring.uring);
            loop_ring_prep_futex_wait(sqe, (const void *)&end->channel.their_words->bell, expected);
            sqe->user_data = i + 1;
            end->armed = true;
        }
    }
    int r = io_uring_submit_and_wait(&broker.ring.uring, pending ? 0 : 1);
    for (unsigned i = 0; i < broker.n; i++)
        channel_end_sleep(&broker.ends[i].channel);
    return r < 0 && r != -EINTR ? r : 0;
}

static void take_completions(void)
{
    struct io_uring_cqe *cqe;

    while (io_uring_peek_cqe(&broker.ring.uring, &cqe) == 0) {
        if (cqe->user_data > 0)
            broker.ends[cqe->user_data - 1].armed = false;
        io_uring_cqe_seen(&broker.ring.uring, cqe);
    }
}

static void pin_to(const char *cpu)
{
    cpu_set_t set;

    if (!cpu)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)atoi(cpu), &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

static int run_broker(const struct channel_fds *ignored)
{
    const char *reason = NULL;
    int r = loop_ring_init(&broker.ring, 256, false, &reason);

    pin_to(getenv("BENCH_BROKER_CPU"));
    if (r != 0 || !broker.ring.futex) {
        fprintf(stderr, "hops: no futex operations in io_uring%s%s\n", reason ? ": " : "",
                reason ? reason : " (Linux 6.7 has them)");
        return -ENOTSUP;
    }
    while (r >= 0) {
        r = hand_all_on();
        if (r == 0) {
            r = sleep_on_all();
            take_completions();
        }
    }
    return r;
}

/* Forked in the order in which the ends must be known: workers, then the broker that has them all.
 */
static int start_broker(unsigned n_workers, struct channel_fds *ret_fds)
{
    int r = new_channel(&broker.ends[0].channel, ret_fds);

    broker.n = 1 + n_workers;
    for (unsigned i = 0; r == 0 && i < n_workers; i++) {
        struct channel_fds fds;
        r = new_channel(&broker.ends[1 + i].channel, &fds);
        if (r == 0)
            r = fork_child(echo, &fds);
    }
    for (unsigned i = 0; i < broker.n; i++)
        broker.ends[i].channel.wake = wake_with_next_submission;
    return r == 0 ? fork_child(run_broker, ret_fds) : r;
}

static int open_submitter(const char *address, unsigned window, void **ret)
{
    struct channel *channel = calloc(1, sizeof(*channel));
    struct channel_fds fds;
    int r;

    if (!channel)
        return -ENOMEM;
    *ret = channel;
    if (strcmp(address, "2") == 0) {
        r = new_channel(channel, &fds);
        return r == 0 ? fork_child(echo, &fds) : r;
    }
    unsigned n_workers = address[0] == '4' && address[1] == ':' ? (unsigned)atoi(address + 2) : 1;
    if (address[0] != '4' || n_workers < 1 || n_workers > WORKERS_MAX)
        return -EINVAL;
    r = start_broker(n_workers, &fds);
    return r == 0 ? channel_open(channel, &fds) : r;
}

static int submit(void *userdata, const void *data, size_t size)
{
    struct channel *channel = userdata;
    void *body;
    int r = ring_reserve(&channel->out, (uint32_t)size, &body);

    if (r != 0)
        return r == RING_E_FULL ? -EAGAIN : r;
    memcpy(body, data, size);
    ring_commit(&channel->out, KIND, (uint32_t)size);
    return 0;
}

static int flush(void *userdata)
{
    channel_publish(userdata);
    return 0;
}

static int next(void *userdata, int wait, void *data, size_t size)
{
    struct channel *channel = userdata;
    struct ring_record record;
    int r = ring_next(&channel->in, &record);

    if (r == RING_E_EMPTY && wait) {
        channel_release(channel);
        channel_publish(channel);
        r = channel_wait(channel, USEC_INFINITY);
        if (r == 0)
            r = ring_next(&channel->in, &record);
    }
    if (r != 0)
        return r == RING_E_EMPTY ? -EAGAIN : r;
    if (record.size != size)
        return -EBADMSG;
    memcpy(data, record.body, size);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct load_system system = {"hops", open_submitter, submit, flush, next, NULL};

    return load_main(argc, argv, &system);
}
