/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/teller.h"

#include "worker/examples/bank/decimal.h"
#include "worker/examples/bank/words.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
    DONE = 0,
    REFUSED = 1,
    FAILED = 2,
};

static const struct verb {
    const char *name;
    int accounts; /* so many words first */
    bool amount;  /* then this */
    bool has_id;  /* and perhaps this */
    const char *actor, *type;
} verbs[] = {
    {"balance", 1, false, false, "account", "account.balance"},
    {"log", 1, false, false, "account", "account.log"},
    {"deposit", 1, true, true, "account", "account.deposit"},
    {"withdraw", 1, true, true, "account", "account.withdraw"},
    {"transfer", 2, true, true, "bank", "bank.transfer"},
    {"status", 0, false, true, "bank", "bank.status"},
    {"recover", 0, false, false, "bank", "bank.recover"},
};

static int usage(void)
{
    fprintf(stderr, "usage: bank balance|log ACCOUNT\n"
                    "       bank deposit|withdraw ACCOUNT AMOUNT [ID]\n"
                    "       bank transfer FROM TO AMOUNT [ID]\n"
                    "       bank status ID | recover\n");
    return FAILED;
}

static const struct verb *find_verb(const char *name, int count)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        int least = verbs[i].accounts + verbs[i].amount;

        if (strcmp(verbs[i].name, name) == 0 && count >= least && count <= least + verbs[i].has_id)
            return &verbs[i];
    }
    return NULL;
}

static const char *random_id(char *text)
{
    uint64_t bits[2];

    if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        return NULL;
    snprintf(text, WORDS_ID, "%016" PRIx64 "%016" PRIx64, bits[0], bits[1]);
    return text;
}

/* The id that the customer has chosen; NULL = none. */
static const char *chosen_id(const struct verb *verb, int count, char *const words[])
{
    int fixed = verb->accounts + verb->amount;

    return verb->has_id && count > fixed ? words[fixed] : NULL;
}

/* The message: "ID [FROM TO] [AMOUNT]"; the account itself is the routing key. */
static int compose(const struct verb *verb, int count, char *const words[], char *text)
{
    const char *id = chosen_id(verb, count, words);
    char made[WORDS_ID];
    int r;

    if (id && !words_id_valid(id)) {
        fprintf(stderr, "bank: not an id (1 to 64 of A-Z a-z 0-9 . _ -): %s\n", id);
        return -1;
    }
    if (!id)
        id = verb->has_id ? random_id(made) : "";
    if (!id)
        return -1;
    r = snprintf(text, WORDS_TEXT, "%s%s%s%s%s %s", id, verb->accounts == 2 ? " " : "",
                 verb->accounts == 2 ? words[0] : "", verb->accounts == 2 ? " " : "",
                 verb->accounts == 2 ? words[1] : "", verb->amount ? words[verb->accounts] : "");
    return r < WORDS_TEXT ? 0 : -1;
}

static int tell_reply(const struct troupe_future *future)
{
    const char *type = troupe_future_type(future), *refused = strstr(type, "refused");
    size_t size;
    const char *text = troupe_future_payload(future, &size);

    if (refused) {
        fprintf(stderr, "bank: %s %s\n", refused, text);
        return REFUSED;
    }
    if (strcmp(type, "bank.claimed") == 0)
        return DONE;
    if (strncmp(type, "bank.", 5) == 0)
        printf("%s\n", strrchr(type, '.') + 1);
    else
        printf("%s%s", text, size > 0 && text[size - 1] == '\n' ? "" : "\n");
    return strcmp(type, "bank.transfer.rolled-back") == 0 ? REFUSED : DONE;
}

/* `account`: the routing key; NULL = none. */
static int ask(struct troupe_client *client, const struct verb *verb, const char *account,
               const char *text)
{
    struct troupe_actor *actor = troupe_client_actor(client);
    struct troupe_future *future;
    troupe_ref to;
    int r;

    r = troupe_actor_lookup(actor, verb->actor, &to);
    if (r == 0)
        r = troupe_actor_ask(actor, to, &future, verb->type, .text = text, .key = account,
                             .key_size = account ? strlen(account) : 0,
                             .timeout_usec = TROUPE_USEC_INFINITY);
    if (r == 0) {
        r = troupe_future_await(future, TROUPE_AWAIT_STASH);
        if (r == 0)
            r = tell_reply(future);
        else
            fprintf(stderr, "bank: %s\n", troupe_future_reason(future));
        troupe_future_free(future);
    }
    if (r < 0)
        fprintf(stderr, "bank: %s: %s\n", verb->name, strerror(-r));
    return r < 0 ? FAILED : r;
}

/* An id that a customer chooses for one account belongs to that operation in all accounts. */
static int claim(struct troupe_client *client, const struct verb *verb, char *const words[],
                 const char *id)
{
    static const struct verb claims = {"claim", 0, false, false, "bank", "bank.claim"};
    char text[WORDS_TEXT], amount[DECIMAL_TEXT];
    decimal_t value;
    int r;

    (void)decimal_parse(&value, words[1]); /* already checked */
    r = snprintf(text, sizeof(text), "%s %s %s %s", id, verb->name, words[0],
                 decimal_format(value, amount));
    return r < (int)sizeof(text) ? ask(client, &claims, NULL, text) : REFUSED;
}

static bool arguments_valid(const struct verb *verb, char *const words[])
{
    decimal_t amount;

    for (int i = 0; i < verb->accounts; i++)
        if (!words_name_valid(words[i], strlen(words[i]))) {
            fprintf(stderr, "bank: not an account's name: %s\n", words[i]);
            return false;
        }
    if (!verb->amount)
        return true;
    if (decimal_parse(&amount, words[verb->accounts]) < 0) {
        fprintf(stderr, "bank: not an amount: %s\n", words[verb->accounts]);
        return false;
    }
    if (amount <= 0)
        fprintf(stderr, "bank: refused: the amount must be above 0\n");
    return amount > 0;
}

int teller_main(int count, char *const words[])
{
    const struct verb *verb = count > 0 ? find_verb(words[0], count - 1) : NULL;
    struct troupe_client *client;
    char text[WORDS_TEXT];
    const char *id;
    int r;

    if (!verb)
        return usage();
    count--;
    words++;
    if (!arguments_valid(verb, words) || compose(verb, count, words, text) < 0)
        return REFUSED;
    r = troupe_client_connect(&client, NULL);
    if (r < 0) {
        fprintf(stderr, "bank: cannot reach trouped: %s\n", strerror(-r));
        return FAILED;
    }
    id = chosen_id(verb, count, words);
    r = id && verb->accounts == 1 ? claim(client, verb, words, id) : DONE;
    if (r == DONE)
        r = ask(client, verb, verb->accounts == 1 ? words[0] : NULL, text);
    troupe_client_free(client);
    return r;
}
