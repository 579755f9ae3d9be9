/* SPDX-License-Identifier: MIT */

/* The world: the real supervisor, workers and clients in one process, under a virtual clock. One
 * seed decides everything that happens. */

#include "shared/base/log.h"
#include "tests/world/keeper.h"
#include "tests/world/model.h"
#include "tests/world/operator.h"
#include "tests/world/programs.h"
#include "tests/world/sched.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Virtual time: that of faults, and that after which everything must have ended. */
#define FAULTS_USEC  (60 * USEC_PER_SEC)
#define DRAINED_USEC (600 * USEC_PER_SEC)
/* Real time of a seed. */
#define HANGS_SEC 60

static void write_file(const char *directory, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

static void write_group(const char *directory, const char *name, bool durable)
{
    char text[512], file[32];

    (void)snprintf(text, sizeof(text),
                   "[Group]\nExecStart=/bin/true %s\n[Pool]\nSize=%u\nSpare=%u\n"
                   "[Jobs]\nMaxRetries=2\nBackoffMinSec=10ms\nBackoffMaxSec=100ms\nDurable=%s\n",
                   name, (unsigned)(1 + sim_below(3)), (unsigned)sim_below(2),
                   durable ? "yes" : "no");
    (void)snprintf(file, sizeof(file), "%s.group", name);
    write_file(directory, file, text);
}

static void write_config(const char *directory)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "[Supervisor]\nSpinUsec=0\nStateDirectory=%s/state\n",
                   directory);
    write_file(directory, "troupe.conf", text);
    write_group(directory, "plain", false);
    write_group(directory, "durable", true);
}

/* Faults happen at random times. */
static void cause_faults(usec_t until)
{
    while (sim_now() < until) {
        struct sim_process *process = NULL;

        if (sim_run(usec_min(until, sim_now() + sim_below(2 * USEC_PER_SEC))) ||
            (program_n_clients() == 0 && model_n_open() == 0))
            return;
        if (sim_one_in(3))
            process = sim_one_in(3) ? keeper_supervisor() : keeper_any_worker();
        if (process) {
            sim_trace("kill -9 of %s", sim_name(process));
            sim_kill(process, SIGKILL);
        }
    }
}

/* Returns 0 or a number between two powers of two, whose magnitude is uniform. */
static uint64_t chance(unsigned from, unsigned to)
{
    const uint64_t power = UINT64_C(1) << (from + sim_below(to - from));

    return sim_one_in(3) ? 0 : power + sim_below(power);
}

static void on_hang(int signal)
{
    (void)signal;
    dprintf(SIM_TRACE_FD, "FAULT: real time is over\n");
    _exit(3);
}

/* Returns the number of faults. */
static unsigned run_seed(uint64_t seed)
{
    char directory[64], path[96];
    struct keeper_options options;

    (void)signal(SIGALRM, on_hang);
    (void)alarm(HANGS_SEC);
    sim_seed(seed);
    (void)snprintf(directory, sizeof(directory), "/dev/shm/troupe-world-%d", (int)getpid());
    (void)snprintf(path, sizeof(path), "%s/state", directory);
    if (mkdir(directory, 0700) < 0 || mkdir(path, 0700) < 0)
        abort();
    (void)snprintf(path, sizeof(path), "%s/socket", directory);
    options = (struct keeper_options){.config_directory = directory, .socket_path = path};
    write_config(directory);
    sim_chances = (struct sim_chances){
        .preempt = chance(1, 6),
        .kill_worker = chance(5, 12),
        .kill_supervisor = chance(6, 14),
    };
    keeper_start(&options);
    for (unsigned i = 0, n = 1 + (unsigned)sim_below(3); i < n; i++)
        program_start_client(path, sim_one_in(2) ? "plain" : "durable", i,
                             1 + (unsigned)sim_below(100));
    if (sim_one_in(2))
        operator_start(path, 100);
    cause_faults(sim_now() + FAULTS_USEC);
    sim_chances = (struct sim_chances){0};
    operator_rest();
    for (usec_t end = sim_now() + DRAINED_USEC;
         sim_now() < end && (program_n_clients() > 0 || model_n_open() > 0);)
        if (sim_run(usec_min(end, sim_now() + USEC_PER_SEC)))
            break;
    return model_judge();
}

static int run_child(uint64_t seed, bool quiet)
{
    const unsigned n = run_seed(seed);

    if (!quiet || n > 0)
        dprintf(SIM_TRACE_FD, "seed %llu: %u faults, %.1f s, hash %016llx\n",
                (unsigned long long)seed, n, (double)sim_now() / 1e6 - 1000,
                (unsigned long long)sim_hash());
    return n > 0;
}

/* A process per seed: what the killed processes of the world leave behind goes with it. */
static int run_in_child(uint64_t seed, bool quiet)
{
    const pid_t pid = fork();
    char command[96];
    int status;

    if (pid == 0)
        _exit(run_child(seed, quiet));
    while (waitpid(pid, &status, 0) < 0)
        continue;
    (void)snprintf(command, sizeof(command), "rm -rf /dev/shm/troupe-world-%d", (int)pid);
    (void)!system(command);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    dprintf(SIM_TRACE_FD, "seed %llu fails: %s %d\n", (unsigned long long)seed,
            WIFEXITED(status) ? "status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 1;
}

int main(int argc, char **argv)
{
    unsigned long long from = 1, to = 100;
    unsigned n_failed = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            sim_verbose = true;
        else if (sscanf(argv[i], "%llu-%llu", &from, &to) == 1)
            to = from;
    }
    (void)dup2(STDERR_FILENO, SIM_TRACE_FD);
    /* The same is logged with and without a trace: what is read of the clock counts. */
    log_init("trouped", LOG_LEVEL_INFO);
    if (!sim_verbose)
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    for (unsigned long long seed = from; seed <= to; seed++)
        n_failed += (unsigned)run_in_child(seed, from != to);
    dprintf(SIM_TRACE_FD, "%llu seeds, %u failed\n", to - from + 1, n_failed);
    return n_failed > 0;
}
