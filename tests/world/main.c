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
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Real time of a seed, for calls that block the world and for endless loops. */
#define HANGS_SEC     300
#define DIRECTORY_MAX 48

static struct {
    unsigned long long first, last; /* seeds; 0 = not chosen */
    rlim_t cpu_sec;                 /* of all seeds; RLIM_INFINITY = no limit */
    uint64_t allowed;               /* kinds of faults, a bit each */
    bool hashes, shrinks;
    const char *program;
} options = {
    .last = UINT64_MAX,
    .cpu_sec = RLIM_INFINITY,
    .allowed = UINT64_MAX,
    .shrinks = true,
};

/* By processor: the process that runs a seed there; 0 = none. */
static struct {
    pid_t pid;
    unsigned long long seed;
} running[CPU_SETSIZE];
static unsigned n_seeds, n_failed;

/* ---- seeds ---- */

static char *directory_of(pid_t pid, char path[DIRECTORY_MAX])
{
    (void)snprintf(path, DIRECTORY_MAX, "/dev/shm/troupe-world-%07d", (int)pid);
    return path;
}

static _Noreturn void run_child(unsigned long long seed, bool quiet)
{
    char directory[DIRECTORY_MAX];

    (void)alarm(HANGS_SEC);
    if (quiet)
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), SIM_TRACE_FD);
    scenario_run(seed, options.allowed, directory_of(getpid(), directory));
    if (options.hashes)
        dprintf(SIM_TRACE_FD, "seed %llu: %.1f s, hash %016llx\n", seed,
                (double)sim_now() / 1e6 - 1000, (unsigned long long)sim_hash);
    _exit(0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    return remove(path);
}

static void remove_directory(pid_t pid)
{
    char path[DIRECTORY_MAX];

    (void)nftw(directory_of(pid, path), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Runs a seed in a process of its own: what the killed processes of the world leave behind goes
 * with it. It is on one processor: only one thread runs at a time, and its turn ends without waking
 * another one. */
static pid_t start(unsigned long long seed, size_t cpu, bool quiet)
{
    const pid_t pid = fork();
    cpu_set_t cpus;

    if (pid != 0)
        return pid;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
    remove_directory(getpid()); /* of a world that was killed */
    run_child(seed, quiet);
}

static bool fails(unsigned long long seed, size_t cpu)
{
    const pid_t pid = start(seed, cpu, true);
    int status;

    if (waitpid(pid, &status, 0) < 0)
        abort();
    remove_directory(pid);
    return status != 0;
}

/* Prints the fewest kinds of faults with which it still fails. */
static void shrink(unsigned long long seed, size_t cpu)
{
    for (unsigned i = 0; i < _SIM_N_FAULTS; i++) {
        options.allowed &= ~(UINT64_C(1) << i);
        if (!fails(seed, cpu))
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

static bool is_over(void)
{
    return options.first > options.last || (options.cpu_sec != RLIM_INFINITY && n_failed > 0) ||
           cpu_time() >= options.cpu_sec;
}

/* Waits for the end of one of the seeds that run. Returns false if none does. */
static bool end_one(void)
{
    size_t cpu = 0;
    int status;
    const pid_t pid = wait(&status);

    if (pid < 0)
        return false;
    while (running[cpu].pid != pid)
        cpu++;
    running[cpu].pid = 0;
    remove_directory(pid);
    if (WIFSIGNALED(status))
        dprintf(SIM_TRACE_FD, "FAULT: seed %llu: signal %d\n", running[cpu].seed, WTERMSIG(status));
    n_failed += status != 0;
    if (status != 0 && options.shrinks)
        shrink(running[cpu].seed, cpu);
    return true;
}

/* Runs one seed at a time for each processor that it may use; with a limit, until one fails. */
static void run_all(void)
{
    cpu_set_t cpus;

    (void)sched_getaffinity(0, sizeof(cpus), &cpus);
    do
        for (size_t i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &cpus) && running[i].pid == 0 && !is_over()) {
                running[i].seed = options.first++;
                running[i].pid = start(running[i].seed, i, false);
                n_seeds++;
            }
    while (end_one());
}

/* ---- options ---- */

static void allow_only(const char *names)
{
    options.allowed = 0;
    for (unsigned i = 0; i < _SIM_N_FAULTS; i++) /* no name is part of another one */
        if (strstr(names, sim_fault_names[i]))
            options.allowed |= UINT64_C(1) << i;
}

static int take_option(const char *text)
{
    unsigned long long value;

    if (strcmp(text, "--trace") == 0) {
        sim_verbose = true;
        options.shrinks = false;
    } else if (strcmp(text, "--hash") == 0) { /* of each seed, to compare builds */
        options.hashes = true;
        options.shrinks = false;
    } else if (strncmp(text, "--only=", 7) == 0) {
        allow_only(text + 7);
        options.shrinks = false;
    } else if (sscanf(text, "--cpu-seconds=%llu", &value) == 1) {
        options.cpu_sec = value;
    } else if (sscanf(text, "%llu-%llu", &options.first, &options.last) == 1) {
        options.last = options.first;
        options.hashes = true;
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
    /* One heap for all threads, which keeps what it has. */
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 25);
    (void)dup2(STDERR_FILENO, SIM_TRACE_FD);
    if (options.first == 0) {
        options.first = (unsigned long long)time(NULL) * 1000;
        dprintf(SIM_TRACE_FD, "seeds from %llu\n", options.first);
    }
    /* The same is logged with and without a trace: what is read of the clock counts. */
    log_init("trouped", LOG_LEVEL_INFO);
    if (!sim_verbose)
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    run_all();
    dprintf(SIM_TRACE_FD, "%u seeds, %u failed, %llu CPU seconds\n", n_seeds, n_failed,
            (unsigned long long)cpu_time());
    return n_failed > 0;
}
