/* SPDX-License-Identifier: MIT */

/*
 * Ended jobs on disk:
 *
 *     history bare PATH COUNT      SQLite alone: the rows and words of the history, a thousand in
 * each transaction history module PATH COUNT    through Troupe's history history search PATH 50 the
 * first hits of several searches in such a history
 */

#include "supervisor/event/death.h"
#include "supervisor/history/history-rows.h"
#include "supervisor/loop/loop.h"
#include "tests/bench/load/samples.h"
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH  1000u
#define FLIGHT 30000u
#define TURN   64u
#define GROUPS 4u
#define BEGIN  UINT64_C(1700000000000000)

static void print(uint64_t count, uint64_t begin)
{
    printf("{\"rows_per_s\": %.1f}\n", (double)count / ((double)(samples_now() - begin) / 1e9));
}

/* The same pseudo-random numbers in each mode. */
static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* ---- SQLite alone ---- */

static void run(sqlite3_stmt *statement)
{
    (void)sqlite3_step(statement);
    (void)sqlite3_reset(statement);
}

static void add_bare(sqlite3_stmt *job, sqlite3_stmt *word, int64_t number, uint64_t *state)
{
    const uint64_t group = draw(state) % GROUPS, key = draw(state) % 10000;
    const bool dead = draw(state) % 20 == 0;
    const char name[] = {(char)('a' + group), '\0'};
    char id[33], text[16], words[128];

    (void)snprintf(id, sizeof(id), "%08" PRIx64 "%08" PRIx64 "%08" PRIx64 "%08" PRIx64, draw(state),
                   draw(state), draw(state), draw(state));
    (void)snprintf(text, sizeof(text), "key-%" PRIu64, key);
    (void)snprintf(words, sizeof(words), "g%s s%d c%d f%d %s %s", name, dead ? 7 : 4, dead ? 5 : 0,
                   dead ? 2 : 0, id, text);
    (void)sqlite3_bind_text(job, 1, name, 1, SQLITE_STATIC);
    (void)sqlite3_bind_text(job, 2, id, 32, SQLITE_STATIC);
    (void)sqlite3_bind_text(job, 3, text, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(job, 4, dead ? 7 : 4);
    (void)sqlite3_bind_int(job, 5, dead ? 5 : 0);
    (void)sqlite3_bind_int(job, 6, dead ? 2 : 0);
    (void)sqlite3_bind_int64(job, 7, number - 1000);
    (void)sqlite3_bind_int64(job, 8, number - 900);
    (void)sqlite3_bind_int64(job, 9, number);
    run(job);
    (void)sqlite3_bind_int64(word, 1, number);
    (void)sqlite3_bind_text(word, 2, words, -1, SQLITE_STATIC);
    run(word);
}

static int measure_bare(const char *path, uint64_t count)
{
    static const char add_job[] =
        "INSERT INTO job (grp, id, worker, key, state, cause, failed, priority, uid, code, attempt,"
        " failures, max_retries, created, started, ended, bytes, number)"
        " VALUES (?1, ?2, 'echo/0', ?3, ?4, ?5, ?6, 32, 0, 0, 1, 0, 3, ?7, ?8, ?9, 200, ?9)";
    uint64_t state = 1, begin;
    sqlite3_stmt *job, *word;
    sqlite3 *handle;

    if (sqlite3_open(path, &handle) != SQLITE_OK ||
        sqlite3_exec(handle, HISTORY_FORMAT.settings, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(handle, HISTORY_FORMAT.schema, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(handle, add_job, -1, &job, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(handle, "INSERT INTO word (rowid, words) VALUES (?, ?)", -1, &word,
                           NULL) != SQLITE_OK)
        return -EIO;
    begin = samples_now();
    for (uint64_t i = 0; i < count; i++) {
        if (i % BATCH == 0)
            (void)sqlite3_exec(handle, i > 0 ? "COMMIT; BEGIN" : "BEGIN", NULL, NULL, NULL);
        add_bare(job, word, (int64_t)(BEGIN + i), &state);
    }
    (void)sqlite3_exec(handle, "COMMIT", NULL, NULL, NULL);
    print(count, begin);
    return 0;
}

/* ---- the history ---- */

struct module {
    struct loop *loop;
    struct history *history;
    struct loop_deferred turn;
    uint64_t count, n_added, state;
};

static void add_job(struct module *module)
{
    const uint64_t group = draw(&module->state) % GROUPS, key = draw(&module->state) % 10000;
    const bool dead = draw(&module->state) % 20 == 0;
    const char name[] = {(char)('a' + group), '\0'};
    char text[16];
    struct job job = {.id_high = draw(&module->state) << 32 | draw(&module->state)};

    (void)snprintf(text, sizeof(text), "key-%" PRIu64, key);
    job.id_low = draw(&module->state) << 32 | draw(&module->state);
    job.key = text;
    job.key_size = (uint8_t)strlen(text);
    job.ended_at = BEGIN + module->n_added++;
    job.started_at = job.ended_at - 900;
    job.created_at = job.ended_at - 1000;
    job.priority = 32;
    job.state = dead ? JOB_DEAD : JOB_SUCCEEDED;
    job.cause = dead ? PROTOCOL_CAUSE_ATTEMPTS : PROTOCOL_CAUSE_NONE;
    job.failed_by = dead ? ATTEMPT_CAUSE_EXIT : ATTEMPT_CAUSE_NONE;
    history_note(module->history, &job, name, "echo/0", false);
    history_add(module->history, &job);
    free(job.rare);
}

static void on_turn(struct loop_deferred *deferred)
{
    struct module *module = list_entry(deferred, struct module, turn);
    const struct history_stats stats = history_stats(module->history);

    if (stats.n_rows + stats.n_dropped >= module->count) {
        loop_stop(module->loop);
        return;
    }
    if (module->n_added - stats.n_rows - stats.n_dropped >= FLIGHT)
        (void)usleep(2000);
    for (unsigned i = 0; module->n_added < module->count && i < TURN &&
                         module->n_added - stats.n_rows - stats.n_dropped < FLIGHT;
         i++)
        add_job(module);
    loop_defer(module->loop, &module->turn);
}

static int open_module(struct module *module, const char *path)
{
    const struct history_options options = {.path = path};
    const struct loop_options loop_options = {0};
    const char *reason = "";
    int r = loop_new(&module->loop, &loop_options, &reason);

    return r == 0 ? history_new(&module->history, module->loop, &options) : r;
}

static int measure_module(const char *path, uint64_t count)
{
    struct module module = {.count = count, .state = 1};
    uint64_t begin, n_dropped;
    int r = open_module(&module, path);

    for (unsigned i = 0; r == 0 && i < GROUPS; i++)
        r = history_use(module.history, (char[]){(char)('a' + i), '\0'}, USEC_INFINITY, UINT64_MAX);
    begin = samples_now();
    loop_deferred_init(&module.turn, on_turn);
    if (r == 0) {
        loop_defer(module.loop, &module.turn);
        r = loop_run(module.loop);
        n_dropped = history_stats(module.history).n_dropped;
        print(count - n_dropped, begin);
        history_free(module.history);
    }
    return r;
}

/* ---- searches ---- */

static void on_found(struct history_call *call)
{
    loop_stop(call->owner);
}

static void measure_search(struct module *module, const char *name, struct history_call *call,
                           size_t wanted)
{
    const uint64_t begin = samples_now();

    call->reader.all = true;
    call->wanted = wanted;
    call->done = on_found;
    call->owner = module->loop;
    do {
        history_begin_call(module->history, call);
        (void)loop_run(module->loop);
    } while (call->error == 0 && !call->complete && call->n_hits < wanted);
    printf("%s\"%s\": {\"ms\": %.2f, \"hits\": %zu}", *name == 'n' ? "{" : ", ", name,
           (double)(samples_now() - begin) / 1e6, call->n_hits);
    history_call_free(call);
}

static struct history_call *new_call(void)
{
    struct history_call *call = calloc(1, sizeof(*call));

    history_call_init(call, 0);
    return call;
}

static int measure_searches(const char *path, size_t wanted)
{
    struct module module = {0};
    struct history_call *call;
    int r = open_module(&module, path);

    if (r < 0)
        return r;
    call = new_call(); /* waits until the file is open */
    call->filter.group = strdup("none");
    measure_search(&module, "nothing", call, wanted);
    measure_search(&module, "all", new_call(), wanted);
    call = new_call();
    call->filter.group = strdup("b");
    measure_search(&module, "group", call, wanted);
    call = new_call();
    call->filter.state = JOB_DEAD;
    measure_search(&module, "state", call, wanted);
    call = new_call();
    call->filter.key = strdup("key-77");
    call->filter.key_size = 6;
    measure_search(&module, "key", call, wanted);
    call = new_call();
    call->filter.key = strdup("key-77");
    call->filter.key_size = 6;
    call->filter.state = JOB_DEAD;
    call->filter.group = strdup("c");
    measure_search(&module, "key, state and group", call, wanted);
    call = new_call();
    call->filter.failed = ATTEMPT_CAUSE_EXIT;
    call->filter.group = strdup("a");
    measure_search(&module, "cause and group", call, wanted);
    call = new_call();
    call->filter.text = strdup("key");
    measure_search(&module, "text that is common", call, wanted);
    call = new_call();
    call->filter.text = strdup("key 123");
    call->filter.group = strdup("c");
    measure_search(&module, "rare text and group", call, wanted);
    call = new_call();
    call->filter.id = strdup("0123456789abcdef0123456789abcdef");
    measure_search(&module, "id that is missing", call, 1);
    call = new_call();
    call->filter.text = strdup("no such text");
    measure_search(&module, "text that is missing", call, wanted);
    printf("}\n");
    history_free(module.history);
    return 0;
}

int main(int argc, char **argv)
{
    const uint64_t count = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
    int r;

    if (count == 0) {
        fprintf(stderr, "usage: history bare|module|search PATH COUNT\n");
        return 2;
    }
    r = strcmp(argv[1], "bare") == 0     ? measure_bare(argv[2], count)
        : strcmp(argv[1], "module") == 0 ? measure_module(argv[2], count)
                                         : measure_searches(argv[2], (size_t)count);
    if (r < 0)
        fprintf(stderr, "history: %s\n", strerror(-r));
    return r < 0;
}
