/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/account.h"

#include "worker/examples/bank/fault.h"
#include "worker/examples/bank/ledger.h"
#include "worker/examples/bank/words.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct account {
    const char *directory;
    char name[WORDS_NAME];
    struct ledger ledger;
};

/* A worker serves one cell, so the name does not change; it comes with the first message. */
static int open_ledger(struct account *account, struct troupe_message *message)
{
    char path[4096];
    size_t size;
    const char *key = troupe_message_key(message, &size);

    if (account->name[0] != '\0')
        return 0;
    if (!key || !words_name_valid(key, size))
        return -EINVAL;
    if (snprintf(path, sizeof(path), "%s/account-%.*s.db", account->directory, (int)size, key) >=
        (int)sizeof(path))
        return -ENAMETOOLONG;
    if (ledger_open(&account->ledger, path) < 0)
        return -EIO;
    memcpy(account->name, key, size);
    return 0;
}

static int reply(struct troupe_message *message, const char *type, const char *text)
{
    return troupe_message_reply(message, type, text, strlen(text));
}

static int reply_entry(const struct account *account, struct troupe_message *message,
                       const struct ledger_entry *entry, decimal_t amount)
{
    char balance[DECIMAL_TEXT], asked[DECIMAL_TEXT], text[2 * DECIMAL_TEXT], type[64];

    decimal_format(entry->balance, balance);
    if (entry->outcome == LEDGER_DONE)
        return reply(message, "account.done", balance);
    snprintf(type, sizeof(type), "account.refused.%s", ledger_outcome_name(entry->outcome));
    snprintf(text, sizeof(text), "%s %s", balance, decimal_format(amount, asked));
    fprintf(stderr, "bank: account %s: %s refused: %s (balance %s, amount %s)\n", account->name,
            entry->id, ledger_outcome_name(entry->outcome), balance, asked);
    return reply(message, type, text);
}

/* "account.deposit" is "deposit" to the fault points. */
static const char *short_type(struct troupe_message *message)
{
    return strrchr(troupe_message_type(message), '.') + 1;
}

/* Returns whether the id fits the message: a customer's, or that of a transfer's step
 * ("account.step..."). */
static bool id_fits(struct troupe_message *message, const char *id)
{
    bool step = strncmp(troupe_message_type(message), "account.step.", 13) == 0;

    return step ? words_step_valid(id) : words_id_valid(id);
}

static int change(struct account *account, struct troupe_message *message, int sign)
{
    const char *kind = short_type(message);
    struct ledger_entry entry;
    struct words words;
    decimal_t amount;
    int r;

    if (words_parse(&words, message) < 0 || words.count != 2 || !id_fits(message, words.word[0]) ||
        decimal_parse(&amount, words.word[1]) < 0)
        return reply(message, "account.refused.malformed", "");
    if (amount <= 0)
        return reply(message, "account.refused.amount", words.word[1]);
    fault_point_of(kind, "received");
    r = ledger_apply(&account->ledger, words.word[0], sign * amount, &entry);
    if (r < 0)
        return r;
    if (r == LEDGER_E_OTHER)
        return reply(message, "account.refused.id", words.word[0]);
    fault_point_of(kind, "written");
    r = reply_entry(account, message, &entry, amount);
    fault_point_of(kind, "replied");
    return r;
}

static int on_deposit(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    int r = open_ledger(userdata, message);

    (void)actor;
    return r < 0 ? r : change(userdata, message, 1);
}

static int on_withdraw(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    int r = open_ledger(userdata, message);

    (void)actor;
    return r < 0 ? r : change(userdata, message, -1);
}

static int on_void(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct account *account = userdata;
    struct ledger_entry entry;
    struct words words;
    int r = open_ledger(account, message);

    (void)actor;
    if (r < 0)
        return r;
    if (words_parse(&words, message) < 0 || words.count != 1 || !id_fits(message, words.word[0]))
        return reply(message, "account.refused.malformed", "");
    r = ledger_void(&account->ledger, words.word[0], &entry);
    return r < 0 ? r : reply_entry(account, message, &entry, entry.amount);
}

static int on_balance(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct account *account = userdata;
    char text[DECIMAL_TEXT];
    decimal_t balance;
    int r = open_ledger(account, message);

    (void)actor;
    if (r == 0)
        r = ledger_balance(&account->ledger, &balance);
    return r < 0 ? r : reply(message, "account.done", decimal_format(balance, text));
}

static int on_log(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    enum {
        LOG_MAX = 1 << 20
    };
    struct account *account = userdata;
    char *text = malloc(LOG_MAX);
    int r = text ? open_ledger(account, message) : -ENOMEM;

    (void)actor;
    if (r == 0)
        r = ledger_print(&account->ledger, text, LOG_MAX);
    if (r == 0)
        r = reply(message, "account.log", text);
    free(text);
    return r;
}

int account_main(const char *directory)
{
    struct account account = {.directory = directory};
    struct troupe_worker *worker;
    struct troupe_actor *actor;
    int r;

    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    actor = troupe_worker_actor(worker);
    r = troupe_actor_on_message(actor, "account.deposit", on_deposit, &account);
    if (r == 0)
        r = troupe_actor_on_message(actor, "account.withdraw", on_withdraw, &account);
    if (r == 0)
        r = troupe_actor_on_message(actor, "account.step.deposit", on_deposit, &account);
    if (r == 0)
        r = troupe_actor_on_message(actor, "account.step.withdraw", on_withdraw, &account);
    if (r == 0)
        r = troupe_actor_on_message(actor, "account.step.void", on_void, &account);
    if (r == 0)
        r = troupe_actor_on_message(actor, "account.balance", on_balance, &account);
    if (r == 0)
        r = troupe_actor_on_message(actor, "account.log", on_log, &account);
    if (r == 0)
        r = troupe_worker_run(worker);
    ledger_close(&account.ledger);
    troupe_worker_free(worker);
    return r < 0;
}
