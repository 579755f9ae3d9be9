/* SPDX-License-Identifier: MIT */
#include "tests/world/scenario.h"

#include "shared/base/cleanup.h"
#include "tests/world/machine.h"
#include "tests/world/model.h"
#include "tests/world/programs.h"
#include "tests/world/sched.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Virtual time after which everything must have ended. */
#define DRAINED_USEC (3600 * USEC_PER_SEC)
#define SLOTS_USEC   (10 * USEC_PER_SEC)
/* How long nothing happens. */
#define RESTS_USEC (2 * 3600 * USEC_PER_SEC)

#define MAGNITUDES(name, text, from, to) [SIM_##name] = {from, to},
static const struct {
    unsigned from, to;
} CHANCES[_SIM_N_FAULTS] = {SIM_FAULTS(MAGNITUDES)};

/* ---- configuration ---- */

static FILE *create(const char *name)
{
    FILE *file = fopen(name, "we");

    if (!file)
        abort();
    return file;
}

static unsigned draw(unsigned n)
{
    return (unsigned)sim_below(n);
}

/* Returns a number of 1 to 2 ^ `powers`: mostly a small one, and sometimes a large one. */
static unsigned draw_size(unsigned powers)
{
    const unsigned a = draw(powers + 1), b = draw(powers + 1);

    return 1 + draw(1u << (a < b ? a : b));
}

static const char *const PER[] = {"group", "key"};

static void write_group(const char *name)
{
    const bool durable = strcmp(name, "durable.group") == 0;
    struct model_group *group = &model_groups[durable];
    const unsigned running = draw(6), rate = draw(40), size = 1 + draw(3), spare = draw(2);
    const unsigned ahead = 1 + draw(4), prefetch = sim_one_in(2) ? 1 : ahead;
    const unsigned low = sim_one_in(2) ? size : draw(size);
    const char *cells = sim_one_in(3) ? "Cells=by-key\n" : "";
    FILE *file = create(name);

    group->running = running < 3 ? running : 0;
    group->rate = rate >= 4 && rate < 16 ? rate : 0;
    group->running_per_key = sim_one_in(2);
    group->rate_per_key = sim_one_in(2);
    group->until_start = sim_one_in(4);
    group->behind = (prefetch - 1) * MODEL_ENDLESS_MAX;
    group->shrinks = low < size;
    group->shares = model_shared > 0 && sim_one_in(2);
    fprintf(file,
            "[Group]\nExecStart=/bin/true %s\n[Worker]\nTimeoutStopSec=2s\n"
            "[Pool]\nSize=%u..%u\nIdleSec=3s\nSpare=%u\nPrefetch=%u\n%s%s"
            "[Jobs]\nMaxRetries=%u\nBackoffMinSec=10ms\nBackoffMaxSec=100ms\nDurable=%s\n"
            "TimeoutSec=%us\nUniqueUntil=%s\n[Limits]\nRatePer=%s\nRunningPer=%s\n%s",
            durable ? "durable" : "plain", low, size, spare, prefetch, cells,
            spare == 0 && ahead > 2 ? "Template=slot\nMaxJobs=3\n" : "", MODEL_ATTEMPTS - 1,
            durable ? "yes" : "no", (unsigned)(MODEL_LIMIT / USEC_PER_SEC),
            group->until_start ? "start" : "end", PER[group->rate_per_key],
            PER[group->running_per_key], group->shares ? "Uses=shared\n" : "");
    if (group->running > 0)
        fprintf(file, "Running=%u\n", group->running);
    if (group->rate > 0)
        fprintf(file, "Rate=%u/1s\n", group->rate);
    (void)fclose(file);
}

static void write_limit(void)
{
    FILE *file = create("shared.limit");

    model_shared = 1 + draw(4);
    fprintf(file, "[Limit]\nRunning=%u\n", model_shared);
    (void)fclose(file);
}

/* Its slots end at a time that SLOTS_USEC divides. */
static void write_schedule(void)
{
    static const char *const catch_ups[] = {"last", "all", "none"};
    static const char *const overlaps[] = {"skip", "buffer-one", "buffer", "cancel", "allow"};
    static const unsigned periods[] = {1, 2, 5, 10};
    const unsigned period = periods[draw(ELEMENTS(periods))];
    const unsigned overlap = draw(ELEMENTS(overlaps));
    const unsigned kind = draw(MODEL_CRASH + 1);
    const char *catch_up = catch_ups[draw(ELEMENTS(catch_ups))];
    const bool durable = sim_one_in(2), delays = sim_one_in(2);
    const usec_t end = SIM_EPOCH + sim_now() + draw_size(5) * USEC_PER_SEC + SLOTS_USEC;
    const time_t until = (time_t)(end / USEC_PER_SEC / 10 * 10);
    FILE *file = create("tick.schedule");
    char moment[32];
    struct tm parts;

    (void)strftime(moment, sizeof(moment), "%Y-%m-%d %H:%M:%S", gmtime_r(&until, &parts));
    model_slot_job = (struct model_job){.durable = durable,
                                        .kind = sim_one_in(2) ? MODEL_SUCCEED : kind,
                                        .cost = 1,
                                        .unique = overlap < 4 ? MODEL_UNIQUE_SLOT : 0};
    if (overlap == 3)
        model_allowed |= MODEL_SLOTS_END;
    fprintf(file,
            "[Schedule]\nOnCalendar=*:*:0/%u UTC\nUntil=%s UTC\nCatchUp=%s\n"
            "CatchUpWithinSec=1min\nOverlap=%s\nRandomizedDelaySec=%u\n"
            "[Job]\nGroup=%s\nKey=red\nData=%s\n",
            period, moment, catch_up, overlaps[overlap], delays ? 3 : 0,
            durable ? "durable" : "plain", PROGRAM_SLOT_DATA);
    (void)fclose(file);
    operator_watch_schedule(period, until);
}

static void write_config(const char *directory)
{
    FILE *file = create("troupe.conf");

    fprintf(file, "[Supervisor]\nSpinUsec=0\nStateDirectory=%s/state\n", directory);
    (void)fclose(file);
    if (sim_one_in(3))
        write_limit();
    write_group("plain.group");
    write_group("durable.group");
    if (sim_one_in(2))
        write_schedule();
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
    sim_strain = draw_size(6);
}

/* What may be otherwise because of a kind of faults. */
static void allow(void)
{
    static const unsigned because[_SIM_N_FAULTS] = {
        [SIM_KILL_WORKER] = MODEL_SLOTS_END,
        [SIM_STOP_WORKER] = MODEL_SLOTS_END,
        [SIM_CHANGE_STATE] = MODEL_STOPS,
        [SIM_RESIZE] = MODEL_STOPS,
        [SIM_RELOAD] = MODEL_STOPS,
        [SIM_REMOVE] = MODEL_STOPS | MODEL_REMOVES,
        [SIM_DISK_ERROR] = MODEL_DISK_FAULTS,
        [SIM_FILL_DISK] = MODEL_DISK_FAULTS,
        [SIM_SET_CLOCK] = MODEL_NO_SLOTS,
        /* There may be no memory to wait. */
        [SIM_FAIL_CALL] = MODEL_DISK_FAULTS | MODEL_CLOCK,
    };

    for (unsigned i = 0; i < _SIM_N_FAULTS; i++)
        model_allowed |= sim_has(i) ? because[i] : 0;
    if (sim_has(SIM_SET_CLOCK) && (sim_has(SIM_KILL_KEEPER) || sim_has(SIM_CUT_POWER)))
        model_allowed |= MODEL_CLOCK;
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
    if (sim_one_in(sim_chances[SIM_CUT_POWER]))
        machine_cut_power();
    if (sim_has(SIM_FILL_DISK))
        disk_fill(sim_one_in(sim_chances[SIM_FILL_DISK]));
    if (sim_one_in(sim_chances[SIM_SET_CLOCK]))
        set_clock();
}

static void run_until(usec_t until, bool (*is_over)(void))
{
    while (sim_now() < until && !is_over() &&
           !sim_run(usec_min(until, sim_now() + sim_below(2 * USEC_PER_SEC))))
        cause_one_each();
}

static void end_faults(void)
{
    for (unsigned i = SIM_PREEMPT; i < _SIM_N_FAULTS; i++)
        sim_chances[i] = 0;
    disk_fill(false);
    if (sim_realtime != SIM_EPOCH)
        sim_set_clock(SIM_EPOCH);
    operator_rest();
    model_calm_since = machine_ready_time();
}

/* Nobody has anything to do: nobody wakes up. */
static void check_rest(void)
{
    uint64_t before;

    (void)sim_run(sim_now() + RESTS_USEC); /* kept results expire */
    before = sim_n_turns;
    (void)sim_run(sim_now() + RESTS_USEC);
    sim_expect(sim_n_turns == before, "%llu turns while nothing happens",
               (unsigned long long)(sim_n_turns - before));
}

/* ---- a seed ---- */

/* With by-key cells and without. */
static const char *const RECIPIENTS[] = {"plain/0", "durable/0", "plain/red/0", "durable/1"};

static void start_load(const char *socket_path)
{
    unsigned n_jobs = 0;

    for (unsigned left = 1 + draw(3); left > 0; left--) {
        const char *group = sim_one_in(2) ? "plain" : "durable";
        const unsigned n = 1 + draw(1u << draw(8));

        program_start_client(socket_path, group, n);
        n_jobs += n;
    }
    for (unsigned left = draw(3); left > 0; left--) {
        const char *recipient = RECIPIENTS[draw(ELEMENTS(RECIPIENTS))];

        actors_start_talker(socket_path, recipient, draw_size(7));
    }
    operator_start(socket_path, n_jobs);
}

void scenario_run(uint64_t seed, uint64_t allowed, const char *directory)
{
    char path[64];

    sim_seed(seed);
    if (mkdir(directory, 0700) < 0 || chdir(directory) < 0 || mkdir("state", 0700) < 0)
        abort();
    (void)snprintf(path, sizeof(path), "%s/socket", directory);
    write_config(directory);
    draw_chances(allowed);
    allow();
    disk_init();
    machine_start(directory, path);
    start_load(path);
    run_until(sim_now() + draw_size(6) * USEC_PER_SEC, operator_is_done);
    end_faults();
    run_until(sim_now() + DRAINED_USEC, operator_has_checked);
    model_judge();
    sim_expect(operator_has_checked(), "the operator still waits");
    check_rest();
}
