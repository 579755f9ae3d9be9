/* SPDX-License-Identifier: MIT */
#include "shared/ring/channel.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <poll.h>
#include <sched.h>
#include <sys/un.h>

#define RING 4096u
#define KIND 3

static struct channel supervisor = CHANNEL_NULL, worker = CHANNEL_NULL;
static struct channel_fds fds;
static unsigned wakes;
static const _Atomic uint32_t *woken;

/* _i is one of them. */
#define BOTH_BACKENDS .first = WAKE_FUTEX, .n = 2

static void make(int backend)
{
    struct channel_options options = {
        .ring_size = RING, .inline_max = 512, .backend = (enum wake_backend)backend};

    ck_assert_int_eq(channel_create(&supervisor, &options, &fds), 0);
}

/* What a worker gets: descriptors of its own for the same memories. */
static struct channel_fds copies(void)
{
    return (struct channel_fds){
        .inbox = dup(fds.inbox),
        .outbox = dup(fds.outbox),
        .wait_fd = fds.wait_fd < 0 ? -1 : dup(fds.wait_fd),
        .wake_fd = fds.wake_fd < 0 ? -1 : dup(fds.wake_fd),
    };
}

static void attach_worker(void)
{
    struct channel_fds given = copies();

    ck_assert_int_eq(channel_open(&worker, &given), 0);
}

static void make_both(int backend)
{
    make(backend);
    attach_worker();
}

static void teardown(void)
{
    channel_deinit(&worker);
    channel_deinit(&supervisor);
}

static void count_wake(struct channel *channel, const _Atomic uint32_t *word)
{
    wakes++;
    woken = word;
}

static int put(struct channel *channel, uint32_t size, char fill)
{
    void *body;
    int r = ring_reserve(&channel->out, size, &body);

    if (r != 0)
        return r;
    memset(body, fill, size);
    ring_commit(&channel->out, KIND, size);
    return 0;
}

static void emit(struct channel *channel, uint32_t size, char fill)
{
    ck_assert_int_eq(put(channel, size, fill), 0);
    channel_publish(channel);
}

static void expect(struct channel *channel, uint32_t size, char fill)
{
    struct ring_record record;

    ck_assert_int_eq(ring_next(&channel->in, &record), 0);
    ck_assert_uint_eq(record.size, size);
    ck_assert_int_eq(*(const char *)record.body, fill);
}

static void fill(struct channel *channel)
{
    while (put(channel, 500, 'f') == 0)
        ;
    channel_publish(channel);
}

static void wait_until_up(const _Atomic uint32_t *flag)
{
    while (atomic_load(flag) == 0)
        (void)sched_yield();
}

static int exit_status_of(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(a_channel_gives_back_all_its_descriptors, BOTH_BACKENDS)
{
    unsigned before = open_descriptors();

    make_both(_i);
    ck_assert_int_eq(worker.backend, _i);
    ck_assert_uint_gt(open_descriptors(), before);
    channel_close_fds(&supervisor);
    emit(&supervisor, 10, 'a');
    expect(&worker, 10, 'a');
    teardown();
    ck_assert_uint_eq(open_descriptors(), before);
}

TEST(a_failed_open_leaves_the_descriptors_alone, BOTH_BACKENDS)
{
    make(_i);
    struct channel_fds given = copies();
    unsigned before = open_descriptors();
    given.inbox = fds.outbox;
    ck_assert_int_eq(channel_open(&worker, &given), -EPROTO);
    ck_assert_uint_eq(open_descriptors(), before);
    given.inbox = fds.inbox;
    given.outbox = fds.inbox;
    ck_assert_int_eq(channel_open(&worker, &given), -EPROTO);
    ck_assert_uint_eq(open_descriptors(), before);
}

TEST(eventfds_must_be_there_when_the_memory_says_so)
{
    make(WAKE_EVENTFD);
    struct channel_fds given = copies();
    given.wake_fd = -1;
    ck_assert_int_eq(channel_open(&worker, &given), -EPROTO);
    given = copies();
    given.wait_fd = -1;
    ck_assert_int_eq(channel_open(&worker, &given), -EPROTO);
}

/* As a peer can leave it at any moment. */
TEST(a_peer_that_fills_its_socket_and_makes_it_blocking_keeps_nobody, BOTH_BACKENDS)
{
    make_both(_i);
    ck_assert_int_eq(fcntl(worker.wait_fd, F_SETFL, O_RDWR), 0);
    for (int i = 0; i < 10000; i++)
        supervisor.wake(&supervisor, NULL);
    ck_assert_int_eq(poll(&(struct pollfd){.fd = worker.wait_fd, .events = POLLIN}, 1, 0), 1);
    ck_assert_int_eq(fcntl(worker.wait_fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
    wake_empty(worker.wait_fd);
    ck_assert_int_eq(poll(&(struct pollfd){.fd = worker.wait_fd, .events = POLLIN}, 1, 0), 0);
}

TEST(a_peer_can_send_nothing_through_the_socket_that_wakes_it, BOTH_BACKENDS)
{
    make_both(_i);
    ck_assert_int_lt((int)write(worker.wait_fd, "x", 1), 0);
    ck_assert_int_eq(errno, EPIPE);
}

/* The supervisor may close the peer's end last, with whatever is in it. */
TEST(nobody_else_can_send_to_a_peer_that_lets_go_of_the_socket, BOTH_BACKENDS)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(address);
    int type, other;

    make_both(_i);
    ck_assert_int_eq(getsockopt(worker.wait_fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){4}), 0);
    other = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    (void)connect(worker.wait_fd, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(sa_family_t));
    (void)listen(worker.wait_fd, 1);
    ck_assert_int_eq(bind(worker.wait_fd, (struct sockaddr *)&address, sizeof(address.sun_family)),
                     0);
    ck_assert_int_eq(getsockname(worker.wait_fd, (struct sockaddr *)&address, &size), 0);
    (void)listen(worker.wait_fd, 1);
    ck_assert_int_lt(connect(other, (struct sockaddr *)&address, size), 0);
    close_fd(other);
}

TEST(two_memories_of_different_back_ends_do_not_go_together)
{
    struct channel other = CHANNEL_NULL;

    make(WAKE_EVENTFD);
    other = supervisor;
    make(WAKE_FUTEX);
    struct channel_fds given = copies();
    given.outbox = other.theirs.fd;
    ck_assert_int_eq(channel_open(&worker, &given), -EPROTO);
    channel_deinit(&other);
}

TEST(A4_publishing_wakes_a_sleeping_peer_only, BOTH_BACKENDS)
{
    uint32_t expected;

    make_both(_i);
    supervisor.wake = count_wake;
    emit(&supervisor, 10, 'a');
    ck_assert_uint_eq(wakes, 0);
    expect(&worker, 10, 'a');
    ck_assert(channel_prepare_sleep(&worker, &expected));
    ck_assert_uint_eq(expected, worker.their_words->bell);
    emit(&supervisor, 10, 'b');
    ck_assert_uint_eq(wakes, 1);
    ck_assert_ptr_eq(woken, &supervisor.words->bell);
    ck_assert_uint_ne(expected, worker.their_words->bell);
    channel_end_sleep(&worker);
    emit(&supervisor, 10, 'c');
    ck_assert_uint_eq(wakes, 1);
}

TEST(A4_publishing_nothing_wakes_nobody, BOTH_BACKENDS)
{
    uint32_t expected;

    make_both(_i);
    supervisor.wake = count_wake;
    ck_assert(channel_prepare_sleep(&worker, &expected));
    channel_publish(&supervisor);
    channel_release(&supervisor);
    ck_assert_uint_eq(wakes, 0);
}

TEST(A4_nobody_goes_to_sleep_on_something_to_read, BOTH_BACKENDS)
{
    uint32_t expected;

    make_both(_i);
    emit(&supervisor, 10, 'a');
    ck_assert(!channel_prepare_sleep(&worker, &expected));
    ck_assert_uint_eq(worker.words->sleeping, 0);
    /* Known to the consumer, but not yet read. */
    emit(&supervisor, 10, 'b');
    expect(&worker, 10, 'a');
    ck_assert(!channel_prepare_sleep(&worker, &expected));
    ck_assert_int_eq(channel_wait(&worker, 0), 0);
}

TEST(A4_releasing_wakes_a_blocked_peer_only, BOTH_BACKENDS)
{
    uint32_t expected;

    make_both(_i);
    worker.wake = count_wake;
    fill(&supervisor);
    expect(&worker, 500, 'f');
    channel_release(&worker);
    ck_assert_uint_eq(wakes, 0);
    fill(&supervisor);
    ck_assert(channel_prepare_block(&supervisor, 500, &expected));
    ck_assert_uint_eq(expected, supervisor.their_words->head);
    expect(&worker, 500, 'f');
    channel_release(&worker);
    ck_assert_uint_eq(wakes, 1);
    ck_assert_ptr_eq(woken, &worker.words->head);
    ck_assert_uint_ne(expected, supervisor.their_words->head);
    channel_end_block(&supervisor);
    ck_assert_uint_eq(supervisor.words->blocked, 0);
}

TEST(nobody_blocks_while_there_is_room_or_when_there_never_will_be, BOTH_BACKENDS)
{
    uint32_t expected;

    make_both(_i);
    ck_assert(!channel_prepare_block(&supervisor, 500, &expected));
    ck_assert_uint_eq(supervisor.words->blocked, 0);
    ck_assert(!channel_prepare_block(&supervisor, RING, &expected));
    ck_assert_uint_eq(supervisor.words->blocked, 0);
}

TEST(waiting_for_nothing_times_out_with_the_flag_down, BOTH_BACKENDS)
{
    make_both(_i);
    ck_assert_int_eq(channel_wait(&worker, 0), -ETIMEDOUT);
    ck_assert_int_eq(channel_wait(&worker, 1000), -ETIMEDOUT);
    ck_assert_uint_eq(worker.words->sleeping, 0);
}

TEST(waiting_for_space_ends_as_its_contract_says, BOTH_BACKENDS)
{
    make_both(_i);
    ck_assert_int_eq(channel_wait_space(&supervisor, 500, 0), 0);
    ck_assert_int_eq(channel_wait_space(&supervisor, RING, USEC_INFINITY), -EMSGSIZE);
    fill(&supervisor);
    ck_assert_int_eq(channel_wait_space(&supervisor, 500, 0), -ETIMEDOUT);
    ck_assert_int_eq(channel_wait_space(&supervisor, 500, 1000), -ETIMEDOUT);
    ck_assert_uint_eq(supervisor.words->blocked, 0);
    worker.words->head = 12;
    ck_assert_int_eq(channel_wait_space(&supervisor, 500, USEC_INFINITY), -EPROTO);
}

TEST(whoever_blocks_shows_what_it_committed_first, BOTH_BACKENDS)
{
    make_both(_i);
    while (put(&supervisor, 500, 'f') == 0)
        ;
    ck_assert(!ring_pending(&worker.in));
    ck_assert_int_eq(channel_wait_space(&supervisor, 500, 0), -ETIMEDOUT);
    ck_assert(ring_pending(&worker.in));
}

TEST(A4_a_sleeper_in_another_process_is_woken, BOTH_BACKENDS)
{
    make(_i);
    pid_t pid = fork();
    if (pid == 0) {
        struct channel_fds given = copies();

        _exit(channel_open(&worker, &given) != 0 || channel_wait(&worker, USEC_INFINITY) != 0 ||
              !ring_pending(&worker.in));
    }
    wait_until_up(&supervisor.their_words->sleeping);
    emit(&supervisor, 10, 'a');
    ck_assert_int_eq(exit_status_of(pid), 0);
}

TEST(A4_a_blocked_producer_in_another_process_is_woken, BOTH_BACKENDS)
{
    make(_i);
    pid_t pid = fork();
    if (pid == 0) {
        struct channel_fds given = copies();

        if (channel_open(&worker, &given) != 0)
            _exit(1);
        fill(&worker);
        _exit(channel_wait_space(&worker, 500, USEC_INFINITY) != 0 || put(&worker, 500, 'x') != 0);
    }
    wait_until_up(&supervisor.their_words->blocked);
    expect(&supervisor, 500, 'f');
    channel_release(&supervisor);
    ck_assert_int_eq(exit_status_of(pid), 0);
}

static void ignore(int signal)
{
}

TEST(a_signal_ends_the_wait, BOTH_BACKENDS)
{
    int status;

    make(_i);
    pid_t pid = fork();
    if (pid == 0) {
        struct sigaction action = {.sa_handler = ignore}; /* without SA_RESTART */
        struct channel_fds given = copies();

        if (sigaction(SIGUSR1, &action, NULL) < 0 || channel_open(&worker, &given) != 0)
            _exit(1);
        _exit(channel_wait(&worker, USEC_INFINITY) != -EINTR);
    }
    /* The flag is up a moment before the sleep begins: signal until one arrives during the sleep.
     */
    wait_until_up(&supervisor.their_words->sleeping);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        (void)kill(pid, SIGUSR1);
        (void)sched_yield();
    }
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}

TEST(the_next_worker_goes_on_where_the_last_one_stopped, BOTH_BACKENDS)
{
    uint32_t expected;

    make_both(_i);
    emit(&supervisor, 10, 'a');
    emit(&supervisor, 10, 'b');
    emit(&worker, 10, 'x');
    expect(&worker, 10, 'a');
    channel_release(&worker);
    expect(&worker, 10, 'b');                   /* read and not given back: comes again */
    ck_assert_int_eq(put(&worker, 10, 'y'), 0); /* committed and not published: never happened */
    worker.words->sleeping = worker.words->blocked = 1;
    channel_deinit(&worker);

    attach_worker();
    ck_assert_uint_eq(worker.words->sleeping, 0);
    ck_assert_uint_eq(worker.words->blocked, 0);
    expect(&worker, 10, 'b');
    emit(&worker, 10, 'z');
    expect(&supervisor, 10, 'x');
    expect(&supervisor, 10, 'z');
    ck_assert(channel_prepare_sleep(&supervisor, &expected));
}

TEST(a_worker_with_wild_cursors_is_found_out_on_either_ring, BOTH_BACKENDS)
{
    struct ring_record record;
    void *body;

    make_both(_i);
    worker.mine.header->tail = 0xffffff00;
    ck_assert_int_eq(ring_next(&supervisor.in, &record), -EPROTO);
    fill(&supervisor);
    worker.words->head = 0x7ffffff8;
    ck_assert_int_eq(ring_reserve(&supervisor.out, 500, &body), -EPROTO);
}

const struct suite suite = {.teardown = teardown};
