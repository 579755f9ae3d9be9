/* SPDX-License-Identifier: MIT */
#include "tests/world/programs.h"

#include "shared/base/cleanup.h"
#include "tests/world/model.h"
#include "tests/world/sched.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXCHANGE  "news"
#define DELAY_MAX (2 * USEC_PER_SEC)
#define BYTES_MAX 100000

/* Begins each message. A session is a connection of a talker. */
struct words {
    uint32_t session, number;
    usec_t due; /* of a timer */
};

struct talker {
    const char *socket_path, *recipient;
    unsigned n, hearer;
    struct troupe_client *client;
    struct troupe_actor *actor;
    struct words words; /* the last */
    troupe_ref to, self, exchange;
    struct troupe_future *monitor;
};

/* ---- hearing ---- */

static int on_words(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    size_t size;
    const struct words *payload = troupe_message_payload(message, &size);
    const struct words words = size >= sizeof(words) ? *payload : (struct words){0};

    sim_trace("hears %s %u of session %u", troupe_message_type(message), words.number,
              words.session);
    model_heard(words.session, userdata ? ((struct talker *)userdata)->hearer : 0, words.number,
                troupe_message_is_redelivered(message));
    sim_fault_point("message");
    if (troupe_message_ask(message) != 0)
        return troupe_message_reply(message, "answer", &words, sizeof(words));
    return TROUPE_HANDLED;
}

static int on_timer(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    size_t size;
    const struct words *words = troupe_message_payload(message, &size);

    sim_trace("hears timer %u of session %u", words->number, words->session);
    model_timer(words->session, words->number, words->due);
    return TROUPE_HANDLED;
}

void actors_listen(struct troupe_worker *worker)
{
    (void)troupe_actor_on_message(troupe_worker_actor(worker), "words", on_words, NULL);
}

/* ---- talking ---- */

static struct words *next_words(struct talker *talker)
{
    talker->words.number++;
    return &talker->words;
}

static void ask(struct talker *talker)
{
    const struct words *words = next_words(talker), *answer;
    struct troupe_future *future;
    size_t size;

    if (troupe_actor_ask(talker->actor, talker->to, &future, "words", .data = words,
                         .size = sizeof(*words)) < 0)
        return;
    if (troupe_future_await(future, sim_one_in(2) ? TROUPE_AWAIT_STASH : TROUPE_AWAIT_RUN) == 0) {
        answer = troupe_future_payload(future, &size);
        sim_expect(size == sizeof(*answer) && memcmp(answer, words, size) == 0,
                   "another answer than to question %u", words->number);
    }
    troupe_future_free(future);
}

static void tell(struct talker *talker)
{
    _cleanup_free_ struct words *words = calloc(1, BYTES_MAX);
    const bool large = sim_one_in(sim_chances[SIM_LARGE]);

    *words = *next_words(talker);
    (void)troupe_actor_tell(talker->actor, talker->to, "words", .data = words,
                            .size = large ? BYTES_MAX : sizeof(*words));
}

static void set_timer(struct talker *talker)
{
    struct words words = *next_words(talker);
    const usec_t delay = sim_below(DELAY_MAX);
    uint64_t id;

    words.due = sim_now() + delay;
    if (troupe_actor_timer_after(talker->actor, talker->self, delay, &id, "timer", .data = &words,
                                 .size = sizeof(words)) < 0)
        return;
    if (sim_one_in(4) && troupe_actor_timer_cancel(talker->actor, id) == 1)
        model_timer_cancelled(words.session, words.number);
}

/* Through the exchange, to all talkers. */
static void publish(struct talker *talker)
{
    const struct words *words = next_words(talker);

    if (talker->exchange != TROUPE_NOBODY)
        (void)troupe_actor_tell(talker->actor, talker->exchange, "words", .data = words,
                                .size = sizeof(*words));
}

static void watch(struct talker *talker)
{
    if (talker->monitor)
        troupe_future_free(talker->monitor);
    talker->monitor = NULL;
    (void)troupe_actor_monitor(talker->actor, talker->to, &talker->monitor);
}

static void rename_self(struct talker *talker)
{
    char name[32];
    troupe_ref found;

    (void)snprintf(name, sizeof(name), "talker-%u", talker->words.session);
    if (troupe_actor_register(talker->actor, name) == 0 &&
        troupe_actor_lookup(talker->actor, name, &found) == 0 && found != talker->self)
        sim_fail("%s is the name of another actor", name);
}

static void say(struct talker *talker)
{
    static void (*const ways[])(struct talker * talker) = {ask,     tell,  tell,       set_timer,
                                                           publish, watch, rename_self};

    const uint64_t way = sim_below(ELEMENTS(ways));

    sim_trace("session %u to %s, way %u, after %u", talker->words.session, talker->recipient,
              (unsigned)way, talker->words.number);
    ways[way](talker);
    talker->n--;
}

/* Returns whether it has found whom it talks to. */
static bool begin(struct talker *talker)
{
    static unsigned n_sessions;

    talker->actor = troupe_client_actor(talker->client);
    talker->words = (struct words){.session = ++n_sessions};
    talker->monitor = NULL;
    (void)troupe_actor_on_message(talker->actor, "timer", on_timer, NULL);
    (void)troupe_actor_on_message(talker->actor, "words", on_words, talker);
    if (troupe_actor_exchange_new(talker->actor, EXCHANGE, TROUPE_EXCHANGE_TYPED_MULTI,
                                  &talker->exchange) < 0 &&
        troupe_actor_lookup(talker->actor, EXCHANGE, &talker->exchange) < 0)
        talker->exchange = TROUPE_NOBODY;
    if (talker->exchange != TROUPE_NOBODY)
        (void)troupe_actor_subscribe(talker->actor, talker->exchange, "words", NULL, 0);
    return troupe_actor_self(talker->actor, &talker->self) == 0 &&
           troupe_actor_lookup(talker->actor, talker->recipient, &talker->to) == 0;
}

static void *run(void *argument)
{
    struct talker *talker = argument;

    for (unsigned i = 0; talker->n > 0 && i < talker->n; i++) {
        if (troupe_client_connect(&talker->client, talker->socket_path) == 0) {
            if (begin(talker))
                for (unsigned left = 1 + (unsigned)sim_below(20); talker->n > 0 && left > 0;
                     left--) {
                    say(talker);
                    (void)troupe_actor_turn(talker->actor, sim_below(500 * USEC_PER_MSEC));
                }
            if (talker->monitor)
                troupe_future_free(talker->monitor);
            troupe_client_free(talker->client);
        }
        sim_rest(sim_below(USEC_PER_SEC));
    }
    program_n_clients--;
    return NULL;
}

void actors_start_talker(const char *socket_path, const char *recipient, unsigned n)
{
    static unsigned n_talkers;
    struct talker *talker = calloc(1, sizeof(*talker));

    *talker = (struct talker){
        .socket_path = socket_path, .recipient = recipient, .n = n, .hearer = ++n_talkers};
    program_n_clients++;
    (void)sim_start("talker", run, talker, NULL);
}
