/* SPDX-License-Identifier: MIT */
#include "tests/world/scenario.h"

#include "shared/base/cleanup.h"
#include "tests/world/actors.h"
#include "tests/world/disk.h"
#include "tests/world/machine.h"
#include "tests/world/model.h"
#include "tests/world/operator.h"
#include "tests/world/programs.h"
#include "tests/world/sched.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Virtual time: that of faults, and that after which everything must have ended. */
#define FAULTS_USEC  (60 * USEC_PER_SEC)
#define DRAINED_USEC (3600 * USEC_PER_SEC)
#define SLOTS_USEC   (40 * USEC_PER_SEC)
/* How long nothing happens, and how many turns there may be meanwhile. */
#define RESTS_USEC  (2 * 3600 * USEC_PER_SEC)
#define RESTS_TURNS 0

#define MAGNITUDES(name, text, from, to) [SIM_##name] = {from, to},
static const struct {
    unsigned from, to;
} CHANCES[_SIM_N_FAULTS] = {SIM_FAULTS(MAGNITUDES)};

/* ---- configuration ---- */

static void write_file(const char *directory, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

static const char *per(bool key)
{
    return key ? "key" : "group";
}

static void write_group(const char *directory, const char *name, bool durable)
{
    struct model_group *group = &model_groups[durable];
    const unsigned running = (unsigned)sim_below(6), rate = (unsigned)sim_below(40);
    char text[1024], file[32];
    int n;

    *group = (struct model_group){.running = running < 3 ? running : 0,
                                  .rate = rate >= 4 && rate < 16 ? rate : 0,
                                  .running_per_key = sim_one_in(2),
                                  .rate_per_key = sim_one_in(2),
                                  .until_start = sim_one_in(4)};
    n = snprintf(text, sizeof(text),
                 "[Group]\nExecStart=/bin/true %s\n[Worker]\nTimeoutStopSec=2s\n"
                 "[Pool]\nSize=%u\nSpare=%u\nPrefetch=%u\n%s"
                 "[Jobs]\nMaxRetries=%u\nBackoffMinSec=10ms\nBackoffMaxSec=100ms\nDurable=%s\n"
                 "TimeoutSec=%us\nUniqueUntil=%s\n[Limits]\nRatePer=%s\nRunningPer=%s\n",
                 name, (unsigned)(1 + sim_below(3)), (unsigned)sim_below(2),
                 sim_one_in(2) ? 1 : 2 + (unsigned)sim_below(3),
                 sim_one_in(3) ? "Cells=by-key\n" : "", MODEL_ATTEMPTS - 1, durable ? "yes" : "no",
                 (unsigned)(MODEL_LIMIT / USEC_PER_SEC), group->until_start ? "start" : "end",
                 per(group->rate_per_key), per(group->running_per_key));
    if (group->running > 0)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "Running=%u\n", group->running);
    if (group->rate > 0)
        (void)snprintf(text + n, sizeof(text) - (size_t)n, "Rate=%u/1s\n", group->rate);
    (void)snprintf(file, sizeof(file), "%s.group", name);
    write_file(directory, file, text);
}

/* Its slots end SLOTS_USEC after the start, at a whole minute. */
static void write_schedule(const char *directory)
{
    static const char *const catch_ups[] = {"last", "all", "none"};
    static const char *const overlaps[] = {"skip", "buffer-one", "buffer", "cancel", "allow"};
    static const unsigned periods[] = {1, 2, 5, 10};
    const unsigned period = periods[sim_below(ELEMENTS(periods))];
    const uint64_t overlap = sim_below(ELEMENTS(overlaps));
    const bool durable = sim_one_in(2);
    const time_t until = (time_t)((SIM_EPOCH + sim_now() + SLOTS_USEC) / USEC_PER_SEC / 10 * 10);
    char text[512], moment[32];
    struct tm parts;

    (void)strftime(moment, sizeof(moment), "%Y-%m-%d %H:%M:%S", gmtime_r(&until, &parts));
    model_slot_job = (struct model_job){
        .durable = durable,
        .kind = sim_one_in(2) ? MODEL_SUCCEED : (uint32_t)sim_below(MODEL_CRASH + 1),
        .unique = overlap < 4 ? MODEL_UNIQUE_SLOT : 0};
    if (overlap == 3)
        model_allow(MODEL_SLOTS_END);
    (void)snprintf(text, sizeof(text),
                   "[Schedule]\nOnCalendar=*:*:0/%u UTC\nUntil=%s UTC\nCatchUp=%s\n"
                   "CatchUpWithinSec=1min\nOverlap=%s\nRandomizedDelaySec=%u\n"
                   "[Job]\nGroup=%s\nKey=red\nData=%s\n",
                   period, moment, catch_ups[sim_below(ELEMENTS(catch_ups))], overlaps[overlap],
                   sim_one_in(2) ? 3 : 0, durable ? "durable" : "plain", PROGRAM_SLOT_DATA);
    write_file(directory, "tick.schedule", text);
    operator_watch_schedule(period, until);
}

static void write_config(const char *directory)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "[Supervisor]\nSpinUsec=0\nStateDirectory=%s/state\n",
                   directory);
    write_file(directory, "troupe.conf", text);
    write_group(directory, "plain", false);
    write_group(directory, "durable", true);
    if (sim_one_in(2))
        write_schedule(directory);
}

/* ---- faults ---- */

static void draw_chances(uint64_t allowed)
{
    const bool operates = sim_one_in(2);

    for (unsigned i = 0; i < _SIM_N_FAULTS; i++) {
        const uint64_t power = UINT64_C(1)
                               << (CHANCES[i].from + sim_below(CHANCES[i].to - CHANCES[i].from));
        const uint64_t chance = power + sim_below(power);
        const bool exists = sim_one_in(2) && (i < SIM_UPGRADE || operates);

        if (exists && allowed & UINT64_C(1) << i)
            sim_chances[i] = chance;
    }
}

static void shoot(struct sim_process *process)
{
    if (!process)
        return;
    sim_trace("kill -9 of %s", sim_name(process));
    sim_kill(process, SIGKILL);
}

static bool has_drained(void)
{
    return program_n_clients() == 0 && model_n_open() == 0 && operator_sees_last_slot();
}

/* By up to half a day, in either direction: after a whole one back, schedules begin anew. */
static void set_clock(void)
{
    static const usec_t spans[] = {USEC_PER_SEC, 3600 * USEC_PER_SEC, 43200 * USEC_PER_SEC};
    const usec_t span = sim_below(spans[sim_below(ELEMENTS(spans))]);

    sim_set_clock(sim_one_in(2) ? SIM_EPOCH + span : SIM_EPOCH - span);
}

static void cause_one_each(void)
{
    struct sim_process *worker = machine_any_worker();

    if (sim_one_in(sim_chances[SIM_SHOOT_WORKER]))
        shoot(worker);
    if (sim_one_in(sim_chances[SIM_SHOOT_SUPERVISOR]))
        shoot(machine_supervisor());
    if (sim_one_in(sim_chances[SIM_SHOOT_KEEPER]))
        machine_kill(false);
    if (sim_one_in(sim_chances[SIM_CUT_POWER]))
        machine_kill(true);
    if (sim_has(SIM_FILL_DISK))
        disk_fill(sim_one_in(sim_chances[SIM_FILL_DISK]));
    if (worker && sim_one_in(sim_chances[SIM_STOP_WORKER]))
        sim_stop(worker, sim_now() + sim_below(10 * USEC_PER_SEC));
    if (sim_one_in(sim_chances[SIM_SET_CLOCK]))
        set_clock();
}

static void cause_faults(usec_t until)
{
    while (sim_now() < until && !has_drained()) {
        if (sim_run(usec_min(until, sim_now() + sim_below(2 * USEC_PER_SEC))))
            return;
        cause_one_each();
    }
}

static void end_faults(void)
{
    for (unsigned i = 0; i < _SIM_N_FAULTS; i++)
        sim_chances[i] = 0;
    disk_fill(false);
    if (sim_realtime != SIM_EPOCH)
        sim_set_clock(SIM_EPOCH);
    operator_rest();
}

static void drain(usec_t until)
{
    while (sim_now() < until && !has_drained())
        if (sim_run(usec_min(until, sim_now() + USEC_PER_SEC)))
            return;
}

/* Nobody has anything to do: nobody wakes up. */
static void check_rest(void)
{
    uint64_t before;

    (void)sim_run(sim_now() + RESTS_USEC); /* kept results expire */
    before = sim_n_turns();
    (void)sim_run(sim_now() + RESTS_USEC);
    if (sim_n_turns() - before > RESTS_TURNS)
        model_fault("%llu turns while nothing happens",
                    (unsigned long long)(sim_n_turns() - before));
}

/* ---- a seed ---- */

void scenario_directory(pid_t pid, char path[SCENARIO_PATH_MAX])
{
    (void)snprintf(path, SCENARIO_PATH_MAX, "/dev/shm/troupe-world-%d", (int)pid);
}

/* With by-key cells and without. */
static const char *const RECIPIENTS[] = {"plain/0", "durable/0", "plain/red/0", "durable/1"};

static void start_load(const char *socket_path)
{
    for (unsigned i = 0, n = 1 + (unsigned)sim_below(3); i < n; i++)
        program_start_client(socket_path, sim_one_in(2) ? "plain" : "durable",
                             1 + (unsigned)sim_below(100));
    for (unsigned i = 0, n = (unsigned)sim_below(3); i < n; i++)
        actors_start_talker(socket_path, RECIPIENTS[sim_below(ELEMENTS(RECIPIENTS))],
                            1 + (unsigned)sim_below(100));
    operator_start(socket_path, 100);
}

unsigned scenario_run(uint64_t seed, uint64_t allowed)
{
    char directory[SCENARIO_PATH_MAX], path[SCENARIO_PATH_MAX + 16];
    struct machine_options options;

    sim_seed(seed);
    scenario_directory(getpid(), directory);
    (void)snprintf(path, sizeof(path), "%s/state", directory);
    if (mkdir(directory, 0700) < 0 || mkdir(path, 0700) < 0)
        abort();
    (void)snprintf(path, sizeof(path), "%s/socket", directory);
    options = (struct machine_options){.config_directory = directory, .socket_path = path};
    write_config(directory);
    draw_chances(allowed);
    if (sim_chances[SIM_KILL_WORKER] > 0 || sim_chances[SIM_SHOOT_WORKER] > 0 ||
        sim_chances[SIM_STOP_WORKER] > 0)
        model_allow(MODEL_SLOTS_END);
    if (sim_has(SIM_CHANGE_STATE) || sim_has(SIM_RESIZE) || sim_has(SIM_RELOAD))
        model_allow(MODEL_STOPS);
    if (sim_has(SIM_DISK_ERROR) || sim_has(SIM_FAIL_CALL) || sim_has(SIM_FILL_DISK))
        model_allow(MODEL_DISK_FAULTS);
    if (sim_has(SIM_FAIL_CALL)) /* there may be no memory to wait */
        model_allow(MODEL_CLOCK);
    if (sim_has(SIM_SET_CLOCK) &&
        (sim_has(SIM_SHOOT_KEEPER) || sim_has(SIM_KILL_KEEPER) || sim_has(SIM_CUT_POWER)))
        model_allow(MODEL_CLOCK);
    disk_init();
    machine_start(&options);
    start_load(path);
    cause_faults(sim_now() + FAULTS_USEC);
    end_faults();
    drain(sim_now() + DRAINED_USEC);
    while (!operator_check() && !sim_run(sim_now() + USEC_PER_SEC))
        continue;
    check_rest();
    return model_judge();
}
