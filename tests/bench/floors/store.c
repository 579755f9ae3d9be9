/* SPDX-License-Identifier: MIT */

/*
 * Jobs on disk, without anything that runs them:
 *
 *     store bare PATH COUNT BYTES WINDOW      SQLite alone: transactions that insert and delete
 *                                             WINDOW / 2 jobs each
 *     store create PATH COUNT BYTES WINDOW    the same, and each job that is deleted leaves a
 *                                             result; the oldest results are deleted
 *     store one PATH COUNT BYTES 1            the same, one job after the other, each of which has
 *                                             ended before its transaction begins
 *     store module PATH COUNT BYTES WINDOW    through Troupe's storage thread: so many jobs in
 *                                             flight, each added, and removed once it is on disk
 */

#include "supervisor/store/store.h"
#include "supervisor/loop/loop.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/schema.h"
#include "tests/bench/load/samples.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct load {
    const char *path;
    uint64_t count, size, window;
    void *payload;
};

static double cpu_seconds(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void print(uint64_t count, double seconds, double cpu)
{
    printf("{\"jobs_per_s\": %.1f, \"cpu_us_per_job\": %.3f}\n", (double)count / seconds,
           cpu / (double)count * 1e6);
}

/* ---- SQLite alone ---- */

/* The default of ResultsMax=. */
#define RESULTS_MAX 10000

struct bare {
    sqlite3 *handle;
    bool keeps_results;
    sqlite3_stmt *begin, *insert, *remove, *keep, *expire, *commit;
};

static int bare_prepare(struct bare *bare)
{
    const struct {
        sqlite3_stmt **statement;
        const char *sql;
    } all[] = {
        {&bare->begin, "BEGIN IMMEDIATE"},
        {&bare->insert, "INSERT INTO job (number, grp, priority, state, cancel, attempt, failed,"
                        " max_retries, created, uid, keep, payload)"
                        " VALUES (?1, 'echo', 32, 0, 0, 0, 0, 3, ?2, 0, 1, ?3)"},
        {&bare->remove, "DELETE FROM job WHERE number = ?1"},
        {&bare->keep, "INSERT INTO ended (number, grp, state, code, attempt, failed, max_retries,"
                      " priority, uid, created, started, ended, result)"
                      " VALUES (?1, 'echo', 4, 0, 1, 0, 3, 32, 0, ?2, ?2, ?2, ?3)"},
        {&bare->expire, "DELETE FROM ended WHERE number = ?1"},
        {&bare->commit, "COMMIT"},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (sqlite3_prepare_v2(bare->handle, all[i].sql, -1, all[i].statement, NULL) != SQLITE_OK)
            return -EIO;
    return 0;
}

/* The tables and the settings are those of the store. */
static int bare_open(struct bare *bare, const char *path)
{
    static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                   "PRAGMA secure_delete = OFF; PRAGMA cache_size = -16384;"
                                   "PRAGMA wal_autocheckpoint = 2000";

    if (sqlite3_open(path, &bare->handle) != SQLITE_OK ||
        sqlite3_exec(bare->handle, settings, NULL, NULL, NULL) != SQLITE_OK ||
        schema_migrate(bare->handle, 0) != SQLITE_OK)
        return -EIO;
    return bare_prepare(bare);
}

static int run(sqlite3_stmt *statement)
{
    return sqlite3_step(statement) == SQLITE_DONE && sqlite3_reset(statement) == SQLITE_OK ? 0
                                                                                           : -EIO;
}

static int run_on(sqlite3_stmt *statement, int64_t number)
{
    (void)sqlite3_bind_int64(statement, 1, number);
    return run(statement);
}

static int run_with_bytes(sqlite3_stmt *statement, int64_t number, const struct load *load)
{
    (void)sqlite3_bind_int64(statement, 2, (int64_t)(samples_now() / 1000));
    (void)sqlite3_bind_blob64(statement, 3, load->payload, load->size, SQLITE_STATIC);
    return run_on(statement, number);
}

/* Ends a job of an earlier batch: the result is as large as the payload. */
static int bare_end(struct bare *bare, const struct load *load, int64_t number)
{
    int r = run_on(bare->remove, number);

    if (r == 0 && bare->keeps_results)
        r = run_with_bytes(bare->keep, number, load);
    if (r == 0 && bare->keeps_results && number > RESULTS_MAX)
        r = run_on(bare->expire, number - RESULTS_MAX);
    return r;
}

/* Inserts the jobs of this batch, and ends those of the one before. */
static int bare_batch(struct bare *bare, const struct load *load, uint64_t first, uint64_t n)
{
    int r = run(bare->begin);

    for (uint64_t i = first; r == 0 && i < first + n; i++) {
        r = run_with_bytes(bare->insert, (int64_t)i, load);
        if (r == 0 && i > n)
            r = bare_end(bare, load, (int64_t)(i - n));
    }
    return r == 0 ? run(bare->commit) : r;
}

static int measure_bare(const struct load *load, bool keeps_results)
{
    const uint64_t n = load->window > 1 ? load->window / 2 : 1;
    uint64_t begin, done = 0;
    struct bare bare = {.keeps_results = keeps_results};
    int r = bare_open(&bare, load->path);

    begin = samples_now();
    double cpu = cpu_seconds();
    for (; r == 0 && done < load->count; done += n)
        r = bare_batch(&bare, load, done + 1, n);
    if (r == 0)
        print(done, (double)(samples_now() - begin) / 1e9, cpu_seconds() - cpu);
    return r;
}

/* All that is to be written is a result. */
static int bare_result(struct bare *bare, const struct load *load, int64_t number)
{
    int r = run(bare->begin);

    if (r == 0)
        r = run_with_bytes(bare->keep, number, load);
    if (r == 0 && number > RESULTS_MAX)
        r = run_on(bare->expire, number - RESULTS_MAX);
    return r == 0 ? run(bare->commit) : r;
}

static int measure_one(const struct load *load)
{
    struct bare bare = {0};
    struct samples samples;
    int r = samples_init(&samples, load->count);

    if (r == 0)
        r = bare_open(&bare, load->path);
    for (uint64_t i = 1; r == 0 && i <= load->count; i++) {
        const uint64_t begin = samples_now();

        r = bare_result(&bare, load, (int64_t)i);
        samples_add(&samples, begin, samples_now());
    }
    if (r < 0)
        return r;
    printf("{");
    samples_print(&samples, "");
    printf("}\n");
    return 0;
}

/* ---- the storage thread ---- */

struct module {
    const struct load *load;
    struct loop *loop;
    struct store *store;
    uint64_t n_begun, n_ended;
    int error;
};

struct flight {
    struct store_task add, remove;
    struct module *module;
    int64_t number;
};

static int apply_add(struct store_task *task, struct database *database)
{
    const struct flight *flight = list_entry(task, struct flight, add);
    struct job_row row = JOB_ROW_NULL;

    row.number = flight->number;
    row.group = "echo";
    row.group_size = 4;
    row.priority = 32;
    row.max_retries = 3;
    row.created_at = 1700000000000000;
    row.keep_result = true;
    row.payload = flight->module->load->payload;
    row.payload_size = flight->module->load->size;
    return job_rows_add(database, &row);
}

static int apply_remove(struct store_task *task, struct database *database)
{
    return job_rows_remove(database, 1u << ROWS_JOB,
                           list_entry(task, struct flight, remove)->number);
}

static void begin_flight(struct flight *flight)
{
    struct module *module = flight->module;

    if (module->n_begun++ >= module->load->count)
        return;
    flight->number = store_next_number(module->store);
    store_add(module->store, &flight->add);
}

static void stop(struct module *module, int result)
{
    module->error = result;
    loop_stop(module->loop);
}

static void on_added(struct store_task *task, int result)
{
    struct flight *flight = list_entry(task, struct flight, add);

    if (result != 0)
        return stop(flight->module, result);
    store_add(flight->module->store, &flight->remove);
}

static void on_removed(struct store_task *task, int result)
{
    struct flight *flight = list_entry(task, struct flight, remove);

    if (result != 0 || ++flight->module->n_ended == flight->module->load->count)
        return stop(flight->module, result);
    begin_flight(flight);
}

static void on_change(void *userdata, enum store_state state)
{
    struct module *module = userdata;

    stop(module, state == STORE_OPEN ? 0 : -EIO);
}

static int measure_module(const struct load *load)
{
    struct module module = {.load = load};
    const struct store_options options = {
        .path = load->path, .changed = on_change, .userdata = &module};
    const struct loop_options loop_options = {0};
    struct flight *flights = calloc(load->window, sizeof(*flights));
    const char *reason = "";
    int r = flights ? loop_new(&module.loop, &loop_options, &reason) : -ENOMEM;

    if (r == 0)
        r = store_new(&module.store, module.loop, &options);
    if (r == 0)
        r = loop_run(module.loop);
    uint64_t begin = samples_now();
    double cpu = cpu_seconds();
    for (uint64_t i = 0; r == 0 && i < load->window; i++) {
        flights[i] = (struct flight){
            .add = {.addition = true, .apply = apply_add, .done = on_added},
            .remove = {.apply = apply_remove, .done = on_removed},
            .module = &module,
        };
        begin_flight(&flights[i]);
    }
    if (r == 0)
        r = loop_run(module.loop);
    if (r == 0)
        r = module.error;
    if (r == 0)
        print(load->count, (double)(samples_now() - begin) / 1e9, cpu_seconds() - cpu);
    return r;
}

static int measure(const struct load *load, const char *mode)
{
    if (strcmp(mode, "module") == 0)
        return measure_module(load);
    if (strcmp(mode, "one") == 0)
        return measure_one(load);
    return measure_bare(load, strcmp(mode, "create") == 0);
}

int main(int argc, char **argv)
{
    struct load load = {0};

    if (argc == 6) {
        load = (struct load){.path = argv[2],
                             .count = strtoull(argv[3], NULL, 10),
                             .size = strtoull(argv[4], NULL, 10),
                             .window = strtoull(argv[5], NULL, 10)};
        load.payload = calloc(1, load.size + 1);
    }
    if (load.count == 0 || load.window == 0 || !load.payload) {
        fprintf(stderr, "usage: store bare|create|one|module PATH COUNT BYTES WINDOW\n");
        return 2;
    }
    int r = measure(&load, argv[1]);
    if (r < 0)
        fprintf(stderr, "store: %s\n", strerror(-r));
    return r < 0;
}
