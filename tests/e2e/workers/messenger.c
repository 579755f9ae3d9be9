/* SPDX-License-Identifier: MIT */

/*
 * An actor that runs commands: of jobs, by their payload (see `commands`), and of messages, by
 * their type (see `types`). It logs all other messages to $MESSENGER_LOG, one a line: "TYPE KEY
 * TEXT", KEY
 * "-" for none. With the argument "client" it is a client, which reads commands from standard input
 * and answers each with a line.
 */

#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS     6
#define TEXT_SIZE 1024

static bool holding = true;

static void note(const char *type, const char *key, const char *text)
{
    int fd = open(getenv("MESSENGER_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    char line[2 * TEXT_SIZE];
    int size = snprintf(line, sizeof(line), "%s %s %s\n", type, key, text);

    if (fd < 0 || write(fd, line, (size_t)size) != size)
        abort();
    close(fd);
}

static const char *text_of(struct troupe_message *message)
{
    size_t size;

    return troupe_message_payload(message, &size);
}

static int name(int r, char *result)
{
    if (r < 0)
        snprintf(result, TEXT_SIZE, "error %s", strerrorname_np(-r));
    return r;
}

/* ---- commands of messages ---- */

static int on_other(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    char key[300] = "-";
    size_t size;
    const char *given = troupe_message_key(message, &size);

    if (given)
        snprintf(key, sizeof(key), "'%.*s'", (int)size, given);
    note(troupe_message_type(message), key, text_of(message));
    return 0;
}

static int on_crash(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    if (!userdata || !troupe_message_is_redelivered(message))
        raise(SIGKILL);
    return on_other(actor, message, NULL);
}

static int on_error(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return troupe_message_fail(message, 17, text_of(message));
}

static int on_refuse(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return TROUPE_NOT_HANDLED;
}

static int on_become(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    if (strcmp(troupe_message_type(message), "do.default") == 0)
        troupe_actor_become_default(actor);
    else if (strcmp(text_of(message), "nothing") == 0)
        troupe_actor_become(actor, NULL, NULL);
    else if (strncmp(troupe_message_type(message), "do.", 3) == 0)
        troupe_actor_become(actor, on_become, NULL);
    else
        note("other", "-", text_of(message));
    return 0;
}

static int on_later(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return holding ? troupe_message_stash(message) : on_other(actor, message, userdata);
}

static int on_unstash(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    holding = false;
    return troupe_actor_unstash_all(actor) < 0;
}

/* "TYPE TEXT" */
static int on_reply(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    char type[TEXT_SIZE], text[TEXT_SIZE] = "";

    if (sscanf(text_of(message), "%1023s %1023[^\n]", type, text) < 1)
        return -EINVAL;
    return troupe_message_reply(message, type, text, strlen(text));
}

/* "TYPE TYPE": replies twice. */
static int on_two(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    char types[2][TEXT_SIZE];
    int r;

    if (sscanf(text_of(message), "%1023s %1023s", types[0], types[1]) != 2)
        return -EINVAL;
    r = troupe_message_reply(message, types[0], "x", 1);
    return r < 0 ? r : troupe_message_reply(message, types[1], "x", 1);
}

static int on_forward(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    troupe_ref to;
    int r = troupe_actor_lookup(actor, text_of(message), &to);

    return r < 0 ? r : troupe_message_forward(message, to);
}

/* "ADDRESS [KEY]": forwards with KEY instead of the message's own key, "-" for none. */
static int on_rekey(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    char address[300], key[300] = "-";
    troupe_ref to;
    int r;

    if (sscanf(text_of(message), "%299s %299s", address, key) < 1)
        return -EINVAL;
    r = troupe_actor_lookup(actor, address, &to);
    if (r < 0)
        return r;
    return strcmp(key, "-") == 0 ? troupe_message_forward_with_key(message, to, NULL, 0)
                                 : troupe_message_forward_with_key(message, to, key, strlen(key));
}

static int on_leave(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return troupe_actor_leave(actor, text_of(message));
}

/* Waits for a line from a FIFO, and replies. */
static int on_gate(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    int fd = open(text_of(message), O_RDONLY | O_CLOEXEC);
    char c;

    on_other(actor, message, NULL);
    if (fd < 0 || read(fd, &c, 1) != 1)
        return -EIO;
    close(fd);
    return troupe_message_ask(message) != 0 ? troupe_message_reply(message, "gate", "open", 4) : 0;
}

/* "ADDRESS TYPE stash|run TEXT": asks within this handler, and logs the result. */
static int on_call(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    char address[300], type[300], mode[10], text[TEXT_SIZE] = "";
    struct troupe_future *future;
    size_t size;
    troupe_ref to;
    int r;

    if (sscanf(text_of(message), "%299s %299s %9s %1023[^\n]", address, type, mode, text) < 3)
        return -EINVAL;
    r = troupe_actor_lookup(actor, address, &to);
    if (r == 0)
        r = troupe_actor_ask(actor, to, &future, type, .text = text);
    if (r < 0)
        return r;
    note("calling", "-", "");
    r = troupe_future_await(future,
                            strcmp(mode, "run") == 0 ? TROUPE_AWAIT_RUN : TROUPE_AWAIT_STASH);
    snprintf(text, sizeof(text), "%s",
             r < 0 ? strerrorname_np(-r) : (const char *)troupe_future_payload(future, &size));
    note("called", "-", text);
    troupe_future_free(future);
    return 0;
}

static void note_restart(struct troupe_actor *actor, void *userdata)
{
    note("restarted", "-", "");
}

static int on_restarts(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    troupe_actor_on_restart(actor, note_restart, NULL);
    on_other(actor, message, userdata);
    return 0;
}

static const struct {
    const char *type;
    troupe_message_fn fn;
    void *userdata;
} types[] = {
    {"", on_other, NULL},
    {"do.crash", on_crash, NULL},
    {"do.crash.once", on_crash, &holding},
    {"do.error", on_error, NULL},
    {"do.refuse", on_refuse, NULL},
    {"do.become", on_become, NULL},
    {"do.default", on_become, NULL},
    {"later", on_later, NULL},
    {"do.unstash", on_unstash, NULL},
    {"do.reply", on_reply, NULL},
    {"do.two", on_two, NULL},
    {"do.forward", on_forward, NULL},
    {"do.gate", on_gate, NULL},
    {"do.leave", on_leave, NULL},
    {"do.rekey", on_rekey, NULL},
    {"do.call", on_call, NULL},
    {"do.restarts", on_restarts, NULL},
};

/* ---- commands of jobs ---- */

static const char *key_word(const char *word, size_t *ret_size)
{
    *ret_size = 0;
    if (!word || strcmp(word, "-") == 0)
        return NULL;
    if (strcmp(word, "''") == 0)
        return "";
    *ret_size = strlen(word);
    return word;
}

static int number(int r, uint64_t value, char *result)
{
    snprintf(result, TEXT_SIZE, "%llu", (unsigned long long)value);
    return name(r, result);
}

static int count(int r, char *result)
{
    return number(r < 0 ? r : 0, (uint64_t)r, result);
}

static void end(struct troupe_future *future, int r, char *result)
{
    size_t size;
    const char *text = troupe_future_payload(future, &size);

    if (r < 0)
        snprintf(result, TEXT_SIZE, "error %s %s", strerrorname_np(-r),
                 troupe_future_reason(future));
    else
        snprintf(result, TEXT_SIZE, "%s %s%s", troupe_future_type(future), text,
                 troupe_future_is_default(future) ? " by default" : "");
    troupe_future_free(future);
}

static int do_lookup(struct troupe_actor *actor, char **word, char *result)
{
    troupe_ref ref = 0;
    int r = strcmp(word[1], "self") == 0 ? troupe_actor_self(actor, &ref)
                                         : troupe_actor_lookup(actor, word[1], &ref);

    return number(r, ref, result);
}

/* tell ADDRESS|=REFERENCE TYPE KEY TEXT */
static int address(struct troupe_actor *actor, const char *word, troupe_ref *ret)
{
    if (*word == '=') {
        *ret = strtoull(word + 1, NULL, 10);
        return 0;
    }
    return strcmp(word, "self") == 0 ? troupe_actor_self(actor, ret)
                                     : troupe_actor_lookup(actor, word, ret);
}

static int do_tell(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;
    troupe_ref to;
    int r = address(actor, word[1], &to);

    options.type = word[2];
    options.text = word[4];
    options.key = key_word(word[3], &options.key_size);
    if (r == 0)
        r = troupe_actor_tell_with(actor, to, &options);
    return name(r, result);
}

/* burst ADDRESS COUNT TYPE; visit: looks the address up before each message */
static int do_burst(struct troupe_actor *actor, char **word, char *result)
{
    char text[20];
    troupe_ref to;
    int r = address(actor, word[1], &to);

    for (int i = 0; r == 0 && i < atoi(word[2]); i++) {
        snprintf(text, sizeof(text), "%d", i);
        if (strcmp(word[0], "visit") == 0)
            r = address(actor, word[1], &to);
        if (r == 0)
            r = troupe_actor_tell(actor, to, word[3], .text = text);
    }
    return name(r, result);
}

/* ask ADDRESS TYPE USEC WANTED|- [TEXT]; with "default" for USEC: 1 ms, and then "nothing" */
static int do_ask(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;
    struct troupe_future *future;
    troupe_ref to;
    int r = address(actor, word[1], &to);

    options.type = word[2];
    options.text = word[5];
    options.timeout_usec = strtoull(word[3], NULL, 10);
    options.reply_type = strcmp(word[4], "-") == 0 ? "" : word[4];
    if (strcmp(word[3], "default") == 0) {
        options.timeout_usec = 1000;
        options.default_type = "instead";
        options.default_data = "nothing";
        options.default_size = strlen("nothing");
    }
    if (r == 0)
        r = troupe_actor_ask_with(actor, to, &future, &options);
    if (r == 0)
        end(future, troupe_future_await(future, TROUPE_AWAIT_STASH), result);
    else
        name(r, result);
    return r;
}

/* pipeline ADDRESS: three asks, the first of which fails, awaited last to first */
static int do_pipeline(struct troupe_actor *actor, char **word, char *result)
{
    static const char *const asks[3][2] = {
        {"do.error", "early"}, {"do.reply", "one 1"}, {"do.reply", "two 2"}};
    struct troupe_future *futures[3];
    troupe_ref to;
    int r = address(actor, word[1], &to);

    for (int i = 0; r == 0 && i < 3; i++)
        r = troupe_actor_ask(actor, to, &futures[i], asks[i][0], .text = asks[i][1]);
    for (int i = 2; r == 0 && i >= 0; i--) {
        end(futures[i], troupe_future_await(futures[i], TROUPE_AWAIT_STASH),
            result + strlen(result));
        strcat(result, ";");
    }
    return r;
}

static int do_neglect(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_future *future;
    troupe_ref to;
    int r = address(actor, word[1], &to);

    if (r == 0)
        r = troupe_actor_ask(actor, to, &future, "do.error", .text = "neglected");
    if (r == 0)
        troupe_future_free(future);
    return name(r, result);
}

/* after USEC PERIOD ADDRESS TYPE [TEXT] */
static int do_after(struct troupe_actor *actor, char **word, char *result)
{
    uint64_t id = 0;
    troupe_ref to;
    int r = address(actor, word[3], &to);

    if (r == 0)
        r = troupe_actor_timer_after(actor, to, strtoull(word[1], NULL, 10), &id, word[4],
                                     .text = word[5], .period_usec = strtoull(word[2], NULL, 10));
    return number(r, id, result);
}

/* at USEC ADDRESS TYPE */
static int do_at(struct troupe_actor *actor, char **word, char *result)
{
    uint64_t id = 0;
    troupe_ref to;
    int r = address(actor, word[2], &to);

    if (r == 0)
        r = troupe_actor_timer_at(actor, to, strtoull(word[1], NULL, 10), &id, word[3]);
    return number(r, id, result);
}

static int do_cancel(struct troupe_actor *actor, char **word, char *result)
{
    troupe_ref to;
    int r;

    if (!word[2])
        return count(troupe_actor_timer_cancel(actor, strtoull(word[1], NULL, 10)), result);
    r = address(actor, word[1], &to);
    return count(r < 0 ? r : troupe_actor_timer_cancel_type(actor, to, word[2]), result);
}

static int do_register(struct troupe_actor *actor, char **word, char *result)
{
    return count(troupe_actor_register(actor, word[1]), result);
}

static int do_deregister(struct troupe_actor *actor, char **word, char *result)
{
    return count(troupe_actor_deregister(actor, word[1]), result);
}

static void on_terminated(struct troupe_actor *actor, struct troupe_future *future, void *userdata)
{
    size_t size;

    note("terminated", "-", troupe_future_payload(future, &size));
    troupe_future_free(future);
}

static int do_watch(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_future *future;
    troupe_ref who;
    int r = address(actor, word[1], &who);

    if (r == 0)
        r = troupe_actor_monitor(actor, who, &future);
    if (r == 0)
        troupe_future_then(future, on_terminated, NULL);
    return number(r, r == 0 ? who : 0, result);
}

/* exchange NAME KIND */
static int do_exchange(struct troupe_actor *actor, char **word, char *result)
{
    troupe_ref ref = 0;
    int r =
        troupe_actor_exchange_new(actor, word[1], (enum troupe_exchange_kind)atoi(word[2]), &ref);

    return number(r, ref, result);
}

/* pause ADDRESS, resume ADDRESS */
static int do_pause(struct troupe_actor *actor, char **word, char *result)
{
    troupe_ref which;
    int r = address(actor, word[1], &which);

    if (r == 0)
        r = strcmp(word[0], "pause") == 0 ? troupe_actor_pause(actor, which)
                                          : troupe_actor_resume(actor, which);
    return number(r, 0, result);
}

/* address self */
static int do_address(struct troupe_actor *actor, char **word, char *result)
{
    snprintf(result, TEXT_SIZE, "%s", troupe_actor_address(actor));
    return 0;
}

/* delete EXCHANGE */
static int do_delete(struct troupe_actor *actor, char **word, char *result)
{
    troupe_ref exchange;
    int r = address(actor, word[1], &exchange);

    return number(r < 0 ? r : troupe_actor_exchange_delete(actor, exchange), 0, result);
}

/* subscribe EXCHANGE TYPE|"" KEY */
static int do_subscribe(struct troupe_actor *actor, char **word, char *result)
{
    const char *type = strcmp(word[2], "''") == 0 ? "" : word[2];
    troupe_ref to;
    size_t size;
    const char *key = key_word(word[3], &size);
    int r = address(actor, word[1], &to);

    if (r == 0)
        r = *word[0] == 's' ? troupe_actor_subscribe(actor, to, type, key, size)
                            : troupe_actor_unsubscribe(actor, to, type, key, size);
    return count(r, result);
}

static const struct {
    const char *name;
    int least, most; /* words; the last one may contain blanks */
    int (*fn)(struct troupe_actor *actor, char **word, char *result);
} commands[] = {
    {"lookup", 2, 2, do_lookup},         {"tell", 4, 5, do_tell},
    {"burst", 4, 4, do_burst},           {"ask", 5, 6, do_ask},
    {"pipeline", 2, 2, do_pipeline},     {"neglect", 2, 2, do_neglect},
    {"after", 5, 6, do_after},           {"at", 4, 4, do_at},
    {"cancel", 2, 3, do_cancel},         {"register", 2, 2, do_register},
    {"watch", 2, 2, do_watch},           {"deregister", 2, 2, do_deregister},
    {"exchange", 3, 3, do_exchange},     {"subscribe", 4, 4, do_subscribe},
    {"unsubscribe", 4, 4, do_subscribe}, {"visit", 4, 4, do_burst},
    {"delete", 2, 2, do_delete},         {"pause", 2, 2, do_pause},
    {"resume", 2, 2, do_pause},          {"address", 2, 2, do_address},
};

static int split(char *line, char **word, int most)
{
    int n = 0;

    for (char *at = line; at && *at && n < most; n++) {
        word[n] = at;
        at = n < most - 1 ? strchr(at, ' ') : NULL;
        if (at)
            *at++ = '\0';
    }
    return n;
}

static void obey(struct troupe_actor *actor, char *line, char *result)
{
    char *word[WORDS + 1] = {NULL};

    strcpy(result, "error what?");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        size_t length = strlen(commands[i].name);

        if (strncmp(line, commands[i].name, length) != 0 || line[length] != ' ')
            continue;
        if (split(line, word, commands[i].most) >= commands[i].least) {
            *result = '\0';
            (void)commands[i].fn(actor, word, result);
        }
        return;
    }
}

static int on_job(struct troupe_job *job, void *userdata)
{
    char line[TEXT_SIZE], result[2 * TEXT_SIZE];
    size_t size;
    const char *payload = troupe_job_payload(job, &size);

    snprintf(line, sizeof(line), "%.*s", (int)size, payload);
    obey(userdata, line, result);
    return troupe_job_succeed(job, result, strlen(result));
}

static int set_up(struct troupe_actor *actor)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(types) / sizeof(types[0]); i++)
        r = troupe_actor_on_message(actor, types[i].type, types[i].fn, types[i].userdata);
    return r;
}

/* Runs a command per line; an empty line handles messages for 10 ms. */
static int be_client(void)
{
    char line[TEXT_SIZE], result[2 * TEXT_SIZE];
    struct troupe_client *client;

    if (troupe_client_connect(&client, NULL) < 0 || set_up(troupe_client_actor(client)) < 0)
        return 1;
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        *result = '\0';
        if (*line)
            obey(troupe_client_actor(client), line, result);
        else
            while (troupe_actor_turn(troupe_client_actor(client), 10000) > 0)
                ;
        printf("%s\n", result);
        fflush(stdout);
    }
    troupe_client_free(client);
    return 0;
}

int main(int argc, char *argv[])
{
    struct troupe_worker *worker;
    int r;

    if (argc > 1 && strcmp(argv[1], "client") == 0)
        return be_client();
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, on_job, troupe_worker_actor(worker));
    r = set_up(troupe_worker_actor(worker));
    if (r == 0)
        r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
