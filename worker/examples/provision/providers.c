/* SPDX-License-Identifier: MIT */
#include "worker/examples/provision/providers.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    _PROVIDERS_E_SUCCESS,
    PROVIDERS_E_SILENT, /* it has not answered in time */
};

static void forget(struct providers *providers, size_t i)
{
    troupe_future_free(providers->known[i].death);
    providers->n_known--;
    memmove(&providers->known[i], &providers->known[i + 1],
            (providers->n_known - i) * sizeof(providers->known[0]));
}

void providers_forget(struct providers *providers)
{
    while (providers->n_known > 0)
        forget(providers, providers->n_known - 1);
}

/* Makes that one the current one. */
static int find(struct providers *providers, const char *address, struct outcome *outcome)
{
    struct provider *provider = &providers->known[providers->n_known];
    int r;

    if (providers->n_known == PROVIDERS_MAX) {
        outcome_fail(outcome, PROVISION_MALFORMED, "more than %d providers", PROVIDERS_MAX);
        return 0;
    }
    (void)snprintf(provider->address, sizeof(provider->address), "%s", address);
    r = troupe_actor_lookup(providers->actor, address, &provider->ref);
    if (r == -ENOENT || r == -EINVAL || r == -EMSGSIZE) {
        outcome_fail(outcome, PROVISION_COMMUNICATIONS, "%s: there is no such provider", address);
        return 0;
    }
    if (r == 0)
        r = troupe_actor_monitor(providers->actor, provider->ref, &provider->death);
    if (r == 0)
        providers->n_known++;
    return r;
}

/* ---- the answer ---- */

/* Waits until the current provider has answered (0), or is dead (1). */
static int await(struct providers *providers, struct troupe_future *answer, struct outcome *outcome)
{
    for (;;) {
        struct troupe_future *futures[1 + PROVIDERS_MAX] = {answer};
        size_t n = providers->n_known;
        int r;

        for (size_t i = 0; i < n; i++) /* the current one first */
            futures[1 + i] = providers->known[n - 1 - i].death;
        r = troupe_future_await_any(futures, 1 + n, TROUPE_AWAIT_RUN, TROUPE_USEC_INFINITY);
        if (r <= 1)
            return r;
        n -= (size_t)r;
        outcome_say(outcome, "%s: it is gone, and forgotten", providers->known[n].address);
        forget(providers, n);
    }
}

/* Takes the properties that it has set. */
static int take_done(const struct provider *provider, const json_t *reply, struct order *order,
                     struct outcome *outcome)
{
    json_t *properties = json_object_get(reply, "properties");

    outcome_say(outcome, "%s: done", provider->address);
    return properties && json_object_update(order->properties, properties) < 0 ? -ENOMEM : 0;
}

static int take_reply(const struct provider *provider, const struct troupe_future *answer,
                      struct order *order, struct outcome *outcome)
{
    const char *type = troupe_future_type(answer), *text;
    size_t size;
    const char *data = troupe_future_payload(answer, &size);
    json_t *reply = json_loadb(data, size, 0, NULL);
    int r = 0;

    if (strcmp(type, "provider.done") == 0) {
        r = take_done(provider, reply, order, outcome);
    } else {
        text = json_string_value(json_object_get(reply, "text"));
        outcome_fail(outcome, PROVISION_PROVIDER, "%s: %s", provider->address,
                     text ? text : "it has failed");
    }
    json_decref(reply);
    return r;
}

static int take_answer(struct providers *providers, struct troupe_future *answer,
                       struct order *order, struct outcome *outcome)
{
    const struct provider *current = &providers->known[providers->n_known - 1];
    int r = await(providers, answer, outcome);

    current = &providers->known[providers->n_known - 1]; /* others may have gone */
    if (r == 1) {
        outcome_fail(outcome, PROVISION_COMMUNICATIONS, "%s: the provider is gone",
                     current->address);
        return 0;
    }
    if (r == 0)
        r = troupe_future_error(answer);
    if (r == 0)
        return take_reply(current, answer, order, outcome);
    if (r == -ETIMEDOUT) {
        outcome_say(outcome, "%s: no answer in time", current->address);
        return PROVIDERS_E_SILENT;
    }
    if (r == -EPIPE || r == -ENOMEM || r == -EBUSY)
        return r;
    outcome_fail(outcome, PROVISION_COMMUNICATIONS, "%s: %s", current->address,
                 r == -ECONNRESET ? "the provider has died" : troupe_future_reason(answer));
    return 0;
}

/* ---- asking ---- */

static int ask(struct providers *providers, const char *address, uint64_t patience_usec,
               struct order *order, struct outcome *outcome)
{
    struct troupe_future *answer = NULL;
    char *question;
    int r;

    r = find(providers, address, outcome);
    if (r < 0 || outcome->code != PROVISION_DONE)
        return r;
    question = json_dumps(order->root, JSON_COMPACT);
    if (!question)
        return -ENOMEM;
    r = troupe_actor_ask(providers->actor, providers->known[providers->n_known - 1].ref, &answer,
                         "setup", .text = question, .key = order->customer,
                         .key_size = strlen(order->customer), .timeout_usec = patience_usec,
                         .reply_type = "provider");
    free(question);
    if (r == 0)
        r = take_answer(providers, answer, order, outcome);
    troupe_future_drop(answer);
    return r;
}

int providers_ask(struct providers *providers, const char *addresses, struct order *order,
                  struct outcome *outcome)
{
    char *words = strdup(addresses), *rest, *address, *next;
    int r = words ? PROVIDERS_E_SILENT : -ENOMEM;

    address = words ? strtok_r(words, " ", &rest) : NULL;
    for (; r == PROVIDERS_E_SILENT && address; address = next) {
        next = strtok_r(NULL, " ", &rest);
        r = ask(providers, address, next ? providers->patience_usec : TROUPE_USEC_INFINITY, order,
                outcome);
    }
    free(words);
    if (r == PROVIDERS_E_SILENT) {
        outcome_fail(outcome, PROVISION_COMMUNICATIONS, "no provider is named");
        r = 0;
    }
    return r;
}
