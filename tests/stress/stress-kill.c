/* SPDX-License-Identifier: MIT */

/*
 * Kills one side of a channel at each step of publishing and consuming. A child plays that side and
 * is killed at its Nth fault point, for N = 1, 2, 3 … until it reaches the end alive. Each time
 *
 *   - the survivor reads the published records, whole and in order, and no unpublished one;
 *   - a successor uses the same memory, and the traffic continues to its end without a gap.
 *
 * The supervisor or the worker dies, as producer or consumer, with futexes or eventfds, in every
 * combination. Every fault point must have killed a child at least once: those that a seed's
 * traffic or the machine's speed left out are tried with further seeds. Needs a build with
 * -DTROUPE_FAULTS.
 */

#ifndef TROUPE_FAULTS
#error "to be built with -DTROUPE_FAULTS"
#endif

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "tests/stress/traffic.h"
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define RING     4096u
#define BODY_MAX 1000u
#define COUNT    100u /* more than the ring holds; about 1 seed in 200 never needs padding */
#define ROUNDS   50   /* further seeds for the points that nobody has reached */
#define KINDS    8u   /* of scenes */
#define PATIENCE                                                                                   \
    (2 * USEC_PER_MSEC) /* a survivor's wait before it checks whether its peer is dead */

/* The child's progress, in memory that it shares with the parent. */
struct diary {
    char killed_at[64];
    uint64_t publishing, published; /* records published: begun, done */
    uint64_t releasing, released;   /* records released: begun, done */
    uint64_t first;                 /* first record that a consumer read */
};

struct scene {
    enum wake_backend backend;
    bool worker_dies; /* else the supervisor */
    bool producer_dies;
    uint64_t seed;
    const char *death; /* the child dies at this fault point, at this passage */
    bool late;         /* the survivor starts when the child waits for it */
};

static const char *const points[] = {
    "ring.reserve.end",
    "ring.commit.before-padding",
    "ring.commit.before-header",
    "ring.commit.end",
    "ring.publish.before-tail",
    "ring.publish.end",
    "ring.next.end",
    "ring.release.before-head",
    "ring.release.end",
    "channel.sleep.flag-up",
    "channel.block.flag-up",
    "channel.before-sleep",
    "channel.publish.before-wake",
    "channel.publish.end",
    "channel.release.before-wake",
    "channel.release.end",
    "test.half-a-body",
    "memory.state.odd",
    "memory.state.before-even",
};

static struct diary *diary;
static bool reached[ELEMENTS(points)];

static void note_point(const char *name)
{
    strncpy(diary->killed_at, name, sizeof(diary->killed_at) - 1);
}

static bool note_reached(void)
{
    for (size_t i = 0; i < ELEMENTS(points); i++)
        if (strcmp(points[i], diary->killed_at) == 0) {
            reached[i] = true;
            return true;
        }
    fprintf(stderr, "a fault point that this test does not know: %s\n", diary->killed_at);
    return false;
}

static bool gone(pid_t pid)
{
    siginfo_t info = {0};

    return pid < 0 || (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                       info.si_pid == pid);
}

static void publish(struct channel *channel, uint64_t count)
{
    diary->publishing = count;
    channel_publish(channel);
    diary->published = count;
}

/*
 * Produces records `first` … COUNT - 1. `peer` is the consumer's pid, -1 if it does not die.
 * Returns 0, or -EPIPE if the consumer is dead; `*ret_next` is the first record that was not
 * produced.
 */
static int produce(struct channel *channel, uint64_t seed, uint64_t first, pid_t peer,
                   uint64_t *ret_next)
{
    uint64_t n;

    for (n = first; n < COUNT; n++) {
        uint32_t size = traffic_size(seed, n, BODY_MAX);
        void *body;
        int r;

        while ((r = ring_reserve(&channel->out, size, &body)) == RING_E_FULL) {
            diary->publishing = n;
            r = channel_wait_space(channel, size, PATIENCE);
            diary->published = n;
            if (r == -ETIMEDOUT && peer >= 0 && gone(peer))
                break;
        }
        if (r == -ETIMEDOUT)
            break;
        if (r < 0)
            return r;
        traffic_fill(seed, n, body, size / 2);
        FAULT_POINT("test.half-a-body");
        traffic_fill(seed, n, body, size);
        ring_commit(&channel->out, traffic_kind(n), size);
        if (n % 3 == 2)
            publish(channel, n + 1);
    }
    if (n == COUNT)
        publish(channel, n);
    *ret_next = n;
    return n == COUNT ? 0 : -EPIPE;
}

static void release(struct channel *channel, uint64_t count)
{
    diary->releasing = count;
    channel_release(channel);
    diary->released = count;
}

/*
 * Reads from `*next` up to COUNT; UINT64_MAX = from the ring's position. Returns 0, or -EPIPE when
 * the producer is dead and everything that it published has been read.
 */
static int consume(struct channel *channel, uint64_t seed, uint64_t *next, pid_t peer)
{
    while (*next == UINT64_MAX || *next < COUNT) {
        struct ring_record record;
        int r = ring_next(&channel->in, &record);

        if (r == RING_E_EMPTY) {
            bool dead;

            if (*next != UINT64_MAX)
                release(channel, *next);
            dead = peer >= 0 && gone(peer); /* before the last look */
            r = channel_wait(channel, dead ? 0 : PATIENCE);
            if (r == -ETIMEDOUT && dead)
                return -EPIPE;
            if (r < 0 && r != -ETIMEDOUT)
                return r;
            continue;
        }
        if (r < 0)
            return r;
        if (*next == UINT64_MAX)
            diary->first = *next = record.kind - 1u;
        if (!traffic_check(seed, *next, BODY_MAX, &record))
            return -EILSEQ;
        if (++*next % 4 == 0)
            release(channel, *next);
    }
    release(channel, *next);
    return 0;
}

/* Opens the channel as a new process does, from the contents of the memory alone. */
static int take_up(struct channel *channel, const struct channel_fds *fds, bool worker)
{
    if (worker)
        return channel_open(channel, fds);
    /* A supervisor's successor gets the mapping from the parent: the seals forbid a second one. */
    int r = ring_producer_init(&channel->out, channel->mine.ring, RING, &channel->mine.header->tail,
                               &channel->their_words->head);
    if (r < 0)
        return r;
    return ring_consumer_init(&channel->in, channel->theirs.ring, RING, &channel->words->head,
                              &channel->theirs.header->tail);
}

/* Forks the side that dies, or its successor; a producer begins at record `first`. */
static pid_t start(const struct scene *scene, struct channel *supervisor,
                   const struct channel_fds *fds, uint64_t first, const char *death)
{
    struct channel opened = CHANNEL_NULL;
    struct channel *channel = scene->worker_dies ? &opened : supervisor;
    uint64_t next = UINT64_MAX;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)alarm(60);
    int r = take_up(channel, fds, scene->worker_dies);
    fault_arm_point(death);
    fault_on_kill(note_point);
    if (r == 0 && scene->producer_dies)
        r = produce(channel, scene->seed, first, -1, &next);
    else if (r == 0)
        r = consume(channel, scene->seed, &next, -1);
    if (r < 0)
        fprintf(stderr, "child: %s\n", strerror(-r));
    _exit(r < 0);
}

/* Returns 0 for a child that ended well, 1 for a killed one, else -EIO. */
static int reap(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) == pid) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return 0;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            return note_reached() ? 1 : -EIO;
    }
    fprintf(stderr, "a child ended with status %d\n", status);
    return -EIO;
}

/* Counts the published records in the ring without consuming them. */
static uint64_t waiting(const struct channel *channel)
{
    struct ring_consumer copy = channel->in;
    struct ring_record record;
    uint64_t count = 0;

    while (ring_next(&copy, &record) == 0)
        count++;
    return count;
}

/* Waits until the child raises its flag, which means that it waits for the survivor, or dies. */
static void be_late(const _Atomic uint32_t *flag, pid_t pid)
{
    while (atomic_load(flag) == 0 && !gone(pid))
        (void)sched_yield();
}

/* The child produces. A late survivor finds a full ring, or what a dead child has published. */
static int kill_producer(const struct scene *scene, struct channel *supervisor,
                         struct channel *survivor, const struct channel_fds *fds)
{
    uint64_t next = 0, shown;
    pid_t pid = start(scene, supervisor, fds, 0, scene->death);

    if (scene->late)
        be_late(&survivor->their_words->blocked, pid);
    int r = scene->late && gone(pid) ? -EPIPE : consume(survivor, scene->seed, &next, pid);
    if (r < 0 && r != -EPIPE)
        return r;
    int killed = reap(pid);
    if (killed < 0)
        return killed;

    shown = next + waiting(survivor);
    if (shown < diary->published || shown > diary->publishing) {
        fprintf(stderr, "%llu records are there, not %llu … %llu\n", (unsigned long long)shown,
                (unsigned long long)diary->published, (unsigned long long)diary->publishing);
        return -EILSEQ;
    }
    pid = start(scene, supervisor, fds, shown, NULL);
    r = consume(survivor, scene->seed, &next, pid);
    if (r == 0 && reap(pid) != 0)
        r = -EIO;
    return r < 0 ? r : killed;
}

/* The child consumes. */
static int kill_consumer(const struct scene *scene, struct channel *supervisor,
                         struct channel *survivor, const struct channel_fds *fds)
{
    uint64_t next = 0, released, releasing;
    pid_t pid = start(scene, supervisor, fds, 0, scene->death);

    if (scene->late)
        be_late(&survivor->their_words->sleeping, pid);
    int r = produce(survivor, scene->seed, 0, pid, &next);
    if (r < 0 && r != -EPIPE)
        return r;
    int killed = reap(pid);
    if (killed < 0)
        return killed;
    if (killed == 0)
        return 0;

    released = diary->released;
    releasing = diary->releasing;
    diary->first = UINT64_MAX;
    pid = start(scene, supervisor, fds, 0, NULL);
    r = next < COUNT ? produce(survivor, scene->seed, next, pid, &next) : 0;
    if (r < 0)
        return r;
    if (released == COUNT || releasing == COUNT) {
        /* The child died after the last record, so its successor may wait for ever. */
        be_late(&survivor->their_words->sleeping, pid);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return killed;
    }
    if (reap(pid) != 0)
        return -EIO;
    if (diary->first < released || diary->first > releasing) {
        fprintf(stderr, "the successor began with record %llu, not %llu … %llu\n",
                (unsigned long long)diary->first, (unsigned long long)released,
                (unsigned long long)releasing);
        return -EILSEQ;
    }
    return killed;
}

/* Chooses one of the KINDS combinations of who dies, and how. */
static void set_kind(struct scene *scene, unsigned int kind)
{
    scene->backend = kind & 1 ? WAKE_EVENTFD : WAKE_FUTEX;
    scene->worker_dies = kind & 2;
    scene->producer_dies = kind & 4;
}

/* Plays one scene. Returns 1 if the child was killed, 0 if it reached the end, or -errno. */
static int play(const struct scene *scene)
{
    _cleanup_(channel_deinit)
    struct channel supervisor = CHANNEL_NULL, worker = CHANNEL_NULL;
    struct channel_options options = {
        .ring_size = RING, .inline_max = 0, .backend = scene->backend};
    struct channel_fds fds, copies = CHANNEL_FDS_NULL;
    struct channel *survivor = &supervisor;
    int r;

    memset(diary, 0, sizeof(*diary));
    r = channel_create(&supervisor, &options, &fds);
    if (r < 0)
        return r;
    if (!scene->worker_dies) {
        copies.inbox = dup(fds.inbox);
        copies.outbox = dup(fds.outbox);
        copies.wait_fd = dup(fds.wait_fd);
        copies.wake_fd = scene->backend == WAKE_EVENTFD ? dup(fds.wake_fd) : -1;
        r = channel_open(&worker, &copies);
        if (r < 0)
            return r;
        survivor = &worker;
    }
    return scene->producer_dies ? kill_producer(scene, &supervisor, survivor, &fds)
                                : kill_consumer(scene, &supervisor, survivor, &fds);
}

/* Plays a scene in which the child dies at passage `nth` of that point. Returns like play(). */
static int play_until(struct scene *scene, const char *point, unsigned long nth)
{
    char death[64];

    (void)snprintf(death, sizeof(death), "%s:%lu", point, nth);
    scene->death = death;
    int r = play(scene);
    if (r < 0)
        fprintf(stderr, "%s, %s: %s\n", death, diary->killed_at, strerror(-r));
    return r;
}

static int play_all(struct scene *scene)
{
    unsigned long deaths = 0;
    int r = 1;

    for (unsigned long nth = 1; r > 0; nth++) {
        scene->late = nth % 2 == 0;
        r = play_until(scene, "any", nth);
        deaths += r > 0;
    }
    /* How often a side waits depends on the machine, so each fault point is also tried by name with
     * a late survivor. */
    scene->late = true;
    for (size_t i = 0; r >= 0 && i < ELEMENTS(points); i++) {
        r = play_until(scene, points[i], 1);
        deaths += r > 0;
    }
    printf("%s %s %s: %lu deaths: %s\n", scene->backend == WAKE_FUTEX ? "futex  " : "eventfd",
           scene->worker_dies ? "worker    " : "supervisor",
           scene->producer_dies ? "producer" : "consumer", deaths, r >= 0 ? "ok" : "FAILED");
    (void)fflush(stdout);
    return r < 0;
}

/* Plays every scene at the points that nobody has reached. */
static int play_missing(struct scene *scene)
{
    scene->late = true;
    for (size_t i = 0; i < ELEMENTS(points); i++)
        for (unsigned int kind = 0; kind < KINDS && !reached[i]; kind++) {
            set_kind(scene, kind);
            if (play_until(scene, points[i], 1) < 0)
                return 1;
        }
    return 0;
}

/* Kills a worker while it writes its state: the reader gets a whole state, or an error. */
static int kill_state_writer(void)
{
    static const char old[] = "the old state", new[] = "the new one is a little longer";
    unsigned long nth = 0;
    int killed;

    do {
        _cleanup_(memory_deinit)
        struct memory memory = MEMORY_NULL;
        struct memory_options options = {
            .role = MEMORY_OUTBOX, .ring_size = RING, .wake_backend = WAKE_FUTEX};
        char data[MEMORY_STATE_MAX], specification[32];
        size_t size;
        pid_t pid;
        int r;

        if (memory_create(&memory, &options) < 0 ||
            memory_state_write(&memory, old, sizeof(old)) < 0)
            return 1;
        nth++;
        pid = fork();
        if (pid == 0) {
            (void)snprintf(specification, sizeof(specification), "any:%lu", nth);
            fault_arm_point(specification);
            fault_on_kill(note_point);
            _exit(memory_state_write(&memory, new, sizeof(new)) < 0);
        }
        killed = reap(pid);
        r = memory_state_read(&memory, data, &size);
        if (killed < 0 || (killed == 1 && r != -EAGAIN) ||
            (killed == 0 && (r != sizeof(new) || memcmp(data, new, sizeof(new)) != 0)))
            return 1;
        if (memory_state_write(&memory, old, sizeof(old)) < 0 ||
            memory_state_read(&memory, data, &size) != sizeof(old))
            return 1;
    } while (killed == 1);
    printf("state page: %lu deaths: ok\n", nth - 1);
    return 0;
}

static int check_coverage(void)
{
    int failed = 0;

    for (size_t i = 0; i < ELEMENTS(points); i++)
        if (!reached[i]) {
            fprintf(stderr, "nobody died at %s\n", points[i]);
            failed = 1;
        }
    return failed;
}

int main(void)
{
    struct scene scene = {.seed = traffic_seed()};
    int failed = 0;

    diary = mmap(NULL, sizeof(*diary), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (diary == MAP_FAILED)
        return 1;
    fault_arm_point(NULL);
    for (unsigned int kind = 0; kind < KINDS; kind++) {
        set_kind(&scene, kind);
        failed |= play_all(&scene);
    }
    failed |= kill_state_writer();
    for (int round = 0; round < ROUNDS && !failed; round++) {
        scene.seed++;
        failed |= play_missing(&scene);
    }
    failed |= check_coverage();
    return failed;
}
