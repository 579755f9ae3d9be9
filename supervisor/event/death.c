/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "supervisor/event/stack.h"
#include "supervisor/succession/record.h"
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const CAUSES[_DEATH_N_CAUSES] = {
    [DEATH_EXIT] = "exit",
    [DEATH_SIGNAL] = "signal",
    [DEATH_OOM] = "oom",
    [DEATH_JOB_TIMEOUT] = "job_timeout",
    [DEATH_WATCHDOG] = "watchdog",
    [DEATH_START_TIMEOUT] = "start_timeout",
    [DEATH_VIOLATION] = "violation",
    [DEATH_NO_PROGRESS] = "no_progress",
    [DEATH_STOP] = "stop",
    [DEATH_SYSTEM_CALL] = "system_call",
};

/* Texts before the description of the end. NULL: the end itself explains the cause. */
static const char *const PREFIXES[_DEATH_N_CAUSES] = {
    [DEATH_OOM] = "ran out of memory",
    [DEATH_JOB_TIMEOUT] = "its job ran out of time",
    [DEATH_WATCHDOG] = "gave no sign of life within WatchdogSec",
    [DEATH_START_TIMEOUT] = "was not ready within TimeoutStartSec",
    [DEATH_VIOLATION] = "broke the protocol",
    [DEATH_NO_PROGRESS] = "made no progress within NoProgressSec",
    [DEATH_STOP] = "stopped",
    [DEATH_SYSTEM_CALL] = "made a system call that is not allowed",
};

static const char *const WORDS[] = {
    [ATTEMPT_CAUSE_NONE] = "",
    [ATTEMPT_CAUSE_RETRY] = "retry",
    [ATTEMPT_CAUSE_EXIT] = "exit",
    [ATTEMPT_CAUSE_SIGNAL] = "signal",
    [ATTEMPT_CAUSE_OOM] = "oom",
    [ATTEMPT_CAUSE_JOB_TIMEOUT] = "job_timeout",
    [ATTEMPT_CAUSE_WATCHDOG] = "watchdog",
    [ATTEMPT_CAUSE_START_TIMEOUT] = "start_timeout",
    [ATTEMPT_CAUSE_VIOLATION] = "violation",
    [ATTEMPT_CAUSE_NO_PROGRESS] = "no_progress",
    [ATTEMPT_CAUSE_STOP] = "stop",
    [ATTEMPT_CAUSE_SUPERVISOR] = "supervisor",
    [ATTEMPT_CAUSE_SYSTEM_CALL] = "system_call",
    [ATTEMPT_CAUSE_RESULT_TOO_LARGE] = "result_too_large",
};

_Static_assert(ELEMENTS(WORDS) == _ATTEMPT_N_CAUSES, "a word for each cause");

enum attempt_cause attempt_cause_from_string(const char *word)
{
    for (unsigned i = 1; i < ELEMENTS(WORDS); i++)
        if (strcmp(WORDS[i], word) == 0)
            return (enum attempt_cause)i;
    return ATTEMPT_CAUSE_NONE;
}

const char *attempt_cause_to_string(enum attempt_cause cause)
{
    return WORDS[cause];
}

/* The kinds of shares. */
enum {
    SHARE_REPORTS,
    SHARE_STACKS, /* in bytes */
};

static void death_drop_stack(struct death *death)
{
    if (death->stack_share)
        share_sub(death->stack_share, SHARE_STACKS, death->stack_size);
    list_unlink(&death->stack_link);
    death->stack_share = share_unref(death->stack_share);
    free(death->stack);
    death->stack = NULL;
    death->stack_size = 0;
}

static void death_log_remove(struct death_log *log, struct death *death)
{
    list_cursors_pass(&log->cursors, &death->link);
    list_unlink(&death->link);
    list_unlink(&death->share_link);
    share_sub(death->share, SHARE_REPORTS, 1);
    death->share = share_unref(death->share);
    log->n_deaths--;
    death_unref(death);
}

void death_log_init(struct death_log *log, size_t max)
{
    *log = (struct death_log){.max = max};
    list_init(&log->deaths);
    list_init(&log->cursors);
    shares_init(&log->shares);
}

/* Drops stacks until they have at most `max` bytes. */
static void death_log_shrink_stacks(struct death_log *log, uint64_t max)
{
    while (log->shares.used[SHARE_STACKS] > max) {
        const struct share *share = share_victim(&log->shares, SHARE_STACKS);
        struct death *death =
            list_first_entry(&share->entries[SHARE_STACKS], struct death, stack_link);

        death_drop_stack(death);
        (void)snprintf(death->stack_missing, sizeof(death->stack_missing),
                       "it was dropped, as others needed the memory");
    }
}

void death_log_deinit(struct death_log *log)
{
    list_cursors_end(&log->cursors);
    list_for_each_entry_safe (death, &log->deaths, struct death, link)
        death_log_remove(log, death);
    death_log_shrink_stacks(log, 0);
    shares_deinit(&log->shares);
}

struct death *death_new(struct death_log *log)
{
    struct death *death = calloc(1, sizeof(*death));

    if (!death)
        return NULL;
    death->references = 1;
    death->log = log;
    list_init(&death->stack_link);
    list_init(&death->link);
    list_init(&death->share_link);
    return death;
}

struct death *death_ref(struct death *death)
{
    death->references++;
    return death;
}

struct death *death_unref(struct death *death)
{
    if (!death || --death->references > 0)
        return NULL;
    assert(!list_linked(&death->link));
    free(death->messages);
    free(death->state);
    free(death->stderr_text);
    free(death->top);
    death_drop_stack(death);
    free(death);
    return NULL;
}

static void death_log_shrink(struct death_log *log)
{
    while (log->n_deaths > log->max) {
        const struct share *share = share_victim(&log->shares, SHARE_REPORTS);
        death_log_remove(
            log, list_first_entry(&share->entries[SHARE_REPORTS], struct death, share_link));
    }
}

void death_log_resize(struct death_log *log, size_t max)
{
    log->max = max;
    death_log_shrink(log);
}

void death_log_add(struct death_log *log, struct death *death)
{
    death->serial = ++log->n_total;
    if (log->max == 0)
        return;
    death->share = share_get(&log->shares, death->worker, share_owner_size(death->worker));
    if (!death->share)
        return;
    share_add(death->share, SHARE_REPORTS, 1);
    list_push_back(&death->share->entries[SHARE_REPORTS], &death->share_link);
    list_push_front(&log->deaths, &death_ref(death)->link);
    log->n_deaths++;
    death_log_shrink(log);
}

bool death_had_in_hand(const struct death *death, uint64_t message)
{
    for (size_t i = 0; i < death->n_messages; i++)
        if (death->messages[i].id == message)
            return true;
    return false;
}

size_t death_log_find(const struct death_log *log,
                      bool (*wanted)(const struct death *death, const void *userdata),
                      const void *userdata, struct death **ret, size_t max)
{
    size_t n = 0, n_searched = 0;

    list_for_each_entry (death, &log->deaths, struct death, link) {
        if (n == max || n_searched++ == DEATHS_SEARCHED)
            break;
        if (wanted(death, userdata))
            ret[n++] = death;
    }
    for (size_t i = 0; i < n / 2; i++)
        SWAP(ret[i], ret[n - 1 - i]);
    return n;
}

/* ---- the same deaths ---- */

static uint64_t hash_of(const struct death *death, bool open)
{
    const struct {
        uint64_t group, top;
        int64_t cause, signalled, code;
    } key = {
        .group = hash_bytes(death->worker, share_owner_size(death->worker)),
        .top = open && death->top ? hash_bytes(death->top, strlen(death->top)) : 0,
        .cause = death->cause,
        .signalled = death->exit.signalled - death->exit.unknown,
        .code = death->exit.code,
    };

    return hash_bytes(&key, sizeof(key));
}

/* Returns the number of places. Those beyond the maximum are older than all that are listed. */
static size_t count_one(const struct death *death, bool open, struct death_place *places, size_t n)
{
    const uint64_t hash = hash_of(death, open);

    for (size_t i = 0; i < n; i++)
        if (places[i].hash == hash) {
            places[i].first_at = death->at;
            places[i].n++;
            return n;
        }
    if (n == DEATH_PLACES_MAX)
        return n;
    places[n] = (struct death_place){
        .hash = hash, .last = death, .first_at = death->at, .n = 1, .open = open};
    return n + 1;
}

size_t death_count(const struct death_log *log,
                   bool (*wanted)(const struct death *death, const void *userdata),
                   bool (*open)(const struct death *death, const void *userdata),
                   const void *userdata, struct death_place ret[DEATH_PLACES_MAX])
{
    size_t n = 0, n_counted = 0, n_searched = 0;

    list_for_each_entry (death, &log->deaths, struct death, link) {
        if (n_counted == DEATHS_COUNTED || n_searched++ == DEATHS_SEARCHED)
            break;
        if (death->cause == DEATH_STOP || !wanted(death, userdata))
            continue;
        n = count_one(death, open(death, userdata), ret, n);
        n_counted++;
    }
    return n;
}

const char *death_cause_text(enum death_cause cause)
{
    return PREFIXES[cause];
}

const char *death_cause_to_string(enum death_cause cause)
{
    return CAUSES[cause];
}

const char *death_signal_name(int signal, char *buffer)
{
    const char *name = sigabbrev_np(signal);

    if (name)
        (void)snprintf(buffer, 16, "SIG%s", name);
    else
        (void)snprintf(buffer, 16, "signal %d", signal);
    return buffer;
}

void death_describe(struct death *death, const char *why)
{
    const char *prefix = death_cause_text(death->cause);
    char signal_name[16], end[64];

    if (death->exit.unknown)
        (void)snprintf(end, sizeof(end), "ended, but another process traces it and hides how");
    else if (death->exit.signalled)
        (void)snprintf(end, sizeof(end), "killed by %s%s",
                       death_signal_name(death->exit.code, signal_name),
                       death->exit.core_dumped ? " (core dumped)" : "");
    else
        (void)snprintf(end, sizeof(end), "exited with status %d", death->exit.code);
    (void)snprintf(death->detail, sizeof(death->detail), "%s%s%s%s%s", prefix ? prefix : "",
                   prefix ? ": " : "", why ? why : "", why ? ": " : "", end);
}

static void find_top(struct death *death)
{
    char top[3 * STACK_FIELD_MAX];

    if (stack_top(death->stack, death->stack_size, top, sizeof(top)))
        death->top = strdup(top);
}

void death_set_stack(struct death *death, char *text, size_t size, const char *missing)
{
    struct death_log *log = death->log;

    death_drop_stack(death);
    free(death->top);
    death->top = NULL;
    if (text)
        death->stack_share =
            share_get(&log->shares, death->worker, share_owner_size(death->worker));
    (void)snprintf(death->stack_missing, sizeof(death->stack_missing), "%s",
                   missing                       ? missing
                   : text && !death->stack_share ? "out of memory"
                                                 : "");
    if (!death->stack_share) {
        free(text);
        return;
    }
    death->stack = text;
    death->stack_size = size;
    list_push_back(&death->stack_share->entries[SHARE_STACKS], &death->stack_link);
    share_add(death->stack_share, SHARE_STACKS, size);
    find_top(death);
    death_log_shrink_stacks(log, DEATH_STACKS_MAX);
}

/* ---- across an upgrade ---- */

#define ROW spawn_exit
#define EXIT_FIELDS(F)                                                                             \
    F(UPGRADE, unknown, NUMBER(unknown))                                                           \
    F(UPGRADE, signalled, NUMBER(signalled))                                                       \
    F(UPGRADE, code, NUMBER(code))                                                                 \
    F(UPGRADE, core_dumped, NUMBER(core_dumped))                                                   \
    F(UPGRADE, user_sec, NUMBER(usage.user.tv_sec))                                                \
    F(UPGRADE, user_usec, NUMBER(usage.user.tv_usec))                                              \
    F(UPGRADE, system_sec, NUMBER(usage.system.tv_sec))                                            \
    F(UPGRADE, system_usec, NUMBER(usage.system.tv_usec))                                          \
    F(UPGRADE, maxrss, NUMBER(usage.max_rss))
static const struct record EXIT_RECORD = RECORD("exit", EXIT_FIELDS);
#undef ROW

#define ROW death_message
#define MESSAGE_FIELDS(F)                                                                          \
    F(UPGRADE, id, NUMBER(id))                                                                     \
    F(UPGRADE, sent_at, NUMBER(sent_at))                                                           \
    F(UPGRADE, sender, STRING(sender))                                                             \
    F(UPGRADE, type, STRING(type))
static const struct record MESSAGE_RECORD = RECORD("death-message", MESSAGE_FIELDS);
#undef ROW

#define ROW death
#define DEATH_FIELDS(F)                                                                            \
    F(UPGRADE, serial, NUMBER(serial))                                                             \
    F(UPGRADE, worker, STRING(worker))                                                             \
    F(UPGRADE, generation, NUMBER(generation))                                                     \
    F(UPGRADE, pid, NUMBER(pid))                                                                   \
    F(UPGRADE, at, NUMBER(at))                                                                     \
    F(UPGRADE, cause, BELOW(cause, _DEATH_N_CAUSES - 1))                                           \
    F(UPGRADE, detail, STRING(detail))                                                             \
    F(UPGRADE, reason, STRING(reason))                                                             \
    F(UPGRADE, exit, SUBRECORD(exit, EXIT_RECORD))                                                 \
    F(UPGRADE, uptime, NUMBER(uptime))                                                             \
    F(UPGRADE, jobs_done, NUMBER(jobs_done))                                                       \
    F(UPGRADE, command, STRING(command))                                                           \
    F(UPGRADE, job, STRING(job))                                                                   \
    F(UPGRADE, owner_uid, NUMBER(owner_uid))                                                       \
    F(UPGRADE, submitter_uid, NUMBER(submitter_uid))                                               \
    F(UPGRADE, attempt, NUMBER(attempt))                                                           \
    F(UPGRADE, n_messages, BELOW(n_messages, DEATH_MESSAGES_MAX))                                  \
    F(UPGRADE, state_of_job, NUMBER(state_of_job))                                                 \
    F(UPGRADE, stack_missing, STRING(stack_missing))
const struct record DEATH_RECORD = RECORD(DEATH_ROW, DEATH_FIELDS);

/* Returns whether there was memory for the list. */
static bool get_messages(struct saved_reader *row, struct death *death)
{
    if (death->n_messages == 0)
        return true;
    death->messages = calloc(death->n_messages, sizeof(*death->messages));
    for (size_t i = 0; death->messages && i < death->n_messages; i++)
        record_get(row, &MESSAGE_RECORD, &death->messages[i]);
    return death->messages;
}

/* Returns a copy of the bytes, NULL if there are none; `*ok` false when out of memory. */
static void *copy_bytes(struct saved_reader *row, size_t *ret_size, bool *ok)
{
    const void *bytes = saved_get_bytes(row, ret_size);
    void *copy = *ret_size > 0 ? malloc(*ret_size) : NULL;

    if (copy)
        memcpy(copy, bytes, *ret_size);
    *ok = *ok && (copy || *ret_size == 0);
    return copy;
}

static void put_report(struct saved_writer *row, const struct death *death)
{
    record_put(row, &DEATH_RECORD, death);
    for (size_t i = 0; i < death->n_messages; i++)
        record_put(row, &MESSAGE_RECORD, &death->messages[i]);
    saved_put_bytes(row, death->state, death->state_size);
    saved_put_bytes(row, death->stderr_text, death->stderr_text ? death->stderr_size : 0);
    saved_put_bytes(row, death->stack, death->stack_size);
}

/* Returns whether all fields are intact, and there was memory for them. */
static bool get_fields(struct saved_reader *row, struct death *death)
{
    size_t stack_size;
    char *stack;
    bool ok;

    record_get(row, &DEATH_RECORD, death);
    ok = get_messages(row, death);
    death->state = copy_bytes(row, &death->state_size, &ok);
    death->stderr_text = copy_bytes(row, &death->stderr_size, &ok);
    if (saved_has_more(row)) { /* 1.0.0 had none */
        stack = copy_bytes(row, &stack_size, &ok);
        if (stack)
            death_set_stack(death, stack, stack_size, NULL);
    }
    return ok && !row->damaged && death->state_size <= MEMORY_STATE_MAX;
}

static struct death *get_report(struct saved_reader *row, struct death_log *log)
{
    struct death *death = death_new(log);

    return death && get_fields(row, death) ? death : death_unref(death);
}

static struct death *find_serial(const struct death_log *log, uint64_t serial)
{
    list_for_each_entry (death, &log->deaths, struct death, link)
        if (death->serial <= serial)
            return death->serial == serial ? death : NULL;
    return NULL;
}

void death_put(struct saved_writer *row, const struct death *death)
{
    const bool in_log = death && list_linked(&death->link);
    size_t fields;

    saved_put_number(row, in_log ? death->serial : 0);
    fields = saved_begin(row);
    if (death && !in_log)
        put_report(row, death);
    saved_end(row, fields);
}

struct death *death_get(struct saved_reader *row, struct death_log *log)
{
    const uint64_t serial = saved_get_number(row);
    struct saved_reader fields = saved_get_fields(row);
    struct death *death = serial > 0 ? find_serial(log, serial) : NULL;

    if (death)
        return death_ref(death);
    return saved_has_more(&fields) ? get_report(&fields, log) : NULL;
}

void death_log_save(const struct death_log *log, struct saver *saver)
{
    for (const struct list *node = log->deaths.prev; node != &log->deaths; node = node->prev) {
        struct saved_writer row = {0};

        put_report(&row, list_entry(node, struct death, link));
        saved_add(saver, DEATH_ROW, &row, NULL);
    }
}

int death_log_restore(struct death_log *log, struct saved_reader *row)
{
    struct death *death = get_report(row, log);

    if (!death)
        return row->damaged ? -EBADMSG : -ENOMEM;
    if (death->serial > log->n_total)
        log->n_total = death->serial - 1; /* death_log_add() counts on */
    death_log_add(log, death);
    death_unref(death);
    return 0;
}
