/* SPDX-License-Identifier: MIT */
#include "tests/world/sched.h"

#include "shared/base/cleanup.h"
#include "tests/world/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX 256
#define STACK_SIZE  ((size_t)1 << 20)
/* The likeliest death at fault points because of sim_strain. */
#define LIKELIEST 64

extern int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                 void *(*fn)(void *), void *argument);
extern int __real_pthread_join(pthread_t thread, void **ret);

struct sim_thread {
    struct list link; /* in threads */
    struct sim_process *process;
    pthread_t id;
    uint64_t number; /* what the product has as its id: never used again */
    sem_t turn;
    sim_fn run;
    void *argument;
    sem_t unshared;
    jmp_buf end;
    bool leads; /* the first thread of its process */
    bool blocked;
    usec_t deadline; /* if blocked; the next four as well */
    bool (*is_ready)(const void *argument);
    const void *waits_for;
    const struct pollfd *fds;
    nfds_t n_fds;
    bool is_polled; /* one of them is ready */
    unsigned holds; /* sim_hold() */
    bool dying;
};

static struct {
    uint64_t seed, state[2];
    usec_t now;
    struct list threads;
    uint64_t n_threads; /* that were ever started */
    sem_t scheduler;
    usec_t until; /* sim_run() returns then, or when all */
    bool all_wait;
    struct sim_thread *ended; /* to be buried */
} sim;

static __thread struct sim_thread *self;
uint64_t sim_chances[_SIM_N_FAULTS];
#define TEXT(name, text, ...) [SIM_##name] = text,
const char *const sim_fault_names[_SIM_N_FAULTS] = {SIM_FAULTS(TEXT)};
bool sim_verbose;
usec_t sim_realtime = SIM_EPOCH, sim_strained_until;
uint64_t sim_n_turns, sim_hash, sim_strain = 1;
__thread struct sim_process *sim_self;

/* ---- one seed ---- */

/* Gives a descriptor the number that it has in every process. */
static void place(int fd, int number)
{
    if (dup3(fd, number, O_CLOEXEC) < 0)
        abort();
    close_fd(fd);
}

void sim_seed(uint64_t seed)
{
    sim.seed = seed;
    /* splitmix64, as the authors of xoroshiro128+ recommend. */
    for (int i = 0; i < 2; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        sim.state[i] = z ^ (z >> 31);
    }
    sim_hash = UINT64_C(0xcbf29ce484222325);
    sim.now = 1000 * USEC_PER_SEC;
    list_init(&sim.threads);
    (void)sem_init(&sim.scheduler, 0, 0);
    place(epoll_create1(0), SIM_POLL);
    place(eventfd(0, EFD_NONBLOCK), SIM_CLOCK);
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
        sim_hash = (sim_hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    if (sim_verbose)
        dprintf(SIM_TRACE_FD, "%s\n", line);
}

void sim_fail(const char *format, ...)
{
    char text[1024];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    dprintf(SIM_TRACE_FD, "FAULT: seed %llu at %.6f: %s\n", (unsigned long long)sim.seed,
            (double)sim.now / 1e6 - 1000, text);
    _exit(1);
}

usec_t sim_now(void)
{
    return self ? ++sim.now : sim.now;
}

/* ---- turns ---- */

/* Notes which of the descriptors are ready for which threads wait. */
static void poll_all(void)
{
    struct epoll_event events[THREADS_MAX];
    const int n = epoll_wait(SIM_POLL, events, THREADS_MAX, 0);

    for (int i = 0; i < n; i++)
        list_for_each (node, &sim.threads) {
            struct sim_thread *thread = list_entry(node, struct sim_thread, link);

            thread->is_polled |= thread->n_fds > 0 && thread->number == events[i].data.u64;
        }
}

static bool may_run(const struct sim_thread *thread)
{
    if (thread->process->dead)
        return true;
    if (thread->process->stopped_until > sim.now)
        return false;
    if (!thread->blocked || thread->deadline <= sim.now)
        return true;
    return thread->is_ready ? thread->is_ready(thread->waits_for) : thread->is_polled;
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

/* Returns whose turn it is: lets time pass until somebody may run. NULL: sim_run() returns. */
static struct sim_thread *next_thread(void)
{
    struct sim_thread *thread;
    usec_t next;

    while (sim.now < sim.until) {
        poll_all();
        thread = choose(&next);
        if (thread) {
            thread->dying = thread->process->dead;
            sim_n_turns++;
            return thread;
        }
        sim.all_wait = next == USEC_INFINITY;
        if (sim.all_wait)
            break;
        sim.now = usec_min(next, sim.until);
    }
    return NULL;
}

static void wait_for(sem_t *turn)
{
    while (sem_wait(turn) < 0)
        continue;
}

/* The scheduler buries it, and goes on. */
static _Noreturn void leave(void)
{
    struct sim_thread *thread = self;

    thread->process->n_threads--;
    if (thread->process->n_threads == 0) {
        thread->holds++;
        disk_forget(thread->process);
        (void)syscall(SYS_close_range, 0, ~0U, 0);
    }
    sim.ended = thread;
    (void)sem_post(&sim.scheduler);
    longjmp(thread->end, 1); /* to enter(); the kernel marks robust futexes */
}

static void watch(bool begins)
{
    struct epoll_event event = {.data.u64 = self->number};

    for (nfds_t i = 0; i < self->n_fds; i++) {
        event.events = (uint32_t)self->fds[i].events | EPOLLONESHOT;
        if (self->fds[i].fd >= 0 &&
            epoll_ctl(SIM_POLL, begins ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, self->fds[i].fd, &event) <
                0 &&
            begins)
            abort();
    }
}

/* Whoever gives up the turn decides whose it is. */
static void pass_on(void)
{
    struct sim_thread *next = next_thread();

    if (next != self) {
        (void)sem_post(next ? &next->turn : &sim.scheduler);
        wait_for(&self->turn);
    }
    watch(false);
    self->blocked = self->is_polled = false;
    self->is_ready = NULL;
    self->n_fds = 0;
    if (self->dying)
        leave();
}

void sim_yield(void)
{
    if (self && self->holds == 0)
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
}

void sim_block_until(bool (*is_ready)(const void *argument), const void *argument, usec_t deadline)
{
    self->is_ready = is_ready;
    self->waits_for = argument;
    block(deadline);
}

void sim_block_fds(const struct pollfd *fds, nfds_t n, usec_t deadline)
{
    self->fds = fds;
    self->n_fds = n;
    watch(true);
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

void sim_hold(void)
{
    self->holds++;
}

void sim_let_go(void)
{
    self->holds--;
}

uint64_t sim_chance_now(enum sim_fault fault, uint64_t likeliest)
{
    const uint64_t chance = sim_chances[fault];

    return chance > likeliest && sim.now < sim_strained_until
               ? likeliest + (chance - likeliest) / sim_strain
               : chance;
}

static uint64_t chance_of_death(const struct sim_process *process)
{
    const enum sim_fault fault = strcmp(process->name, "supervisor") == 0 ? SIM_KILL_SUPERVISOR
                                 : strcmp(process->name, "keeper") == 0   ? SIM_KILL_KEEPER
                                                                          : SIM_KILL_WORKER;

    return process->on_end ? sim_chance_now(fault, LIKELIEST) : 0;
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

int sim_nothing(void)
{
    return 0;
}

/* ---- processes ---- */

/* The first end counts. */
static void end(struct sim_process *process, bool signalled, int code)
{
    if (process->dead)
        return;
    process->dead = true;
    process->signalled = signalled;
    process->code = code;
}

void sim_kill(struct sim_process *process, int signal)
{
    end(process, true, signal);
    if (self && self->process == process)
        leave();
}

void sim_stop(struct sim_process *process, usec_t until)
{
    process->stopped_until = until;
}

void sim_exit(int status)
{
    end(self->process, false, status);
    leave();
}

static void *enter(void *argument)
{
    self = argument;
    sim_self = self->process;
    if (self->leads) {
        (void)unshare(CLONE_FILES);
        (void)sem_post(&self->unshared);
    }
    wait_for(&self->turn);
    if (setjmp(self->end) != 0)
        return NULL;
    if (!self->dying)
        self->run(self->argument);
    if (self->leads)
        end(self->process, false, 0);
    leave();
}

static struct sim_thread *add_thread(struct sim_process *process, sim_fn run, void *argument)
{
    struct sim_thread *thread = calloc(1, sizeof(*thread));
    pthread_attr_t attributes;

    *thread = (struct sim_thread){.process = process,
                                  .run = run,
                                  .argument = argument,
                                  .number = ++sim.n_threads,
                                  .leads = process->n_threads == 0};
    (void)sem_init(&thread->turn, 0, 0);
    (void)sem_init(&thread->unshared, 0, 0);
    process->n_threads++;
    list_init(&thread->link);
    list_push_back(&sim.threads, &thread->link);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    if (__real_pthread_create(&thread->id, &attributes, enter, thread) != 0)
        abort();
    if (thread->leads)
        wait_for(&thread->unshared);
    return thread;
}

struct sim_process *sim_start(const char *name, sim_fn run, void *argument, sim_end_fn on_end)
{
    struct sim_process *process = calloc(1, sizeof(*process));

    *process =
        (struct sim_process){.argument = argument, .on_end = on_end, .secret = sim_random() | 1};
    (void)snprintf(process->name, sizeof(process->name), "%s", name);
    (void)add_thread(process, run, argument);
    return process;
}

pthread_t sim_add_thread(sim_fn run, void *argument)
{
    return (pthread_t)add_thread(sim_self, run, argument)->number;
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
    sim_block_until(has_ended, &id, USEC_INFINITY);
}

/* ---- the scheduler ---- */

static void bury(struct sim_thread *thread)
{
    struct sim_process *process = thread->process;

    (void)__real_pthread_join(thread->id, NULL);
    list_unlink(&thread->link);
    free(thread);
    if (process->n_threads > 0)
        return;
    if (process->on_end)
        process->on_end(process);
}

bool sim_run(usec_t until)
{
    struct sim_thread *thread;

    sim.until = until;
    sim.all_wait = false;
    while ((thread = next_thread())) {
        (void)sem_post(&thread->turn);
        wait_for(&sim.scheduler);
        if (sim.ended)
            bury(TAKE_PTR(sim.ended));
    }
    return sim.all_wait;
}
