/* SPDX-License-Identifier: MIT */

/*
 * An actor for the tests of delivery. Logs its messages to $TALKER_LOG, one a line, "NAME TYPE
 * TEXT", with " again" behind redelivered ones; then acts by type:
 *
 *   crash        dies, unless it is redelivered       die      dies in any case
 *   wait         waits for a line from the FIFO TEXT (before it is logged)
 *   fail         its handler fails                    echo     replies "echo" and the text
 *   stash        stashes it                           unstash  unstashes all
 *   pass         forwards to the worker TEXT          query    asks TEXT "echo", awaits the reply
 *   code         fails with the code TEXT             errno    fails with the errno TEXT
 *   unhandled    is not handled                       leak     keeps TEXT bytes of memory
 *
 * A job's payload is a command: ask ADDRESS TYPE TEXT, tell|many ADDRESS TYPE TEXT|COUNT [KEY],
 * register|deregister|watch NAME, after|every USEC ADDRESS TYPE TEXT, beats USEC ADDRESS TYPE COUNT
 * (so many periodic timers), cancel ID, cancel-type ADDRESS TYPE, exchange NAME KIND, subscribe
 * EXCHANGE TYPE [KEY]. Its result is that of the command.
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
#define TEXT_SIZE 4096

static const char *name;

static void note(const char *type, const char *text, bool again)
{
    const char *path = getenv("TALKER_LOG");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    char line[TEXT_SIZE + 512];
    int size =
        snprintf(line, sizeof(line), "%s %s %s%s\n", name, type, text, again ? " again" : "");

    if (fd >= 0 && write(fd, line, (size_t)size) != size)
        abort();
    if (fd >= 0)
        close(fd);
}

static void wait_bell(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && read(fd, &byte, 1) == 1 && byte != '\n')
        ;
    if (fd >= 0)
        close(fd);
}

/* The memory stays reachable, so a leak checker does not report it. */
static int leak(size_t size)
{
    static void *kept;
    void **block = malloc(size);

    if (!block)
        abort();
    memset(block, 1, size);
    block[0] = kept;
    kept = block;
    return TROUPE_HANDLED;
}

static int query(struct troupe_actor *actor, const char *address)
{
    struct troupe_future *future;
    troupe_ref to;
    size_t size;
    int r = troupe_actor_lookup(actor, address, &to);

    if (r < 0)
        return r;
    r = troupe_actor_ask(actor, to, &future, "echo", .text = "queried");
    if (r < 0)
        return r;
    r = troupe_future_await(future, TROUPE_AWAIT_STASH);
    note("answer", r < 0 ? strerrorname_np(-r) : troupe_future_payload(future, &size), false);
    troupe_future_free(future);
    return TROUPE_HANDLED;
}

static int on_message(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    size_t size;
    const char *type = troupe_message_type(message);
    const char *text = troupe_message_payload(message, &size);
    bool again = troupe_message_is_redelivered(message);
    troupe_ref to;

    if (strcmp(type, "wait") == 0)
        wait_bell(text);
    note(type, text, again);
    if (strcmp(type, "die") == 0 || (strcmp(type, "crash") == 0 && !again))
        raise(SIGKILL);
    if (strcmp(type, "fail") == 0)
        return troupe_message_fail(message, 17, "as it was told");
    if (strcmp(type, "code") == 0)
        return troupe_message_fail(message, atoi(text), "as it was told");
    if (strcmp(type, "errno") == 0)
        return -atoi(text);
    if (strcmp(type, "unhandled") == 0)
        return TROUPE_NOT_HANDLED;
    if (strcmp(type, "echo") == 0)
        return troupe_message_reply(message, "echo", text, size);
    if (strcmp(type, "stash") == 0 && !again)
        return troupe_message_stash(message);
    if (strcmp(type, "unstash") == 0)
        return troupe_actor_unstash_all(actor) < 0 ? -EIO : TROUPE_HANDLED;
    if (strcmp(type, "leak") == 0)
        return leak(strtoul(text, NULL, 10));
    if (strcmp(type, "query") == 0)
        return query(actor, text);
    if (strcmp(type, "pass") == 0 && strcmp(text, name) == 0)
        return troupe_message_reply(message, "passed", name, strlen(name));
    if (strcmp(type, "pass") == 0 && troupe_actor_lookup(actor, text, &to) == 0)
        return troupe_message_forward(message, to);
    return TROUPE_HANDLED;
}

/* ---- commands ---- */

static int ask(struct troupe_actor *actor, troupe_ref to, char *words[], char *result)
{
    struct troupe_future *future;
    size_t size;
    int r = troupe_actor_ask(actor, to, &future, words[2], .text = words[3]);

    if (r < 0)
        return r;
    r = troupe_future_await(future, TROUPE_AWAIT_RUN);
    if (r == 0)
        snprintf(result, TEXT_SIZE, "%s %s", troupe_future_type(future),
                 (const char *)troupe_future_payload(future, &size));
    else
        snprintf(result, TEXT_SIZE, "%s %s", strerrorname_np(-r), troupe_future_reason(future));
    troupe_future_free(future);
    return 0;
}

static void take_key(char *words[], struct troupe_message_options *options)
{
    options->key = words[4];
    options->key_size = words[4] ? strlen(words[4]) : 0;
}

static int many(struct troupe_actor *actor, troupe_ref to, char *words[])
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;
    char text[24];

    take_key(words, &options);
    options.type = words[2];
    options.text = text;

    for (int i = 0, n = atoi(words[3]), r; i < n; i++) {
        snprintf(text, sizeof(text), "%d", i);
        r = troupe_actor_tell_with(actor, to, &options);
        if (r < 0)
            return r;
    }
    return 0;
}

static int watch(struct troupe_actor *actor, troupe_ref who, char *result)
{
    struct troupe_future *future;
    size_t size;
    int r = troupe_actor_monitor(actor, who, &future);

    if (r < 0)
        return r;
    note("watches", "it", false);
    r = troupe_future_await(future, TROUPE_AWAIT_RUN);
    snprintf(result, TEXT_SIZE, "%s", (const char *)troupe_future_payload(future, &size));
    troupe_future_free(future);
    return r;
}

static int timer(struct troupe_actor *actor, char *words[], char *result)
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;
    uint64_t delay = strtoull(words[1], NULL, 10), id;
    troupe_ref to;
    int r = troupe_actor_lookup(actor, words[2], &to);

    if (r < 0)
        return r;
    if (strcmp(words[0], "after") != 0)
        options.period_usec = delay;
    options.type = words[3];
    if (strcmp(words[0], "beats") == 0)
        for (unsigned long n = strtoul(words[4], NULL, 10); n > 1 && r == 0; n--)
            r = troupe_actor_timer_after_with(actor, to, delay, &id, &options);
    options.text = words[4];
    r = troupe_actor_timer_after_with(actor, to, delay, &id, &options);
    snprintf(result, TEXT_SIZE, "%llu", (unsigned long long)id);
    return r;
}

static int command(struct troupe_actor *actor, char *words[], char *result)
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;
    const char *verb = words[0];
    troupe_ref to;
    int r;

    if (strcmp(verb, "register") == 0)
        return troupe_actor_register(actor, words[1]);
    if (strcmp(verb, "after") == 0 || strcmp(verb, "every") == 0 || strcmp(verb, "beats") == 0)
        return timer(actor, words, result);
    if (strcmp(verb, "deregister") == 0)
        r = troupe_actor_deregister(actor, words[1]);
    else if (strcmp(verb, "cancel") == 0)
        r = troupe_actor_timer_cancel(actor, strtoull(words[1], NULL, 10));
    else if (strcmp(verb, "exchange") == 0)
        return troupe_actor_exchange_new(actor, words[1], (enum troupe_exchange_kind)atoi(words[2]),
                                         &to);
    else {
        r = troupe_actor_lookup(actor, words[1], &to);
        if (r < 0)
            return r;
        if (strcmp(verb, "tell") == 0) {
            take_key(words, &options);
            options.type = words[2];
            options.text = words[3];
            return troupe_actor_tell_with(actor, to, &options);
        }
        if (strcmp(verb, "many") == 0)
            return many(actor, to, words);
        if (strcmp(verb, "ask") == 0)
            return ask(actor, to, words, result);
        if (strcmp(verb, "watch") == 0)
            return watch(actor, to, result);
        if (strcmp(verb, "cancel-type") == 0)
            r = troupe_actor_timer_cancel_type(actor, to, words[2]);
        else if (strcmp(verb, "subscribe") == 0)
            return troupe_actor_subscribe(actor, to, words[2], words[3],
                                          words[3] ? strlen(words[3]) : 0);
        else
            return -EINVAL;
    }
    if (r >= 0)
        snprintf(result, TEXT_SIZE, "%d", r);
    return r < 0 ? r : 0;
}

static int on_job(struct troupe_job *job, void *userdata)
{
    struct troupe_actor *actor = troupe_worker_actor(troupe_job_worker(job));
    char text[TEXT_SIZE], result[TEXT_SIZE] = "ok", *words[WORDS] = {NULL}, *rest = text;
    size_t size;
    int r;

    snprintf(text, sizeof(text), "%s", (const char *)troupe_job_payload(job, &size));
    for (int i = 0; i < WORDS; i++)
        words[i] = strsep(&rest, " ");
    r = command(actor, words, result);
    if (r < 0)
        snprintf(result, sizeof(result), "error %s", strerrorname_np(-r));
    return troupe_job_succeed(job, result, strlen(result));
}

int main(void)
{
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return troupe_worker_start_error(r);
    name = troupe_worker_name(worker);
    r = troupe_actor_on_message(troupe_worker_actor(worker), "", on_message, NULL);
    troupe_worker_on_job(worker, on_job, NULL);
    if (r == 0)
        r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
