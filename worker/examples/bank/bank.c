/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/bank.h"

#include "worker/examples/bank/claims.h"
#include "worker/examples/bank/fault.h"
#include "worker/examples/bank/transfers.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An account that crashes is restarted immediately, and finds its operations in its log. */
#define TRIES        20
#define TIMEOUT_USEC 10000000u
/* After this time without requests, transfers that a crash left open are settled. */
#define QUIET_USEC 10000u

struct bank {
    struct troupe_actor *actor;
    struct transfers transfers;
    bool recovered;
};

/* The reply of an account. */
struct answer {
    char type[64];
    char text[WORDS_TEXT];
};

static bool is_done(const struct answer *answer)
{
    return strcmp(answer->type, "account.done") == 0;
}

static int ask_once(struct bank *bank, const char *account, const char *type, const char *text,
                    struct answer *ret)
{
    struct troupe_future *future;
    troupe_ref accounts;
    size_t size;
    int r;

    r = troupe_actor_lookup(bank->actor, "account", &accounts);
    if (r == 0)
        r = troupe_actor_ask(bank->actor, accounts, &future, type, .text = text, .key = account,
                             .key_size = strlen(account), .timeout_usec = TIMEOUT_USEC,
                             .reply_type = "account");
    if (r < 0)
        return r;
    r = troupe_future_await(future, TROUPE_AWAIT_STASH);
    if (r == 0) {
        snprintf(ret->type, sizeof(ret->type), "%s", troupe_future_type(future));
        snprintf(ret->text, sizeof(ret->text), "%s",
                 (const char *)troupe_future_payload(future, &size));
    }
    troupe_future_free(future);
    return r;
}

static int ask(struct bank *bank, const char *account, const char *type, const char *text,
               struct answer *ret)
{
    int r = 0;

    for (int i = 0; i < TRIES; i++) {
        r = ask_once(bank, account, type, text, ret);
        if (r == 0 || r == -EPIPE)
            break;
        fprintf(stderr, "bank: account %s did not answer %s: %s\n", account, type, strerror(-r));
    }
    return r;
}

/* Does one operation of a transfer, under its own id. */
static int operate(struct bank *bank, const struct transfer *transfer, const char *account,
                   const char *type, char operation, struct answer *ret)
{
    char text[WORDS_TEXT], amount[DECIMAL_TEXT] = "";

    if (strcmp(type, "account.step.void") != 0)
        decimal_format(transfer->amount, amount);
    snprintf(text, sizeof(text), "%s/%c%" PRId64 " %s", transfer->id, operation, transfer->attempt,
             amount);
    return ask(bank, account, type, text, ret);
}

static int enter(struct bank *bank, struct transfer *transfer, enum transfer_state state,
                 const struct answer *reason)
{
    transfer->state = state;
    if (reason)
        snprintf(transfer->reason, sizeof(transfer->reason), "%.60s %.250s", reason->type,
                 reason->text);
    return transfers_put(&bank->transfers, transfer);
}

static int withdraw(struct bank *bank, struct transfer *transfer)
{
    struct answer answer;
    int r;

    r = operate(bank, transfer, transfer->source, "account.step.withdraw", 'w', &answer);
    if (r < 0)
        return r;
    fault_point("bank.withdrawn");
    if (!is_done(&answer))
        return enter(bank, transfer, TRANSFER_REFUSED, &answer);
    r = enter(bank, transfer, TRANSFER_WITHDRAWN, NULL);
    fault_point("bank.withdrawal-logged");
    return r;
}

static int give_back(struct bank *bank, struct transfer *transfer, const struct answer *why)
{
    struct answer answer;
    int r;

    r = operate(bank, transfer, transfer->source, "account.step.deposit", 'r', &answer);
    if (r == 0 && !is_done(&answer))
        r = -EPROTO;
    fault_point("bank.given-back");
    return r < 0 ? r : enter(bank, transfer, TRANSFER_ROLLED_BACK, why);
}

static int deposit(struct bank *bank, struct transfer *transfer)
{
    struct answer answer;
    int r;

    r = operate(bank, transfer, transfer->target, "account.step.deposit", 'd', &answer);
    if (r < 0)
        return r;
    fault_point("bank.deposited");
    if (!is_done(&answer))
        return give_back(bank, transfer, &answer);
    r = enter(bank, transfer, TRANSFER_DONE, NULL);
    fault_point("bank.deposit-logged");
    return r;
}

static int advance(struct bank *bank, struct transfer *transfer)
{
    int r = 0;

    if (transfer->state == TRANSFER_BEGUN)
        r = withdraw(bank, transfer);
    if (r == 0 && transfer->state == TRANSFER_WITHDRAWN)
        r = deposit(bank, transfer);
    return r;
}

/* ---- after a crash ---- */

/* Finds out whether the money was withdrawn; if not, makes sure that it never will be. */
static int settle_withdrawal(struct bank *bank, struct transfer *transfer)
{
    struct answer answer;
    int r;

    r = operate(bank, transfer, transfer->source, "account.step.void", 'w', &answer);
    if (r < 0)
        return r;
    fault_point("bank.settled");
    if (is_done(&answer))
        return enter(bank, transfer, TRANSFER_WITHDRAWN, NULL);
    if (strcmp(answer.type, "account.refused.void") == 0)
        return enter(bank, transfer, TRANSFER_NOT_STARTED, NULL);
    return enter(bank, transfer, TRANSFER_REFUSED, &answer);
}

static int recover(struct bank *bank)
{
    struct transfer transfer;
    int r = 0;

    while (!bank->recovered && r == 0) {
        r = transfers_next_open(&bank->transfers, &transfer);
        if (r == 0)
            bank->recovered = true;
        if (r <= 0)
            return r;
        r = transfer.state == TRANSFER_BEGUN ? settle_withdrawal(bank, &transfer) : 0;
        if (r == 0)
            r = advance(bank, &transfer);
        fprintf(stderr, "bank: transfer %s: %s after a crash\n", transfer.id,
                r < 0 ? strerror(-r) : transfer_state_name(transfer.state));
    }
    return r;
}

static void on_quiet(struct troupe_actor *actor, void *userdata)
{
    if (recover(userdata) == 0)
        troupe_actor_on_silence(actor, 0, NULL, NULL);
}

/* ---- messages ---- */

static int reply(struct troupe_message *message, const char *type, const char *text)
{
    return troupe_message_reply(message, type, text, strlen(text));
}

static int reply_state(struct troupe_message *message, const struct transfer *transfer)
{
    char type[64];

    snprintf(type, sizeof(type), "bank.transfer.%s", transfer_state_name(transfer->state));
    return reply(message, type, transfer->reason);
}

/* NULL, or the type of the refusal. */
static const char *read_request(struct transfer *ret, struct words *words)
{
    char **word = words->word;

    *ret = (struct transfer){.state = TRANSFER_BEGUN, .attempt = 1};
    if (words->count != 4 || !words_id_valid(word[0]) || strlen(word[0]) >= sizeof(ret->id) ||
        !words_name_valid(word[1], strlen(word[1])) ||
        !words_name_valid(word[2], strlen(word[2])) || strcmp(word[1], word[2]) == 0 ||
        decimal_parse(&ret->amount, word[3]) < 0)
        return "bank.refused.malformed";
    if (ret->amount <= 0)
        return "bank.refused.amount";
    strcpy(ret->id, word[0]);
    strcpy(ret->source, word[1]);
    strcpy(ret->target, word[2]);
    return NULL;
}

static bool same(const struct transfer *a, const struct transfer *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->target, b->target) == 0 &&
           a->amount == b->amount;
}

static int transfer(struct bank *bank, struct troupe_message *message, struct transfer *wanted)
{
    struct transfer known;
    int r;

    r = transfers_find(&bank->transfers, wanted->id, &known);
    if (r < 0)
        return r;
    if (r == 0) {
        int taken = claims_find(&bank->transfers.database, wanted->id);

        if (taken != 0)
            return taken < 0 ? taken : reply(message, "bank.refused.id", wanted->id);
    }
    if (r > 0 && !same(&known, wanted))
        return reply(message, "bank.refused.id", wanted->id);
    if (r > 0 && known.state != TRANSFER_NOT_STARTED)
        return reply_state(message, &known);
    if (r > 0)
        wanted->attempt = known.attempt + 1;
    /* From here on, the transfer is in the log and will have an end, whatever goes wrong. */
    bank->recovered = false;
    r = transfers_put(&bank->transfers, wanted);
    fault_point("bank.begun");
    if (r == 0)
        r = advance(bank, wanted);
    if (r < 0) {
        troupe_actor_on_silence(bank->actor, QUIET_USEC, on_quiet, bank);
        return r;
    }
    bank->recovered = true;
    r = reply_state(message, wanted);
    fault_point("bank.replied");
    return r;
}

static int on_transfer(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct bank *bank = userdata;
    struct transfer wanted;
    struct words words;
    const char *refusal;
    int r;

    (void)actor;
    if (words_parse(&words, message) < 0)
        return reply(message, "bank.refused.malformed", "");
    refusal = read_request(&wanted, &words);
    if (refusal)
        return reply(message, refusal, "");
    fault_point("bank.received");
    r = recover(bank);
    return r < 0 ? r : transfer(bank, message, &wanted);
}

/* "ID VERB ACCOUNT AMOUNT": a customer announces an operation under a chosen id. */
static int on_claim(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct bank *bank = userdata;
    struct transfer known;
    struct words words;
    char what[WORDS_TEXT];
    int r;

    (void)actor;
    if (words_parse(&words, message) < 0 || words.count != 4 || !words_id_valid(words.word[0]))
        return reply(message, "bank.refused.malformed", "");
    (void)snprintf(what, sizeof(what), "%s %s %s", words.word[1], words.word[2], words.word[3]);
    r = transfers_find(&bank->transfers, words.word[0], &known);
    if (r == 0)
        r = claims_take(&bank->transfers.database, words.word[0], what);
    if (r < 0)
        return r;
    return reply(message, r > 0 ? "bank.refused.id" : "bank.claimed", words.word[0]);
}

static int on_status(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct bank *bank = userdata;
    struct transfer known;
    struct words words;
    int r;

    (void)actor;
    if (words_parse(&words, message) < 0 || words.count != 1)
        return reply(message, "bank.refused.malformed", "");
    r = transfers_find(&bank->transfers, words.word[0], &known);
    if (r < 0)
        return r;
    return r > 0 ? reply_state(message, &known) : reply(message, "bank.refused.unknown", "");
}

static int on_recover(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    int r = recover(userdata);

    (void)actor;
    return r < 0 ? r : reply(message, "bank.recovered", "");
}

int bank_main(const char *directory)
{
    struct troupe_worker *worker;
    struct bank bank = {0};
    char path[4096];
    int r;

    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    bank.actor = troupe_worker_actor(worker);
    snprintf(path, sizeof(path), "%s/bank.db", directory);
    r = transfers_open(&bank.transfers, path);
    if (r == 0)
        r = claims_open(&bank.transfers.database);
    if (r == 0)
        r = troupe_actor_on_message(bank.actor, "bank.claim", on_claim, &bank);
    if (r == 0)
        r = troupe_actor_on_message(bank.actor, "bank.transfer", on_transfer, &bank);
    if (r == 0)
        r = troupe_actor_on_message(bank.actor, "bank.status", on_status, &bank);
    if (r == 0)
        r = troupe_actor_on_message(bank.actor, "bank.recover", on_recover, &bank);
    troupe_actor_on_silence(bank.actor, QUIET_USEC, on_quiet, &bank);
    if (r == 0)
        r = troupe_worker_run(worker);
    transfers_close(&bank.transfers);
    troupe_worker_free(worker);
    return r < 0;
}
