/* SPDX-License-Identifier: MIT */
#include "supervisor/message/ask/ask.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Without memory to tell the asker of a failure, the ask stays open, and times out after so long.
 */
#define FAIL_AGAIN USEC_PER_SEC

void ask_table_init(struct ask_table *table)
{
    *table = (struct ask_table){0};
    list_init(&table->ended);
}

void ask_table_deinit(struct ask_table *table)
{
    assert(table->n_open == 0);
    list_for_each_entry_safe (ask, &table->ended, struct ask, link) {
        index_remove(&table->by_handle, &ask->by_handle);
        list_unlink(&ask->link);
        free(ask);
    }
    index_deinit(&table->by_handle);
}

static struct ask *ask_find(const struct ask_table *table, uint64_t handle)
{
    return index_find_entry(&table->by_handle, handle, struct ask, by_handle);
}

static void ask_on_timer(struct timer *timer, usec_t now)
{
    ask_fail(list_entry(timer, struct ask, timer), ETIMEDOUT, "no reply in time");
}

/* Returns an ask that is among those that have ended; NULL when out of memory. */
static struct ask *ask_allocate(struct message_context *context)
{
    struct ask_table *table = &context->asks;
    struct ask *ask = list_first_entry(&table->ended, struct ask, link);

    if (ask)
        return ask;
    ask = calloc(1, sizeof(*ask));
    if (!ask)
        return NULL;
    ask->context = context;
    timer_init(&ask->timer, ask_on_timer);
    list_init(&ask->link);
    list_push_back(&table->ended, &ask->link);
    index_add(&table->by_handle, &ask->by_handle, 0);
    return ask;
}

/* Opens an ask with this handle, until `at` instead of the options' time-out. */
static int ask_open(struct ask **ret, struct message_context *context,
                    const struct ask_options *options, uint64_t handle, usec_t at)
{
    struct ask_table *table = &context->asks;
    struct ask *ask = ask_allocate(context);

    if (!ask)
        return -ENOMEM;
    timer_arm(loop_timers(context->loop), &ask->timer, at);
    list_unlink(&ask->link);
    index_remove(&table->by_handle, &ask->by_handle);
    index_add(&table->by_handle, &ask->by_handle, handle);
    ask->handle = handle;
    ask->open = true;
    ask->asker = options->asker;
    ask->asked_by = ask->asker ? actor_self(ask->asker)->reference : 0;
    ask->cookie = options->cookie;
    ask->done = options->done;
    ask->userdata = options->userdata;
    ask->copies = ask->weight = 1;
    ask->quiet = false;
    ask->wanted_size = (uint8_t)options->wanted.type_size;
    if (ask->wanted_size > 0)
        memcpy(ask->wanted, options->wanted.type, ask->wanted_size);
    if (ask->asker) {
        list_push_back(&ask->asker->asks, &ask->link);
        index_add(&ask->asker->asks_by_cookie, &ask->by_cookie, ask->cookie);
        ask->asker->n_asks++;
    }
    table->n_open++;
    *ret = ask;
    return 0;
}

/* Early in the boot, when there are no random bytes, what is left of the last ones will do. */
static uint64_t new_handle(struct ask_table *table)
{
    uint64_t handle;

    do {
        if (table->n_random == 0) {
            (void)!getrandom(table->random, sizeof(table->random), GRND_NONBLOCK);
            table->n_random = ELEMENTS(table->random);
        }
        handle = hash_mix(table->random[--table->n_random] + ++table->n_made);
    } while (handle == 0 || ask_find(table, handle));
    return handle;
}

int ask_new(struct ask **ret, struct message_context *context, const struct ask_options *options)
{
    return ask_open(ret, context, options, new_handle(&context->asks),
                    usec_add(loop_now(context->loop), options->timeout));
}

struct ask *ask_get(const struct ask_table *table, uint64_t handle)
{
    struct ask *ask = handle != 0 ? ask_find(table, handle) : NULL;

    return ask && ask->open ? ask : NULL;
}

uint64_t ask_asked_by(const struct ask_table *table, uint64_t handle)
{
    const struct ask *ask = ask_find(table, handle);

    return ask ? ask->asked_by : 0;
}

void ask_end(struct ask *ask)
{
    struct ask_table *table = &ask->context->asks;

    timer_disarm(loop_timers(ask->context->loop), &ask->timer);
    list_unlink(&ask->link);
    if (ask->asker) {
        index_remove(&ask->asker->asks_by_cookie, &ask->by_cookie);
        ask->asker->n_asks -= ask->weight;
    }
    ask->open = false;
    ask->asker = NULL;
    table->n_open--;
    list_push_back(&table->ended, &ask->link);
}

void ask_end_all(struct actor *asker)
{
    list_until_empty (ask, &asker->asks, struct ask, link)
        ask_end(ask);
}

void ask_end_cookie(struct actor *asker, uint64_t cookie)
{
    struct ask *ask = index_find_entry(&asker->asks_by_cookie, cookie, struct ask, by_cookie);

    if (ask)
        ask_end(ask);
}

static void ask_adopt_all(struct actor *asker)
{
    list_for_each_entry (ask, &asker->asks, struct ask, link)
        ask->asker = asker;
}

void ask_swap_all(struct actor *a, struct actor *b)
{
    list_swap(&a->asks, &b->asks);
    SWAP(a->asks_by_cookie, b->asks_by_cookie);
    SWAP(a->n_asks, b->n_asks);
    ask_adopt_all(a);
    ask_adopt_all(b);
}

bool ask_wants(const struct ask *ask, const struct topic *topic)
{
    return topic_type_is_a(topic->type, topic->type_size, ask->wanted, ask->wanted_size);
}

bool ask_share(struct ask *ask, uint32_t n)
{
    struct actor *asker = ask->asker;

    /* Not refused if it is the only one: otherwise it could never be made. */
    if (asker && asker->n_asks > ask->weight && asker->n_asks - 1 + n > ACTOR_ASKS_MAX)
        return false;
    ask->copies += n - 1;
    ask->weight += n - 1;
    if (asker)
        asker->n_asks += n - 1;
    return true;
}

void ask_answer(struct ask *ask, struct envelope *reply)
{
    struct actor *asker = ask->asker;
    const ask_done_fn done = ask->done;
    void *userdata = ask->userdata;

    reply->cookie = ask->cookie;
    ask_end(ask);
    if (asker) {
        actor_answer(asker, reply);
        return;
    }
    done(userdata, reply, 0, NULL);
    envelope_free(reply);
}

void ask_fail(struct ask *ask, int error, const char *reason)
{
    const struct protocol_refused refused = {
        .cookie = ask->cookie,
        .error = (uint32_t)error,
        .reason = reason,
        .reason_size = (uint32_t)strnlen(reason, PROTOCOL_REASON_MAX),
    };
    const ask_done_fn done = ask->quiet ? NULL : ask->done;
    uint8_t body[PROTOCOL_BODY_MAX];
    struct actor *asker = ask->asker;
    void *userdata = ask->userdata;
    const int size = protocol_put_refused(body, sizeof(body), &refused);

    if (asker && actor_answer_record(asker, PROTOCOL_ASK_FAILED, body, size) < 0) {
        timer_arm(loop_timers(ask->context->loop), &ask->timer,
                  usec_add(loop_now(ask->context->loop), FAIL_AGAIN));
        return;
    }
    ask_end(ask);
    if (!asker && done)
        done(userdata, NULL, error, reason);
}

void ask_envelope_died(struct message_context *context, uint64_t handle, int error,
                       const char *reason)
{
    struct ask *ask = ask_get(&context->asks, handle);

    if (ask && --ask->copies == 0)
        ask_fail(ask, error, reason);
}

/* ---- across an upgrade ---- */

#define ROW ask
#define ASK_FIELDS(F)                                                                              \
    F(UPGRADE, handle, NUMBER(handle))                                                             \
    F(UPGRADE, cookie, NUMBER(cookie))                                                             \
    F(UPGRADE, copies, NUMBER(copies))                                                             \
    F(UPGRADE, weight, NUMBER(weight))
const struct record ASK_RECORD = RECORD("ask", ASK_FIELDS);

void asks_save(const struct actor *asker, struct saver *saver)
{
    list_for_each_entry (ask, &asker->asks, struct ask, link) {
        struct saved_writer row = {0};

        saved_put_number(&row, asker->reference);
        saved_put_number(&row, timer_armed(&ask->timer) ? timer_at(&ask->timer) : USEC_INFINITY);
        record_put(&row, &ASK_RECORD, ask);
        saved_put_bytes(&row, ask->wanted, ask->wanted_size);
        saved_add(saver, ASK_RECORD.name, &row, NULL);
    }
}

int ask_restore_row(struct message_context *context, struct saved_reader *row)
{
    struct ask_options options = {.asker = actor_get(context, saved_get_number(row))};
    const usec_t at = saved_get_number(row);
    struct ask saved = {0}, *ask;
    size_t wanted_size;
    int r;

    record_get(row, &ASK_RECORD, &saved);
    options.cookie = saved.cookie;
    options.wanted.type = saved_get_bytes(row, &wanted_size);
    options.wanted.type_size = (uint32_t)wanted_size;
    if (row->damaged || wanted_size > TOPIC_TYPE_MAX ||
        !topic_type_valid(options.wanted.type, wanted_size) || saved.copies == 0 ||
        saved.weight == 0 || saved.handle == 0 || ask_get(&context->asks, saved.handle))
        return -EBADMSG;
    if (!options.asker || !options.asker->inbox.endpoint)
        return 0; /* the caller has gone */
    r = ask_open(&ask, context, &options, saved.handle, at);
    if (r < 0)
        return r;
    ask->copies = saved.copies;
    ask->weight = saved.weight;
    options.asker->n_asks += ask->weight - 1;
    return 0;
}
