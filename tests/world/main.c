/* SPDX-License-Identifier: MIT */

/* The world: the real supervisor, workers and clients in one process, under a virtual clock. One
 * seed decides everything that happens. */

#include "shared/base/log.h"
#include "tests/world/scenario.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Real time of a seed, for calls that block the world and for endless loops. */
#define HANGS_SEC 300

static struct {
    unsigned long long first, last; /* seeds */
    usec_t until;                   /* real time; USEC_INFINITY = until the last seed */
    rlim_t cpu_sec;                 /* of all seeds; RLIM_INFINITY = no limit */
    uint64_t allowed;               /* kinds of faults, a bit each */
    unsigned n_cpus;
    bool alone, shrinks, hashes;
    const char *program;
} options = {
    .first = 1,
    .last = 100,
    .until = USEC_INFINITY,
    .cpu_sec = RLIM_INFINITY,
    .allowed = UINT64_MAX,
    .shrinks = true,
    .program = "",
};

int __real_clock_gettime(clockid_t clock, struct timespec *ret);

static usec_t real_time(clockid_t clock)
{
    struct timespec time;

    (void)__real_clock_gettime(clock, &time);
    return (usec_t)time.tv_sec * USEC_PER_SEC + (usec_t)time.tv_nsec / 1000;
}

/* ---- seeds ---- */

static _Noreturn void run_child(unsigned long long seed, bool quiet)
{
    (void)alarm(HANGS_SEC);
    if (quiet)
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), SIM_TRACE_FD);
    scenario_run(seed, options.allowed);
    if (options.alone || options.hashes)
        dprintf(SIM_TRACE_FD, "seed %llu: %.1f s, hash %016llx\n", seed,
                (double)sim_now() / 1e6 - 1000, (unsigned long long)sim_hash);
    _exit(0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static void remove_directory(pid_t pid)
{
    char path[SCENARIO_PATH_MAX];

    scenario_directory(pid, path);
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Runs a seed in a process of its own: what the killed processes of the world leave behind goes
 * with it. Returns whether it fails. */
static bool run(unsigned long long seed, bool quiet)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0) {
        remove_directory(getpid()); /* of a world that was killed */
        run_child(seed, quiet);
    }
    if (waitpid(pid, &status, 0) < 0)
        abort();
    remove_directory(pid);
    if (WIFSIGNALED(status) && !quiet)
        dprintf(SIM_TRACE_FD, "FAULT: seed %llu: signal %d\n", seed, WTERMSIG(status));
    return status != 0;
}

/* Prints the fewest kinds of faults with which it still fails. */
static void shrink(unsigned long long seed)
{
    for (unsigned i = 0; i < _SIM_N_FAULTS; i++) {
        options.allowed &= ~(UINT64_C(1) << i);
        if (!run(seed, true))
            options.allowed |= UINT64_C(1) << i;
    }
    dprintf(SIM_TRACE_FD, "seed %llu fails; repeat: %s %llu --trace --only=", seed, options.program,
            seed);
    for (unsigned i = 0, n = 0; i < _SIM_N_FAULTS; i++)
        if (options.allowed & UINT64_C(1) << i)
            dprintf(SIM_TRACE_FD, "%s%s", n++ > 0 ? "," : "", sim_fault_names[i]);
    dprintf(SIM_TRACE_FD, "\n");
    options.allowed = UINT64_MAX;
}

static rlim_t cpu_time(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
}

/* What the processes that run seeds have in common. */
static struct {
    _Atomic unsigned long long n_begun, n_run; /* seeds */
    _Atomic unsigned n_failed;
} * common;

static bool is_over(void)
{
    return (options.last == UINT64_MAX && common->n_failed > 0) ||
           real_time(CLOCK_MONOTONIC) >= options.until ||
           cpu_time() >= options.cpu_sec / options.n_cpus;
}

/* On one processor: only one thread runs at a time, and its turn ends without waking another one.
 */
static void run_some(size_t number)
{
    unsigned long long seed;
    cpu_set_t cpu;

    CPU_ZERO(&cpu);
    CPU_SET(number, &cpu);
    (void)sched_setaffinity(0, sizeof(cpu), &cpu);
    while (!is_over() && (seed = options.first + common->n_begun++) <= options.last) {
        common->n_run++;
        if (run(seed, false)) {
            common->n_failed++;
            if (options.shrinks && !sim_verbose)
                shrink(seed);
        }
    }
}

/* Runs seeds, one at a time for each processor that it may use, until one fails if they are
 * without end. */
static void run_all(void)
{
    cpu_set_t cpus;

    (void)sched_getaffinity(0, sizeof(cpus), &cpus);
    common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED)
        abort();
    options.n_cpus = (unsigned)CPU_COUNT(&cpus);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &cpus) && fork() == 0) {
            run_some(i);
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
}

/* ---- options ---- */

static void allow_only(const char *names)
{
    options.allowed = 0;
    for (unsigned i = 0; i < _SIM_N_FAULTS; i++) /* no name is part of another one */
        if (strstr(names, sim_fault_names[i]))
            options.allowed |= UINT64_C(1) << i;
}

/* Without a first seed, the time decides. */
static void allow_all_seeds(void)
{
    if (!options.alone)
        options.first = real_time(CLOCK_REALTIME) / USEC_PER_SEC * 1000;
    options.last = UINT64_MAX;
    options.alone = false;
}

static int take_option(const char *text)
{
    unsigned long long value;

    if (strcmp(text, "--trace") == 0) {
        sim_verbose = true;
    } else if (strcmp(text, "--no-shrink") == 0) {
        options.shrinks = false;
    } else if (strcmp(text, "--hash") == 0) { /* of each seed, to compare builds */
        options.hashes = true;
    } else if (strncmp(text, "--only=", 7) == 0) {
        allow_only(text + 7);
        options.shrinks = false;
    } else if (sscanf(text, "--seconds=%llu", &value) == 1) {
        options.until = real_time(CLOCK_MONOTONIC) + value * USEC_PER_SEC;
    } else if (sscanf(text, "--cpu-seconds=%llu", &value) == 1) {
        options.cpu_sec = value;
    } else if (sscanf(text, "%llu-%llu", &options.first, &options.last) == 1) {
        options.last = options.first;
        options.alone = true;
    } else if (*text == '-') {
        dprintf(STDERR_FILENO, "unknown option %s\n", text);
        return -EINVAL;
    }
    return 0;
}

int main(int argc, char **argv)
{
    options.program = argv[0];
    for (int i = 1; i < argc; i++)
        if (take_option(argv[i]) < 0)
            return 2;
    if (options.until != USEC_INFINITY || options.cpu_sec != RLIM_INFINITY)
        allow_all_seeds();
    /* One heap for all threads, which keeps what it has. */
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 25);
    (void)dup2(STDERR_FILENO, SIM_TRACE_FD);
    if (options.last == UINT64_MAX)
        dprintf(SIM_TRACE_FD, "seeds from %llu\n", options.first);
    /* The same is logged with and without a trace: what is read of the clock counts. */
    log_init("trouped", LOG_LEVEL_INFO);
    if (!sim_verbose)
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    run_all();
    dprintf(SIM_TRACE_FD, "%llu seeds, %u failed, %llu CPU seconds\n", common->n_run,
            common->n_failed, (unsigned long long)cpu_time());
    return common->n_failed > 0;
}
