/* SPDX-License-Identifier: MIT */

/*
 * Sends the input, cut into pieces, to the control socket of a real core with one group, whose
 * workers are never started. Also checks that what the encoders write is read back unchanged.
 */

#include "shared/base/base64.h"
#include "shared/base/log.h"
#include "supervisor/control/control.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/service-change.h"
#include "supervisor/group/group.h"
#include "supervisor/loop/loop.h"
#include "supervisor/parts.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Bounds what one input leaves behind. */
#define QUEUE_MAX 64

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct parts parts;
static struct config_daemon daemon_config = {
    .clients_max = 64, .client_idle = USEC_INFINITY, .client_request = USEC_INFINITY};
static struct group *group;
static char path[64];

static void quiet(enum log_level level, struct log_fields fields, const char *message)
{
}

static void no_reload(void *userdata, struct reload_call *call)
{
    call->result = -EBUSY;
    call->done(call);
}

static void must(bool what)
{
    if (!what)
        abort();
}

static void remove_path(void)
{
    unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static struct control *control; /* lives as long as the process */
    const struct loop_options options = {0};
    struct config_group *config;
    const char *reason;

    log_set_sink(quiet);
    parts.control.config = &daemon_config;
    parts.control.state = CONTROL_RUNNING;
    parts.control.reload = no_reload;
    must(loop_new(&parts.loop, &options, &reason) == 0);
    registry_init(&parts.registry);
    message_context_init(&parts.messages);
    parts_connect(&parts);
    alarms_init(&parts.alarms, parts.loop);
    must(job_table_init(&parts.jobs) == 0);
    must(event_bus_init(&parts.events) == 0);
    death_log_init(&parts.deaths, 10);
    dead_letters_resize(&parts.messages.dead_letters, 100, 1 << 20);
    must(config_defaults(&config, "test") == 0);
    /* An input may start the worker: its program is missing, so the start fails. */
    config->exec_start = calloc(2, sizeof(char *));
    config->exec_start[0] = strdup("/nonexistent");
    config->queue_max = QUEUE_MAX;
    config->results_max = QUEUE_MAX;
    must(group_new(&group, &parts.groups, config) == 0);
    must(registry_add(&parts.registry, group) == 0);
    snprintf(path, sizeof(path), "/tmp/fuzz-varlink-%d", (int)getpid());
    atexit(remove_path);
    must(control_new(&control, &parts.control, control_listen(path, 0)) == 0);
    return 0;
}

static unsigned n_turns;

static void count_turn(struct loop_deferred *deferred)
{
    if (--n_turns == 0)
        loop_stop(parts.loop);
    else
        loop_defer(parts.loop, deferred);
}

static void run_turns(unsigned n)
{
    struct loop_deferred deferred;

    n_turns = n;
    loop_deferred_init(&deferred, count_turn);
    loop_defer(parts.loop, &deferred);
    must(loop_run(parts.loop) == 0);
}

static int connect_client(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path, path);
    must(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

/* Checks that every answer is JSON with an error or parameters. */
static void check_answers(int fd)
{
    static char buffer[1 << 20];
    size_t size = 0;
    ssize_t n;

    while (size < sizeof(buffer) &&
           (n = recv(fd, buffer + size, sizeof(buffer) - size, MSG_DONTWAIT)) > 0)
        size += (size_t)n;
    for (char *at = buffer, *end; (end = memchr(at, 0, size - (size_t)(at - buffer)));
         at = end + 1) {
        json_t *answer = json_loadb(at, (size_t)(end - at), JSON_ALLOW_NUL, NULL);

        must(json_is_object(json_object_get(answer, "parameters")));
        json_decref(answer);
    }
}

static void check_encodings(const uint8_t *data, size_t size)
{
    char *encoded = malloc(base64_size(size) + 1);
    uint8_t *decoded = malloc(size + 3);
    size_t decoded_size;

    base64_encode(encoded, data, size);
    must(base64_decode(decoded, &decoded_size, encoded, base64_size(size)) == 0);
    must(decoded_size == size && memcmp(decoded, data, size) == 0);
    if (base64_decode(decoded, &decoded_size, (const char *)data, size) == 0) {
        /* Each value has one encoding only. */
        must(base64_size(decoded_size) == size);
        base64_encode(encoded, decoded, decoded_size);
        must(memcmp(encoded, data, size) == 0);
    }
    free(decoded);
    free(encoded);
}

/* Writes the full name of a method; "" if `number` is too high. */
static void write_method(char *text, unsigned number)
{
    unsigned n = 0;

    *text = '\0';
    for (struct request_interface *const *i = control_interfaces; *i; i++)
        for (const struct request_method *const *table = (*i)->methods; *table; table++)
            for (const struct request_method *method = *table; method->name; method++)
                if (n++ == number)
                    sprintf(text, "%s.%s", (*i)->name, method->name);
}

/* Begins the message with a method's name if `choice` says so: a fuzzer takes long to find one. */
static size_t begin_message(char *text, uint8_t choice)
{
    char method[128];

    write_method(method, choice % 64);
    if (*method == '\0')
        return 0;
    return (size_t)sprintf(text, "{\"method\":\"%s\",%s\"parameters\":", method,
                           choice & 64    ? "\"more\":true,"
                           : choice & 128 ? "\"oneway\":true,"
                                          : "");
}

/* The first byte chooses the pieces, the second the beginning; 0xff is the NUL that ends a message.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t piece, length, begun;

    if (size < 3)
        return 0;
    check_encodings(data, size);
    piece = data[0] % 64u * 16u + 1;
    char *text = malloc(size + 256);
    begun = length = begin_message(text, data[1]);
    for (size_t i = 2; i < size; i++)
        text[length++] = data[i] == 0xff ? 0 : (char)data[i];
    if (begun > 0)
        text[length++] = '}';
    text[length++] = 0;
    size = length;
    int fd = connect_client();
    for (size_t at = 0; at < size; at += piece) {
        if (send(fd, text + at, size - at < piece ? size - at : piece, MSG_NOSIGNAL) < 0)
            break;
        run_turns(2);
    }
    run_turns(4);
    check_answers(fd);
    close(fd);
    run_turns(4);
    free(text);
    /* Each input finds the same state. */
    (void)group_resize(group, 1);
    group_stop(group, true);
    group_set_paused(group, false);
    while (queue_first(&group->cell->queue))
        (void)cell_cancel(queue_first(&group->cell->queue), PROTOCOL_CAUSE_REQUESTED, 0);
    run_turns(2);
    return 0;
}
