/* SPDX-License-Identifier: MIT */
/*
 * An actor that follows a script. PLAYER_SCRIPT is a file of lines "MESSAGE COMMAND". For a message
 * it runs the commands of the lines that begin with the first word of its payload, in order:
 *
 *   tell TO TYPE KEY MESSAGE         TO: an address; KEY: - for none
 *   ask TO TYPE MESSAGE              awaits the reply, stashes other messages, notes the result
 *   forward TO                       unless that is the player itself
 *   reply TYPE TEXT
 *   become WHAT                      "all" (a handler for all), "nothing", "default"
 *   stash | unstash                  stashes this message, the first time in this process, and
 *                                    ends its commands; unstashes all
 *   watch TO                         monitors it, and notes its end
 *   after USEC TO TYPE MESSAGE | every USEC TO TYPE MESSAGE | cancel-type TO TYPE
 *   subscribe EXCHANGE TYPE KEY | unsubscribe EXCHANGE TYPE KEY
 *   register NAME | deregister NAME
 *   fail CODE TEXT | unhandled | crash | wait FIFO
 *
 * A line "start COMMAND" runs before the first message. Each handled message, each end of an ask
 * and each notice is a line in PLAYER_NOTES, written before its commands run:
 *
 *   NAME message TYPE KEY PAYLOAD SENDER FLAGS, NAME asked PAYLOAD RESULT, NAME ended TO CAUSE
 *
 * SENDER is a reference, FLAGS: a (ask), r (redelivered), t (timer), b (by what it has become), or
 * -. PLAYER_TYPES: types it handles, separated by commas; default: all.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct line {
    char *message, *command;
};

static struct line *lines;
static size_t n_lines;
static char *stashed[1024]; /* payloads stashed once already */
static size_t n_stashed;
static const char *name;
static int notes = -1;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Uses one write, so that lines of several players do not mix. */
static void note(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    int n = snprintf(text, sizeof(text), "%s ", name), more;

    va_start(arguments, format);
    more = vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, arguments);
    va_end(arguments);
    n += more;
    text[n++] = '\n';
    if (notes >= 0 && write(notes, text, (size_t)n) != n)
        _exit(98);
}

static void load(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;

    if (!file)
        _exit(97);
    while (getline(&text, &size, file) > 0) {
        char *space = strchr(text, ' ');

        text[strcspn(text, "\n")] = '\0';
        if (!space)
            continue;
        *space = '\0';
        lines = realloc(lines, (n_lines + 1) * sizeof(*lines));
        if (!lines)
            _exit(97);
        lines[n_lines++] = (struct line){strdup(text), strdup(space + 1)};
    }
    free(text);
    fclose(file);
}

static troupe_ref find(struct troupe_actor *actor, const char *address)
{
    troupe_ref ref = TROUPE_NOBODY;
    int r = troupe_actor_lookup(actor, address, &ref);

    if (r < 0)
        note("unknown %s", address);
    return ref;
}

static struct troupe_message_options with_key(const char *key)
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;

    if (strcmp(key, "-") != 0) {
        options.key = key;
        options.key_size = strlen(key);
    }
    return options;
}

static void ask(struct troupe_actor *actor, const char *to, const char *type, const char *payload)
{
    struct troupe_future *future;
    size_t size;
    int r = troupe_actor_ask(actor, find(actor, to), &future, type, .text = payload);

    if (r == 0) {
        r = troupe_future_await(future, TROUPE_AWAIT_STASH);
        note("asked %s %s", payload,
             r < 0 ? strerrorname_np(-r) : (const char *)troupe_future_payload(future, &size));
        troupe_future_free(future);
    } else {
        note("asked %s %s", payload, strerrorname_np(-r));
    }
}

static void on_end(struct troupe_actor *actor, struct troupe_future *future, void *userdata)
{
    size_t size;

    if (troupe_future_error(future) == 0)
        note("ended %s %s", (char *)userdata, (const char *)troupe_future_payload(future, &size));
    troupe_future_free(future);
    free(userdata);
}

static void watch(struct troupe_actor *actor, const char *to)
{
    struct troupe_future *future;

    if (troupe_actor_monitor(actor, find(actor, to), &future) == 0)
        troupe_future_then(future, on_end, strdup(to));
}

static void set_timer(struct troupe_actor *actor, char *const words[], bool again)
{
    const uint64_t usec = strtoull(words[1], NULL, 10);
    uint64_t id;

    if (troupe_actor_timer_after(actor, find(actor, words[2]), usec, &id, words[3],
                                 .text = words[4], .period_usec = again ? usec : 0) < 0)
        note("no timer");
}

static void wait_fifo(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char byte;

    while (fd >= 0 && read(fd, &byte, 1) == 1 && byte != '\n')
        ;
    close(fd);
}

static int on_message(struct troupe_actor *actor, struct troupe_message *message, void *userdata);

static void become(struct troupe_actor *actor, const char *what)
{
    static char all[] = "all";

    if (strcmp(what, "default") == 0)
        troupe_actor_become_default(actor);
    else
        troupe_actor_become(actor, strcmp(what, "all") == 0 ? on_message : NULL, all);
}

/* Returns false if this payload was stashed before. */
static bool stash_once(struct troupe_message *message, const char *payload)
{
    for (size_t i = 0; i < n_stashed; i++)
        if (strcmp(stashed[i], payload) == 0)
            return false;
    if (n_stashed == sizeof(stashed) / sizeof(*stashed))
        _exit(95);
    stashed[n_stashed++] = strdup(payload);
    return troupe_message_stash(message) == 0;
}

/* Runs a command that needs no message. Returns false if it is no such command. */
static bool play_anywhere(struct troupe_actor *actor, char *const words[])
{
    const char *verb = words[0];

    if (strcmp(verb, "tell") == 0) {
        struct troupe_message_options options = with_key(words[3]);

        options.type = words[2];
        options.text = words[4];
        troupe_actor_tell_with(actor, find(actor, words[1]), &options);
    } else if (strcmp(verb, "ask") == 0) {
        ask(actor, words[1], words[2], words[3]);
    } else if (strcmp(verb, "become") == 0) {
        become(actor, words[1]);
    } else if (strcmp(verb, "unstash") == 0) {
        troupe_actor_unstash_all(actor);
    } else if (strcmp(verb, "watch") == 0) {
        watch(actor, words[1]);
    } else if (strcmp(verb, "after") == 0 || strcmp(verb, "every") == 0) {
        set_timer(actor, words, strcmp(verb, "every") == 0);
    } else if (strcmp(verb, "cancel-type") == 0) {
        note("cancelled %d",
             troupe_actor_timer_cancel_type(actor, find(actor, words[1]), words[2]));
    } else if (strcmp(verb, "subscribe") == 0 || strcmp(verb, "unsubscribe") == 0) {
        const struct troupe_message_options options = with_key(words[3]);
        const troupe_ref exchange = find(actor, words[1]);

        if (*verb == 's')
            troupe_actor_subscribe(actor, exchange, words[2], options.key, options.key_size);
        else
            note("unsubscribed %d", troupe_actor_unsubscribe(actor, exchange, words[2], options.key,
                                                             options.key_size));
    } else if (strcmp(verb, "register") == 0) {
        note("registered %d", troupe_actor_register(actor, words[1]));
    } else if (strcmp(verb, "deregister") == 0) {
        note("deregistered %d", troupe_actor_deregister(actor, words[1]));
    } else if (strcmp(verb, "wait") == 0) {
        wait_fifo(words[1]);
    } else {
        return false;
    }
    return true;
}

/* Runs a command. Returns the verdict on the message. */
static int play(struct troupe_actor *actor, struct troupe_message *message, const char *command,
                int verdict)
{
    char *text = strdup(command), *words[8] = {NULL}, *save = NULL;
    static char none[] = "";
    size_t n = 0;

    for (char *word = strtok_r(text, " ", &save); word && n < 7; word = strtok_r(NULL, " ", &save))
        words[n++] = strcmp(word, "\"\"") == 0 ? none : word;
    if (n == 0 || play_anywhere(actor, words)) {
        free(text);
        return verdict;
    }
    if (strcmp(words[0], "forward") == 0) {
        if (strcmp(words[1], name) != 0)
            troupe_message_forward(message, find(actor, words[1]));
    } else if (strcmp(words[0], "reply") == 0)
        troupe_message_reply(message, words[1], words[2], strlen(words[2]));
    else if (strcmp(words[0], "fail") == 0)
        verdict = troupe_message_fail(message, atoi(words[1]), words[2]);
    else if (strcmp(words[0], "unhandled") == 0)
        verdict = TROUPE_NOT_HANDLED;
    else if (strcmp(words[0], "crash") == 0)
        raise(SIGKILL);
    else
        note("what is %s?", words[0]);
    free(text);
    return verdict;
}

static int on_message(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    size_t size, key_size;
    char payload[256], key_text[300] = "-", flags[8] = "";
    const void *key = troupe_message_key(message, &key_size);
    const char *data = troupe_message_payload(message, &size);
    int verdict = TROUPE_HANDLED;

    snprintf(payload, sizeof(payload), "%.*s", (int)strcspn(data, " "), data);
    if (key)
        snprintf(key_text, sizeof(key_text), "'%.*s'", (int)key_size, (const char *)key);
    if (troupe_message_ask(message) != 0)
        strcat(flags, "a");
    if (troupe_message_is_redelivered(message))
        strcat(flags, "r");
    if (troupe_message_timer(message) != 0)
        strcat(flags, "t");
    if (userdata)
        strcat(flags, "b");
    note("message '%s' %s %s %" PRIu64 " %s", troupe_message_type(message), key_text,
         *payload ? payload : "-", troupe_message_sender(message), *flags ? flags : "-");
    for (size_t i = 0; i < n_lines; i++)
        if (strcmp(lines[i].message, payload) == 0) {
            if (strcmp(lines[i].command, "stash") != 0)
                verdict = play(actor, message, lines[i].command, verdict);
            else if (stash_once(message, payload))
                return TROUPE_HANDLED;
        }
    return verdict;
}

static int on_job(struct troupe_job *job, void *userdata)
{
    return troupe_job_retry(job, 3, "no jobs here");
}

static void handle_types(struct troupe_actor *actor, const char *types)
{
    char *copy = strdup(types ? types : ""), *save = NULL;
    bool any = false;

    for (char *type = strtok_r(copy, ",", &save); type; type = strtok_r(NULL, ",", &save)) {
        troupe_actor_on_message(actor, type, on_message, NULL);
        any = true;
    }
    if (!any)
        troupe_actor_on_message(actor, "", on_message, NULL);
    free(copy);
}

int main(void)
{
    struct troupe_worker *worker;
    struct troupe_actor *actor;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return troupe_worker_start_error(r);
    name = troupe_worker_name(worker);
    if (getenv("PLAYER_NOTES"))
        notes = open(getenv("PLAYER_NOTES"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (getenv("PLAYER_SCRIPT"))
        load(getenv("PLAYER_SCRIPT"));
    actor = troupe_worker_actor(worker);
    if (!actor)
        return 96;
    troupe_worker_on_job(worker, on_job, NULL);
    handle_types(actor, getenv("PLAYER_TYPES"));
    for (size_t i = 0; i < n_lines; i++)
        if (strcmp(lines[i].message, "start") == 0)
            (void)play(actor, NULL, lines[i].command, 0);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0 ? 1 : 0;
}
