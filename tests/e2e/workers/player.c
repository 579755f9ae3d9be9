/* SPDX-License-Identifier: MIT */

/*
 * An actor that runs commands. A message of type "do.NAME" is the message command NAME (see
 * `deeds`), with its payload as arguments. A job's payload is a command of an actor (see
 * `commands`); its result is that of the command. PLAYER_SCRIPT is a file of lines "WORD COMMAND":
 * for any other message, it runs the commands of either kind of the lines that begin with the first
 * word of its payload, in order, and those of "start" before the first message. With the argument
 * "client" it is a client, which reads commands from standard input and answers each with a line.
 *
 * It notes messages that are no "do.NAME" (and some that are), and other events, in PLAYER_NOTES,
 * one a line, before commands run:
 *
 *   NAME message TYPE KEY SENDER FLAGS PAYLOAD          KEY: in quotes, or - for none
 *   NAME EVENT - - 0 - TEXT
 *
 * SENDER is a reference. FLAGS: a (ask), r (redelivered), t (timer), b (by what it has become), or
 * -. A message of type "later" is stashed, the first time in this process. PLAYER_TYPES: types it
 * handles, separated by commas; default: all.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))
#define WORDS           6
#define TEXT_SIZE       4096

static struct line {
    char *word, *command;
} * lines;
static size_t n_lines;
static char *stashed[1024]; /* payloads stashed once already */
static size_t n_stashed;
static const char *name = "client";

static int on_message(struct troupe_actor *actor, struct troupe_message *message, void *userdata);

/* ---- notes ---- */

/* Uses one write, so that lines of several players do not mix. */
static void note(const char *kind, const char *about, const char *text)
{
    const char *path = getenv("PLAYER_NOTES");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    char line[TEXT_SIZE + 1024];
    int size =
        snprintf(line, sizeof(line) - 1, "%s %s %s %.*s", name, kind, about, TEXT_SIZE, text);

    line[size++] = '\n';
    if (fd >= 0 && write(fd, line, (size_t)size) != size)
        abort();
    if (fd >= 0)
        close(fd);
}

static void note_event(const char *kind, const char *text)
{
    note(kind, "- - 0 -", text);
}

static const char *text_of(struct troupe_message *message)
{
    size_t size;

    return troupe_message_payload(message, &size);
}

static void note_message(struct troupe_message *message, bool become)
{
    char about[600], key_text[300] = "-";
    size_t size;
    const char *key = troupe_message_key(message, &size);
    const bool flags[] = {troupe_message_ask(message) != 0, troupe_message_is_redelivered(message),
                          troupe_message_timer(message) != 0, become};
    char letters[sizeof("artb")] = "", *end = letters;

    if (key)
        snprintf(key_text, sizeof(key_text), "'%.*s'", (int)size, key);
    for (size_t i = 0; i < ELEMENTS(flags); i++)
        if (flags[i])
            *end++ = "artb"[i];
    snprintf(about, sizeof(about), "%s %s %" PRIu64 " %s", troupe_message_type(message), key_text,
             troupe_message_sender(message), *letters ? letters : "-");
    note("message", about, text_of(message));
}

/* ---- addresses, keys, results ---- */

/* ADDRESS, =REFERENCE or self */
static int find(struct troupe_actor *actor, const char *word, troupe_ref *ret)
{
    if (*word == '=') {
        *ret = strtoull(word + 1, NULL, 10);
        return 0;
    }
    return strcmp(word, "self") == 0 ? troupe_actor_self(actor, ret)
                                     : troupe_actor_lookup(actor, word, ret);
}

/* "-" or nothing for none, '' for an empty one */
static const char *key_of(const char *word, size_t *ret_size)
{
    *ret_size = 0;
    if (!word || strcmp(word, "-") == 0)
        return NULL;
    if (strcmp(word, "''") == 0)
        return "";
    *ret_size = strlen(word);
    return word;
}

static int error_name(int r, char *result)
{
    if (r < 0)
        snprintf(result, TEXT_SIZE, "error %s", strerrorname_np(-r));
    return r;
}

static int number(int r, uint64_t value, char *result)
{
    snprintf(result, TEXT_SIZE, "%" PRIu64, value);
    return error_name(r, result);
}

static int count(int r, char *result)
{
    return number(r < 0 ? r : 0, (uint64_t)r, result);
}

/* "TYPE PAYLOAD" of a reply, or "error NAME REASON" */
static void end(struct troupe_future *future, int r, char *result)
{
    size_t size;
    const char *text = troupe_future_payload(future, &size);

    if (r < 0)
        snprintf(result, TEXT_SIZE, "error %s %s", strerrorname_np(-r),
                 troupe_future_reason(future));
    else
        snprintf(result, TEXT_SIZE, "%s %s", troupe_future_type(future), text);
    troupe_future_free(future);
}

/* ---- commands of messages ---- */

static int on_crash(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    raise(SIGKILL);
    return 0;
}

static int on_crash_once(struct troupe_actor *actor, struct troupe_message *message,
                         const char *args)
{
    if (!troupe_message_is_redelivered(message))
        raise(SIGKILL);
    note_message(message, false);
    return 0;
}

/* CODE TEXT */
static int on_fail(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    char *text;
    int code = (int)strtol(args, &text, 10);

    return troupe_message_fail(message, code, text + (*text == ' '));
}

static int on_errno(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    return -atoi(args);
}

static int on_unhandled(struct troupe_actor *actor, struct troupe_message *message,
                        const char *args)
{
    return TROUPE_NOT_HANDLED;
}

/* all (one handler for all types), nothing, default */
static int on_become(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    if (strcmp(args, "default") == 0)
        troupe_actor_become_default(actor);
    else
        troupe_actor_become(actor, strcmp(args, "all") == 0 ? on_message : NULL, &name);
    return 0;
}

static int on_unstash(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    return troupe_actor_unstash_all(actor) < 0 ? -EIO : 0;
}

/* TYPE TEXT */
static int on_reply(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    char type[300], text[TEXT_SIZE] = "";

    if (sscanf(args, "%299s %4095[^\n]", type, text) < 1)
        return -EINVAL;
    return troupe_message_reply(message, type, text, strlen(text));
}

/* ADDRESS [KEY], with KEY instead of the message's own; unless that is the player itself */
static int on_forward(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    char address[300], word[300] = "";
    const int n = sscanf(args, "%299s %299s", address, word);
    size_t size;
    const char *key = key_of(word, &size);
    troupe_ref to;
    int r = n < 1 ? -EINVAL : troupe_actor_lookup(actor, address, &to);

    if (r < 0 || strcmp(address, name) == 0)
        return r;
    return n == 1 ? troupe_message_forward(message, to)
                  : troupe_message_forward_with_key(message, to, key, size);
}

static int on_leave(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    return troupe_actor_leave(actor, args);
}

/* Waits for a line from the FIFO. */
static int on_wait(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    int fd = open(args, O_RDONLY | O_CLOEXEC), n;
    char byte = 0;

    while (fd >= 0 && (n = (int)read(fd, &byte, 1)) == 1 && byte != '\n')
        ;
    if (fd >= 0)
        close(fd);
    return byte == '\n' ? 0 : -EIO;
}

/* Leaves, with the FIFO as its words, and ends after a line from there. */
static int on_linger(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    const int r = troupe_actor_leave(actor, args);

    return r < 0 ? r : on_wait(actor, message, args);
}

/* Waits for a line from the FIFO, and replies. */
static int on_gate(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    const int r = on_wait(actor, message, args);

    return r == 0 && troupe_message_ask(message) != 0
               ? troupe_message_reply(message, "gate", "open", 4)
               : r;
}

/* "ADDRESS TYPE stash|run TEXT": asks within this handler, and notes the result. */
static int on_call(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    char address[300], type[300], mode[10], text[TEXT_SIZE] = "";
    struct troupe_future *future = NULL;
    size_t size;
    troupe_ref to;

    if (sscanf(args, "%299s %299s %9s %4095[^\n]", address, type, mode, text) < 3)
        return -EINVAL;
    note_event("calling", "");
    int r = troupe_actor_lookup(actor, address, &to);
    if (r == 0)
        r = troupe_actor_ask(actor, to, &future, type, .text = text);
    if (r == 0)
        r = troupe_future_await(future,
                                strcmp(mode, "run") == 0 ? TROUPE_AWAIT_RUN : TROUPE_AWAIT_STASH);
    note_event("called",
               r < 0 ? strerrorname_np(-r) : (const char *)troupe_future_payload(future, &size));
    troupe_future_free(future);
    return 0;
}

static void note_restart(struct troupe_actor *actor, void *userdata)
{
    note_event("restarted", "");
}

static int on_restarts(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    troupe_actor_on_restart(actor, note_restart, NULL);
    return 0;
}

static int on_look(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    troupe_ref to;

    (void)troupe_actor_lookup(actor, args, &to);
    return 0;
}

/* Keeps so many bytes. They stay reachable, so a leak checker does not report them. */
static int on_leak(struct troupe_actor *actor, struct troupe_message *message, const char *args)
{
    static void *kept;
    const size_t size = strtoul(args, NULL, 10);
    void **block = malloc(size);

    if (!block)
        abort();
    memset(block, 1, size);
    block[0] = kept;
    kept = block;
    return 0;
}

static const struct {
    const char *name;
    int (*fn)(struct troupe_actor *actor, struct troupe_message *message, const char *args);
    bool noted;
} deeds[] = {
    {"crash", on_crash, false},
    {"crash.once", on_crash_once, false},
    {"fail", on_fail, false},
    {"errno", on_errno, false},
    {"unhandled", on_unhandled, false},
    {"become", on_become, false},
    {"unstash", on_unstash, false},
    {"reply", on_reply, false},
    {"forward", on_forward, false},
    {"leave", on_leave, false},
    {"wait", on_wait, true},
    {"gate", on_gate, true},
    {"linger", on_linger, false},
    {"call", on_call, false},
    {"restarts", on_restarts, true},
    {"look", on_look, true},
    {"leak", on_leak, true},
};

/* ---- commands of actors ---- */

/* lookup ADDRESS */
static int do_lookup(struct troupe_actor *actor, char **word, char *result)
{
    troupe_ref ref = 0;
    int r = find(actor, word[1], &ref);

    return number(r, ref, result);
}

/* tell ADDRESS TYPE KEY [TEXT] */
static int do_tell(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;
    troupe_ref to;
    int r = find(actor, word[1], &to);

    options.type = word[2];
    options.text = word[4];
    options.key = key_of(word[3], &options.key_size);
    if (r == 0)
        r = troupe_actor_tell_with(actor, to, &options);
    return error_name(r, result);
}

/* burst ADDRESS COUNT TYPE [KEY]; visit: looks the address up before each message; boast: with a
 * result */
static int do_burst(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;
    char text[20];
    troupe_ref to;
    int r = find(actor, word[1], &to);

    options.type = word[3];
    options.text = text;
    options.key = key_of(word[4], &options.key_size);
    for (int i = 0, n = atoi(word[2]); r == 0 && i < n; i++) {
        snprintf(text, sizeof(text), "%d", i);
        if (strcmp(word[0], "visit") == 0)
            r = find(actor, word[1], &to);
        if (r == 0)
            r = troupe_actor_tell_with(actor, to, &options);
    }
    if (strcmp(word[0], "boast") == 0)
        strcpy(result, "all sent");
    return error_name(r, result);
}

/* ask ADDRESS TYPE USEC [TEXT] */
static int do_ask(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_future *future;
    troupe_ref to;
    int r = find(actor, word[1], &to);

    if (r == 0)
        r = troupe_actor_ask(actor, to, &future, word[2], .text = word[4],
                             .timeout_usec = strtoull(word[3], NULL, 10));
    if (r == 0)
        end(future, troupe_future_await(future, TROUPE_AWAIT_STASH), result);
    return error_name(r, result);
}

/* neglect ADDRESS: does not look at the failure of an ask */
static int do_neglect(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_future *future;
    troupe_ref to;
    int r = find(actor, word[1], &to);

    if (r == 0)
        r = troupe_actor_ask(actor, to, &future, "do.fail", .text = "17 neglected");
    if (r == 0)
        troupe_future_free(future);
    return error_name(r, result);
}

/* after USEC PERIOD ADDRESS TYPE [TEXT] */
static int do_after(struct troupe_actor *actor, char **word, char *result)
{
    uint64_t id = 0;
    troupe_ref to;
    int r = find(actor, word[3], &to);

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
    int r = find(actor, word[2], &to);

    if (r == 0)
        r = troupe_actor_timer_at(actor, to, strtoull(word[1], NULL, 10), &id, word[3]);
    return number(r, id, result);
}

/* cancel ID, cancel ADDRESS TYPE */
static int do_cancel(struct troupe_actor *actor, char **word, char *result)
{
    troupe_ref to;

    if (!word[2])
        return count(troupe_actor_timer_cancel(actor, strtoull(word[1], NULL, 10)), result);
    int r = find(actor, word[1], &to);
    return count(r < 0 ? r : troupe_actor_timer_cancel_type(actor, to, word[2]), result);
}

static int do_register(struct troupe_actor *actor, char **word, char *result)
{
    return count(*word[0] == 'r' ? troupe_actor_register(actor, word[1])
                                 : troupe_actor_deregister(actor, word[1]),
                 result);
}

static void on_terminated(struct troupe_actor *actor, struct troupe_future *future, void *userdata)
{
    size_t size;

    note_event("terminated", troupe_future_payload(future, &size));
    troupe_future_free(future);
}

/* watch ADDRESS */
static int do_watch(struct troupe_actor *actor, char **word, char *result)
{
    struct troupe_future *future;
    troupe_ref who = 0;
    int r = find(actor, word[1], &who);

    if (r == 0)
        r = troupe_actor_monitor(actor, who, &future);
    if (r == 0)
        troupe_future_then(future, on_terminated, NULL);
    return number(r, who, result);
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
    int r = find(actor, word[1], &which);

    if (r == 0)
        r = *word[0] == 'p' ? troupe_actor_pause(actor, which) : troupe_actor_resume(actor, which);
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
    int r = find(actor, word[1], &exchange);

    return number(r < 0 ? r : troupe_actor_exchange_delete(actor, exchange), 0, result);
}

/* subscribe EXCHANGE TYPE|'' KEY */
static int do_subscribe(struct troupe_actor *actor, char **word, char *result)
{
    const char *type = strcmp(word[2], "''") == 0 ? "" : word[2];
    troupe_ref to;
    size_t size;
    const char *key = key_of(word[3], &size);
    int r = find(actor, word[1], &to);

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
    {"lookup", 2, 2, do_lookup},
    {"tell", 4, 5, do_tell},
    {"burst", 4, 5, do_burst},
    {"boast", 4, 5, do_burst},
    {"ask", 4, 5, do_ask},
    {"neglect", 2, 2, do_neglect},
    {"after", 5, 6, do_after},
    {"at", 4, 4, do_at},
    {"cancel", 2, 3, do_cancel},
    {"register", 2, 2, do_register},
    {"deregister", 2, 2, do_register},
    {"watch", 2, 2, do_watch},
    {"exchange", 3, 3, do_exchange},
    {"subscribe", 4, 4, do_subscribe},
    {"visit", 4, 5, do_burst},
    {"unsubscribe", 4, 4, do_subscribe},
    {"delete", 2, 2, do_delete},
    {"pause", 2, 2, do_pause},
    {"resume", 2, 2, do_pause},
    {"address", 2, 2, do_address},
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

/* Runs a command of an actor. Returns false if it is none. */
static bool obey(struct troupe_actor *actor, const char *command, char *result)
{
    char line[TEXT_SIZE], *word[WORDS + 1] = {NULL};

    snprintf(line, sizeof(line), "%s", command);
    strcpy(result, "error what?");
    for (size_t i = 0; i < ELEMENTS(commands); i++) {
        size_t length = strlen(commands[i].name);

        if (strncmp(line, commands[i].name, length) != 0 || line[length] != ' ')
            continue;
        if (split(line, word, commands[i].most) >= commands[i].least) {
            *result = '\0';
            (void)commands[i].fn(actor, word, result);
        }
        return true;
    }
    return false;
}

/* ---- messages ---- */

/* Returns whether it has stashed the message: the first one with this payload in this process. */
static bool stash_once(struct troupe_message *message)
{
    const char *text = text_of(message);

    for (size_t i = 0; i < n_stashed; i++)
        if (strcmp(stashed[i], text) == 0)
            return false;
    if (n_stashed == ELEMENTS(stashed))
        abort();
    stashed[n_stashed++] = strdup(text);
    return troupe_message_stash(message) == 0;
}

/* The number of the command of a message, which is followed by its arguments; all if there is none.
 */
static size_t find_deed(const char *verb, size_t length)
{
    size_t i = 0;

    while (i < ELEMENTS(deeds) &&
           (strncmp(verb, deeds[i].name, length) != 0 || deeds[i].name[length] != '\0'))
        i++;
    return i;
}

/* Runs a command of the script. Returns the verdict on the message. */
static int play(struct troupe_actor *actor, struct troupe_message *message, const char *command,
                int verdict)
{
    const size_t length = strcspn(command, " "), i = find_deed(command, length);
    char result[2 * TEXT_SIZE];

    if (i == ELEMENTS(deeds)) {
        if (!obey(actor, command, result))
            note_event("what?", command);
        return verdict;
    }
    int r = deeds[i].fn(actor, message, command + length + (command[length] == ' '));
    return r == TROUPE_HANDLED ? verdict : r;
}

static int on_message(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    const char *type = troupe_message_type(message), *text = text_of(message);
    const size_t length = strcspn(text, " ");
    const bool is_deed = strncmp(type, "do.", 3) == 0;
    const size_t deed = is_deed ? find_deed(type + 3, strlen(type + 3)) : ELEMENTS(deeds);
    int verdict = TROUPE_HANDLED;

    if (strcmp(type, "later") == 0 && stash_once(message))
        return TROUPE_HANDLED;
    if (deed == ELEMENTS(deeds) || deeds[deed].noted)
        note_message(message, userdata != NULL);
    if (deed != ELEMENTS(deeds))
        return deeds[deed].fn(actor, message, text);
    for (size_t i = 0; i < n_lines; i++) {
        if (strncmp(lines[i].word, text, length) != 0 || lines[i].word[length] != '\0')
            continue;
        if (strcmp(lines[i].command, "stash") != 0)
            verdict = play(actor, message, lines[i].command, verdict);
        else if (stash_once(message))
            return TROUPE_HANDLED;
    }
    return verdict;
}

/* ---- the program ---- */

static int on_job(struct troupe_job *job, void *userdata)
{
    char line[TEXT_SIZE], result[2 * TEXT_SIZE];
    size_t size;
    const char *payload = troupe_job_payload(job, &size);

    snprintf(line, sizeof(line), "%.*s", (int)size, payload);
    obey(userdata, line, result);
    return troupe_job_succeed(job, result, strlen(result));
}

static void load(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;

    if (!file)
        abort();
    while (getline(&text, &size, file) > 0) {
        char *space = strchr(text, ' ');

        text[strcspn(text, "\n")] = '\0';
        if (!space)
            continue;
        *space = '\0';
        lines = realloc(lines, (n_lines + 1) * sizeof(*lines));
        if (!lines)
            abort();
        lines[n_lines++] = (struct line){strdup(text), strdup(space + 1)};
    }
    free(text);
    fclose(file);
}

static int set_up(struct troupe_actor *actor)
{
    const char *types = getenv("PLAYER_TYPES");
    char *copy = strdup(types && *types ? types : ""), *rest = copy, *type;
    int r = 0;

    if (getenv("PLAYER_SCRIPT"))
        load(getenv("PLAYER_SCRIPT"));
    while (r == 0 && (type = strsep(&rest, ",")))
        r = troupe_actor_on_message(actor, type, on_message, NULL);
    for (size_t i = 0; r == 0 && i < n_lines; i++)
        if (strcmp(lines[i].word, "start") == 0)
            (void)play(actor, NULL, lines[i].command, 0);
    free(copy);
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

    if (argc > 1 && strcmp(argv[1], "client") == 0)
        return be_client();
    int r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    name = troupe_worker_name(worker);
    troupe_worker_on_job(worker, on_job, troupe_worker_actor(worker));
    r = set_up(troupe_worker_actor(worker));
    if (r == 0)
        r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
