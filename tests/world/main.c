/* SPDX-License-Identifier: MIT */

/* The world: the real supervisor, workers and clients in one process, under a virtual clock. One
 * seed decides everything that happens. */

#include "shared/base/log.h"
#include "tests/world/scenario.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Real time of a seed, for calls that block the world, and its CPU time. */
#define HANGS_SEC 300
#define CPU_SEC   60
#define RUNS_MAX  64

static struct {
    unsigned long long next, last; /* seeds */
    usec_t until;                  /* real time; USEC_INFINITY = until the last seed */
    rlim_t cpu_sec;                /* of all seeds; RLIM_INFINITY = no limit */
    uint64_t allowed;              /* kinds of faults, a bit each */
    bool alone, shrinks, hashes;
    const char *program;
} options = {
    .next = 1,
    .last = 100,
    .until = USEC_INFINITY,
    .cpu_sec = RLIM_INFINITY,
    .allowed = UINT64_MAX,
    .shrinks = true,
    .program = "",
};

static struct {
    pid_t pid;
    unsigned long long seed;
} runs[RUNS_MAX];

int __real_clock_gettime(clockid_t clock, struct timespec *ret);

static usec_t real_time(clockid_t clock)
{
    struct timespec time;

    (void)__real_clock_gettime(clock, &time);
    return (usec_t)time.tv_sec * USEC_PER_SEC + (usec_t)time.tv_nsec / 1000;
}

/* ---- seeds ---- */

static void on_hang(int signal)
{
    (void)signal;
    dprintf(SIM_TRACE_FD, "FAULT: real time is over\n");
    _exit(3);
}

static _Noreturn void run_child(unsigned long long seed, bool quiet)
{
    const struct rlimit cpu = {.rlim_cur = CPU_SEC, .rlim_max = CPU_SEC};
    cpu_set_t cpus;
    unsigned n;

    (void)signal(SIGALRM, on_hang);
    (void)alarm(HANGS_SEC);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    /* Only one thread runs at a time: on one processor its turn ends without waking another. */
    CPU_ZERO(&cpus);
    CPU_SET((unsigned)sched_getcpu(), &cpus);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
    if (quiet)
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), SIM_TRACE_FD);
    n = scenario_run(seed, options.allowed);
    if (options.alone || options.hashes || n > 0)
        dprintf(SIM_TRACE_FD, "seed %llu: %u faults, %.1f s, hash %016llx\n", seed, n,
                (double)sim_now() / 1e6 - 1000, (unsigned long long)sim_hash());
    _exit(n > 0);
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

/* A process per seed: what the killed processes of the world leave behind goes with it. */
static pid_t start(unsigned long long seed, bool quiet)
{
    const pid_t pid = fork();

    if (pid == 0) {
        remove_directory(getpid()); /* of a world that was killed */
        run_child(seed, quiet);
    }
    return pid;
}

/* Waits for a seed to end. Returns its pid. */
static pid_t await(bool *ret_failed)
{
    int status;
    const pid_t pid = wait(&status);

    if (pid < 0)
        abort();
    remove_directory(pid);
    *ret_failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (!WIFEXITED(status) && options.allowed == UINT64_MAX)
        dprintf(SIM_TRACE_FD, "FAULT: signal %d\n", WTERMSIG(status));
    return pid;
}

/* Prints the fewest kinds of faults with which it still fails. */
static void shrink(unsigned long long seed)
{
    bool failed;

    options.alone = true;
    for (unsigned i = 0; i < _SIM_N_FAULTS; i++) {
        options.allowed &= ~(UINT64_C(1) << i);
        (void)start(seed, true);
        (void)await(&failed);
        if (!failed)
            options.allowed |= UINT64_C(1) << i;
    }
    dprintf(SIM_TRACE_FD, "seed %llu fails; repeat: %s %llu --trace --only=", seed, options.program,
            seed);
    for (unsigned i = 0, n = 0; i < _SIM_N_FAULTS; i++)
        if (options.allowed & UINT64_C(1) << i)
            dprintf(SIM_TRACE_FD, "%s%s", n++ > 0 ? "," : "", sim_fault_names[i]);
    dprintf(SIM_TRACE_FD, "\n");
    options.allowed = UINT64_MAX;
    options.alone = false;
}

static rlim_t cpu_time(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
}

static bool is_over(void)
{
    return options.next > options.last || real_time(CLOCK_MONOTONIC) >= options.until ||
           cpu_time() >= options.cpu_sec;
}

/* Runs seeds, one for each processor that it may use, until one fails if they are without end.
 * Returns how many failed. */
static unsigned run_all(void)
{
    const bool endless = options.last == UINT64_MAX;
    unsigned long long failures[RUNS_MAX];
    unsigned n_failed = 0, n_runs = 0, n_cpus;
    cpu_set_t cpus;
    bool failed;

    (void)sched_getaffinity(0, sizeof(cpus), &cpus);
    n_cpus = (unsigned)CPU_COUNT(&cpus);
    for (;;) {
        while (n_runs < n_cpus && n_runs < RUNS_MAX && !is_over() && (!endless || n_failed == 0)) {
            runs[n_runs].seed = options.next++;
            runs[n_runs].pid = start(runs[n_runs].seed, false);
            n_runs++;
        }
        if (n_runs == 0)
            break;
        const pid_t pid = await(&failed);
        for (unsigned i = 0; i < n_runs; i++)
            if (runs[i].pid == pid) {
                if (failed && n_failed++ < RUNS_MAX)
                    failures[n_failed - 1] = runs[i].seed;
                runs[i] = runs[--n_runs];
                break;
            }
    }
    for (unsigned i = 0; i < n_failed && i < RUNS_MAX && !sim_verbose && options.shrinks; i++)
        shrink(failures[i]);
    return n_failed;
}

/* ---- options ---- */

static void allow_only(const char *names)
{
    options.allowed = 0;
    for (unsigned i = 0; i < _SIM_N_FAULTS; i++) {
        const char *at = strstr(names, sim_fault_names[i]);
        const size_t length = strlen(sim_fault_names[i]);

        if (at && (at == names || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            options.allowed |= UINT64_C(1) << i;
    }
}

/* Without a first seed, the time decides. */
static void allow_all_seeds(void)
{
    if (!options.alone)
        options.next = real_time(CLOCK_REALTIME) / USEC_PER_SEC * 1000;
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
    } else if (sscanf(text, "%llu-%llu", &options.next, &options.last) == 1) {
        options.last = options.next;
        options.alone = true;
    } else if (*text == '-') {
        dprintf(STDERR_FILENO, "unknown option %s\n", text);
        return -EINVAL;
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long long first;
    unsigned n_failed;

    options.program = argv[0];
    for (int i = 1; i < argc; i++)
        if (take_option(argv[i]) < 0)
            return 2;
    if (options.until != USEC_INFINITY || options.cpu_sec != RLIM_INFINITY)
        allow_all_seeds();
    first = options.next;
    (void)dup2(STDERR_FILENO, SIM_TRACE_FD);
    if (options.last == UINT64_MAX)
        dprintf(SIM_TRACE_FD, "seeds from %llu\n", first);
    /* The same is logged with and without a trace: what is read of the clock counts. */
    log_init("trouped", LOG_LEVEL_INFO);
    if (!sim_verbose)
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    n_failed = run_all();
    dprintf(SIM_TRACE_FD, "%llu seeds, %u failed, %llu CPU seconds\n", options.next - first,
            n_failed, (unsigned long long)cpu_time());
    return n_failed > 0;
}
