/* SPDX-License-Identifier: MIT */
#include "tests/world/sched.h"

#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "tests/world/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX 256
#define STACK_SIZE  ((size_t)1 << 20)

extern int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                 void *(*fn)(void *), void *argument);
extern int __real_pthread_join(pthread_t thread, void **ret);
extern int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                        const sigset_t *mask);

struct sim_thread {
    struct list link; /* in threads */
    struct sim_process *process;
    pthread_t id;
    pthread_t number; /* what the product has as its id: never used again */
    sem_t turn;
    sim_fn run;
    void *argument;
    sem_t prepared;
    bool leads; /* the first thread of its process */
    bool blocked;
    usec_t deadline; /* if blocked; what follows as well: */
    bool (*is_ready)(const void *argument);
    const void *waits_for;
    bool polls;        /* until `polled` is readable */
    int fd, polled;    /* the descriptor that the scheduler has as `polled`; -1 = none */
    uint64_t n_closed; /* the process's, when it was sent */
    bool is_sent;      /* and not received yet */
    bool is_readable;
    unsigned holds; /* sim_hold() */
    bool dying, ended;
};

struct sim_process {
    char name[SIM_NAME_MAX];
    unsigned n_threads;
    uint64_t n_closed; /* grows with each sim_forget_fds() */
    bool lasts;        /* is not killed at fault points */
    bool killed, over;
    uint64_t secret;
    usec_t stopped_until;
    struct sim_end end;
    sim_end_fn on_end;
    sim_fn prepare;
    void *userdata;
};

static struct {
    uint64_t state[2];
    uint64_t hash;
    usec_t now;
    struct list threads;
    pthread_t n_threads; /* that the product has started */
    sem_t scheduler;
    uint64_t n_turns;
    int socket; /* where descriptors arrive */
} sim;

static __thread struct sim_thread *self;
uint64_t sim_chances[_SIM_N_FAULTS];
#define TEXT(name, text, ...) [SIM_##name] = text,
const char *const sim_fault_names[_SIM_N_FAULTS] = {SIM_FAULTS(TEXT)};
bool sim_verbose;
usec_t sim_realtime = SIM_EPOCH;

/* ---- one seed ---- */

void sim_seed(uint64_t seed)
{
    int ends[2];

    /* splitmix64, as the authors of xoroshiro128+ recommend. */
    for (int i = 0; i < 2; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        sim.state[i] = z ^ (z >> 31);
    }
    sim.hash = UINT64_C(0xcbf29ce484222325);
    sim.now = 1000 * USEC_PER_SEC;
    list_init(&sim.threads);
    (void)sem_init(&sim.scheduler, 0, 0);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        abort();
    sim.socket = ends[0];
    (void)dup3(ends[1], SIM_SOCKET, O_CLOEXEC);
    close_fd(ends[1]);
    ends[1] = eventfd(0, EFD_NONBLOCK);
    (void)dup3(ends[1], SIM_CLOCK, O_CLOEXEC);
    close_fd(ends[1]);
}

void sim_set_clock(usec_t realtime)
{
    sim_realtime = realtime;
    sim_trace("sets the clock");
    (void)!write(SIM_CLOCK, &(uint64_t){1}, sizeof(uint64_t));
}

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

uint64_t sim_random(void)
{
    const uint64_t a = sim.state[0], result = a + sim.state[1], b = sim.state[1] ^ a;

    sim.state[0] = rotate(a, 24) ^ b ^ b << 16;
    sim.state[1] = rotate(b, 37);
    return result;
}

uint64_t sim_below(uint64_t n)
{
    return (sim_random() >> 11) % n;
}

bool sim_one_in(uint64_t n)
{
    return n > 0 && sim_below(n) == 0;
}

uint64_t sim_hash(void)
{
    return sim.hash;
}

void sim_trace(const char *format, ...)
{
    char line[512];
    va_list list;
    int n;

    n = snprintf(line, sizeof(line), "%10.6f %-14s ", (double)sim.now / 1e6 - 1000,
                 self ? self->process->name : "-");
    va_start(list, format);
    (void)vsnprintf(line + n, sizeof(line) - (size_t)n, format, list);
    va_end(list);
    for (const char *at = line; *at; at++)
        sim.hash = (sim.hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    if (sim_verbose)
        dprintf(SIM_TRACE_FD, "%s\n", line);
}

usec_t sim_now(void)
{
    return self ? ++sim.now : sim.now;
}

/* ---- turns ---- */

static _Noreturn void leave(void)
{
    struct sim_thread *thread = self;

    thread->process->n_threads--;
    if (thread->process->n_threads == 0) {
        thread->holds++;
        disk_forget(thread->process);
        (void)syscall(SYS_close_range, 0, ~0U, 0);
    }
    thread->ended = true;
    (void)sem_post(&sim.scheduler);
    /* As if killed: nothing of the C library runs, and the kernel marks robust futexes. */
    (void)syscall(SYS_exit, 0);
    abort();
}

static void await_turn(void)
{
    while (sem_wait(&self->turn) < 0)
        continue;
    if (self->dying)
        leave();
}

static void pass_on(void)
{
    (void)sem_post(&sim.scheduler);
    await_turn();
}

void sim_yield(void)
{
    if (!self || self->holds > 0)
        return;
    pass_on();
}

static void block(usec_t deadline)
{
    if (self->holds > 0) {
        dprintf(SIM_TRACE_FD, "%s blocks while it keeps its turn\n", self->process->name);
        abort();
    }
    self->blocked = true;
    self->deadline = deadline;
    pass_on();
    self->blocked = self->polls = false;
    self->is_ready = NULL;
}

void sim_block_until(bool (*is_ready)(const void *argument), const void *argument, usec_t deadline)
{
    self->is_ready = is_ready;
    self->waits_for = argument;
    block(deadline);
}

static bool is_never(const void *unused)
{
    (void)unused;
    return false;
}

void sim_rest(usec_t span)
{
    const usec_t end = usec_add(sim_now(), span);

    while (sim_now() < end)
        sim_block_until(is_never, NULL, end);
}

/* Sends the descriptor to the scheduler, which may poll it although it has another table. */
static void send_fd(int fd)
{
    union scm_control control;
    struct iovec part = {.iov_base = (char[]){0}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    scm_attach(&message, &control, &fd, 1);
    if (sendmsg(SIM_SOCKET, &message, 0) < 0)
        abort();
    self->fd = fd;
    self->n_closed = self->process->n_closed;
    self->is_sent = true;
}

void sim_block_fd(int fd, usec_t deadline)
{
    if (self->fd != fd || self->n_closed != self->process->n_closed)
        send_fd(fd);
    self->polls = true;
    block(deadline);
}

void sim_forget_fds(void)
{
    if (self)
        self->process->n_closed++;
}

uint64_t sim_n_closed(void)
{
    return self->process->n_closed;
}

void sim_hold(void)
{
    self->holds++;
}

void sim_let_go(void)
{
    self->holds--;
}

static uint64_t chance_of_death(const struct sim_process *process)
{
    if (strcmp(process->name, "supervisor") == 0)
        return sim_chances[SIM_KILL_SUPERVISOR];
    if (strcmp(process->name, "keeper") == 0)
        return sim_chances[SIM_KILL_KEEPER];
    return process->lasts ? 0 : sim_chances[SIM_KILL_WORKER];
}

void sim_fault_point(const char *name)
{
    if (!self || self->holds > 0)
        return;
    if (sim_one_in(chance_of_death(self->process))) {
        sim_trace("killed at %s", name);
        sim_kill(self->process, SIGKILL);
    }
    if (sim_one_in(sim_chances[SIM_PREEMPT]))
        sim_yield();
}

/* ---- processes ---- */

struct sim_process *sim_self(void)
{
    return self ? self->process : NULL;
}

void *sim_userdata(const struct sim_process *process)
{
    return process->userdata;
}

const char *sim_name(const struct sim_process *process)
{
    return process->name;
}

uint64_t sim_secret(const struct sim_process *process)
{
    return process->secret;
}

bool sim_is_dead(const struct sim_process *process)
{
    return process->killed;
}

static void end(struct sim_process *process, struct sim_end how)
{
    if (process->killed || process->over)
        return;
    process->killed = true;
    process->end = how;
}

void sim_kill(struct sim_process *process, int signal)
{
    end(process, (struct sim_end){.signalled = true, .code = signal});
    if (self && self->process == process)
        leave();
}

void sim_stop(struct sim_process *process, usec_t until)
{
    process->stopped_until = until;
}

void sim_exit(int status)
{
    end(self->process, (struct sim_end){.code = status});
    leave();
}

static void *enter(void *argument)
{
    self = argument;
    if (self->leads) {
        (void)unshare(CLONE_FILES);
        if (self->process->prepare)
            self->process->prepare(self->argument);
        (void)sem_post(&self->prepared);
    }
    await_turn();
    self->run(self->argument);
    if (self->leads)
        end(self->process, (struct sim_end){0});
    leave();
}

/* Returns NULL when out of memory. */
static struct sim_thread *add_thread(struct sim_process *process, sim_fn run, void *argument)
{
    struct sim_thread *thread = calloc(1, sizeof(*thread));
    pthread_attr_t attributes;

    if (!thread)
        return NULL;
    *thread = (struct sim_thread){.process = process,
                                  .run = run,
                                  .argument = argument,
                                  .fd = -1,
                                  .polled = -1,
                                  .leads = process->n_threads == 0};
    (void)sem_init(&thread->turn, 0, 0);
    (void)sem_init(&thread->prepared, 0, 0);
    process->n_threads++;
    list_init(&thread->link);
    list_push_back(&sim.threads, &thread->link);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    if (__real_pthread_create(&thread->id, &attributes, enter, thread) != 0)
        abort();
    while (thread->leads && sem_wait(&thread->prepared) < 0)
        continue;
    return thread;
}

struct sim_process *sim_start(const char *name, sim_fn prepare, sim_fn run, void *argument,
                              sim_end_fn on_end, void *userdata)
{
    struct sim_process *process = calloc(1, sizeof(*process));

    if (!process)
        abort();
    process->prepare = prepare;
    process->on_end = on_end;
    process->lasts = !on_end;
    process->userdata = userdata;
    process->secret = sim_random() | 1;
    (void)snprintf(process->name, sizeof(process->name), "%s", name);
    (void)add_thread(process, run, argument);
    return process;
}

int sim_add_thread(pthread_t *ret, sim_fn run, void *argument)
{
    struct sim_thread *thread = add_thread(self->process, run, argument);

    if (!thread)
        return ENOMEM;
    *ret = thread->number = ++sim.n_threads;
    return 0;
}

static bool has_ended(const void *argument)
{
    const pthread_t id = *(const pthread_t *)argument;

    list_for_each (node, &sim.threads)
        if (list_entry(node, struct sim_thread, link)->number == id)
            return false;
    return true;
}

void sim_join_thread(pthread_t id)
{
    while (!has_ended(&id))
        sim_block_until(has_ended, &id, USEC_INFINITY);
}

/* ---- the scheduler ---- */

static void receive_fd(struct sim_thread *thread)
{
    union scm_control control;
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};

    if (thread->polled >= 0)
        close_fd(thread->polled);
    if (recvmsg(sim.socket, &message, MSG_CMSG_CLOEXEC) != 1)
        abort();
    memcpy(&thread->polled, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    thread->is_sent = false;
}

/* Polls for all threads at once. */
static void poll_all(void)
{
    static const struct timespec zero;
    struct pollfd fds[THREADS_MAX];
    nfds_t n = 0;

    list_for_each (node, &sim.threads) {
        const struct sim_thread *thread = list_entry(node, struct sim_thread, link);

        if (thread->blocked && thread->polls && n < THREADS_MAX)
            fds[n++] = (struct pollfd){.fd = thread->polled, .events = POLLIN};
    }
    if (n > 0)
        (void)__real_ppoll(fds, n, &zero, NULL);
    n = 0;
    list_for_each (node, &sim.threads) {
        struct sim_thread *thread = list_entry(node, struct sim_thread, link);

        thread->is_readable = thread->blocked && thread->polls && fds[n++].revents != 0;
    }
}

static bool may_run(const struct sim_thread *thread)
{
    if (thread->process->killed)
        return true;
    if (thread->process->stopped_until > sim.now)
        return false;
    if (!thread->blocked || thread->deadline <= sim.now)
        return true;
    if (thread->is_ready)
        return thread->is_ready(thread->waits_for);
    return thread->is_readable;
}

/* Returns one of those that may run, or NULL and the time of the next. */
static struct sim_thread *choose(usec_t *ret_next)
{
    struct sim_thread *ready[THREADS_MAX];
    size_t n = 0;

    *ret_next = USEC_INFINITY;
    list_for_each (node, &sim.threads) {
        struct sim_thread *thread = list_entry(node, struct sim_thread, link);

        if (may_run(thread) && n < THREADS_MAX)
            ready[n++] = thread;
        else if (thread->process->stopped_until > sim.now)
            *ret_next = usec_min(*ret_next, thread->process->stopped_until);
        else
            *ret_next = usec_min(*ret_next, thread->deadline);
    }
    return n > 0 ? ready[sim_below(n)] : NULL;
}

static void bury(struct sim_thread *thread)
{
    struct sim_process *process = thread->process;

    (void)__real_pthread_join(thread->id, NULL);
    list_unlink(&thread->link);
    if (thread->polled >= 0)
        close_fd(thread->polled);
    free(thread);
    if (process->n_threads > 0)
        return;
    process->over = true;
    if (process->on_end)
        process->on_end(process, &process->end);
}

uint64_t sim_n_turns(void)
{
    return sim.n_turns;
}

bool sim_run(usec_t until)
{
    struct sim_thread *thread;
    usec_t next;

    while (sim.now < until) {
        poll_all();
        thread = choose(&next);
        if (!thread) {
            if (next == USEC_INFINITY)
                return true;
            sim.now = usec_min(next, until);
            continue;
        }
        thread->dying = thread->process->killed;
        sim.n_turns++;
        (void)sem_post(&thread->turn);
        while (sem_wait(&sim.scheduler) < 0)
            continue;
        if (thread->is_sent)
            receive_fd(thread);
        if (thread->ended)
            bury(thread);
    }
    return false;
}
