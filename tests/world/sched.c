/* SPDX-License-Identifier: MIT */
#include "tests/world/sched.h"

#include "shared/base/cleanup.h"
#include "tests/world/machine.h"

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
    bool leads;      /* the first thread of its process */
    usec_t deadline; /* until which it waits; 0 = it does not */
    bool sleeps;     /* sim_sleep() */
    const struct pollfd *fds;
    nfds_t n_fds;
    bool is_ready; /* one of them is, or sim_wake() was called */
};

static struct {
    uint64_t seed, random;
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
    sim.seed = sim.random = seed;
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

/* splitmix64 */
uint64_t sim_random(void)
{
    uint64_t z = sim.random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
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
        list_for_each_entry (thread, &sim.threads, struct sim_thread, link)
            thread->is_ready |= thread->n_fds > 0 && thread->number == events[i].data.u64;
}

static bool may_run(const struct sim_thread *thread)
{
    if (thread->process->dead)
        return true;
    if (thread->process->stopped_until > sim.now)
        return false;
    return thread->is_ready || thread->deadline <= sim.now;
}

/* Returns one of those that may run, or NULL and the time of the next. */
static struct sim_thread *choose(usec_t *ret_next)
{
    struct sim_thread *ready[THREADS_MAX];
    size_t n = 0;

    *ret_next = USEC_INFINITY;
    list_for_each_entry (thread, &sim.threads, struct sim_thread, link)
        if (may_run(thread) && n < THREADS_MAX)
            ready[n++] = thread;
        else if (thread->process->stopped_until > sim.now)
            *ret_next = usec_min(*ret_next, thread->process->stopped_until);
        else
            *ret_next = usec_min(*ret_next, thread->deadline);
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
        sim_n_turns += thread != NULL;
        if (thread)
            return thread;
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
    self->deadline = 0;
    self->sleeps = self->is_ready = false;
    self->n_fds = 0;
    if (self->process->dead)
        leave();
}

/* A process whose last thread leaves keeps its turn. */
void sim_yield(void)
{
    if (self && self->process->n_threads > 0)
        pass_on();
}

void sim_sleep(usec_t deadline)
{
    self->sleeps = true;
    self->deadline = deadline;
    pass_on();
}

void sim_wake(void)
{
    list_for_each_entry (thread, &sim.threads, struct sim_thread, link)
        thread->is_ready |= thread->sleeps;
}

void sim_block_fds(const struct pollfd *fds, nfds_t n, usec_t deadline)
{
    self->fds = fds;
    self->n_fds = n;
    self->deadline = deadline;
    watch(true);
    pass_on();
}

void sim_rest(usec_t span)
{
    const usec_t end = usec_add(sim_now(), span);

    sim_fault_point("rest");
    while (sim_now() < end)
        sim_block_fds(NULL, 0, end);
}

uint64_t sim_chance_now(enum sim_fault fault, uint64_t likeliest)
{
    const uint64_t chance = sim_chances[fault];

    return chance > likeliest && sim.now < sim_strained_until
               ? likeliest + (chance - likeliest) / sim_strain
               : chance;
}

void sim_fault_point(const char *name)
{
    struct sim_process *process = sim_self;
    enum sim_fault fault = SIM_KILL_WORKER;

    if (!process || process->n_threads == 0)
        return;
    if (strcmp(process->name, "supervisor") == 0)
        fault = SIM_KILL_SUPERVISOR;
    else if (strcmp(process->name, "keeper") == 0)
        fault = SIM_KILL_KEEPER;
    if (process->on_end && sim_one_in(sim_chance_now(fault, LIKELIEST))) {
        sim_trace("killed at %s", name);
        sim_kill(process, SIGKILL);
    }
    if (process->on_end && fault == SIM_KILL_WORKER && sim_one_in(sim_chances[SIM_STOP_WORKER]))
        process->stopped_until = sim_now() + sim_below(10 * USEC_PER_SEC);
    if (process->stopped_until > sim.now || sim_one_in(sim_chances[SIM_PREEMPT]))
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
    if (!self->process->dead)
        (void)self->run(self->argument);
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

static bool has_ended(pthread_t id)
{
    list_for_each (node, &sim.threads)
        if (list_entry(node, struct sim_thread, link)->number == id)
            return false;
    return true;
}

void sim_join_thread(pthread_t id)
{
    while (!has_ended(id))
        sim_sleep(USEC_INFINITY);
}

/* ---- the scheduler ---- */

static void bury(struct sim_thread *thread)
{
    struct sim_process *process = thread->process;

    (void)__real_pthread_join(thread->id, NULL);
    list_unlink(&thread->link);
    free(thread);
    if (process->n_threads == 0 && process->on_end)
        process->on_end(process);
    sim_wake();
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
