/* SPDX-License-Identifier: MIT */

#include "tests/unit/fake-client.h"
#include "tests/unit/fixture.h"
#include "tests/unit/parts-fixture.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

struct parts fake_parts;
struct config_daemon fake_daemon;
struct control *fake_control;
struct group *fake_group;
char fake_path[64];
static char directory[32];
static json_t *answers; /* all that were received */

static void make_group(void)
{
    struct config_group *config = new_group_config("test");

    config->size = (struct config_size){2, 2};
    config->queue_max = 3;
    fake_group = add_group(&fake_parts, config);
}

void fake_setup(void)
{
    answers = json_array();
    set_up_parts(&fake_parts, &fake_daemon, -1);
    fake_parts.control.state = CONTROL_RUNNING;
    fake_daemon.clients_max = 8;
    fake_daemon.client_idle = USEC_INFINITY;
    fake_daemon.client_request = 30 * USEC_PER_SEC;
    make_group();
    strcpy(directory, "/tmp/test-control-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(fake_path, sizeof(fake_path), "%s/s", directory);
    int fd = control_listen(fake_path, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(control_new(&fake_control, &fake_parts.control, fd), 0);
    control_set_path(fake_control, fake_path, true);
    give_up_after(fake_parts.loop, 20 * USEC_PER_SEC);
}

void fake_teardown(void)
{
    json_decref(answers);
    control_free(fake_control);
    remove_group(&fake_parts, fake_group);
    tear_down_parts(&fake_parts);
    unlink(fake_path);
    ck_assert_int_eq(rmdir(directory), 0);
}

/* ---- client ---- */

static void keep_fds(struct fake_client *client, struct msghdr *message)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);

    if (!header)
        return;
    size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    ck_assert_uint_le(client->n_fds + n, ELEMENTS(client->fds));
    memcpy(client->fds + client->n_fds, CMSG_DATA(header), n * sizeof(int));
    client->n_fds += (unsigned)n;
}

static void on_readable(void *userdata, uint32_t events)
{
    struct fake_client *client = userdata;
    char buffer[65536];
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec vector = {buffer, sizeof(buffer)};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        client->eof = true;
        loop_unwatch(fake_parts.loop, &client->watch);
    } else {
        keep_fds(client, &message);
        client->data = realloc(client->data, client->size + (size_t)n);
        memcpy(client->data + client->size, buffer, (size_t)n);
        client->size += (size_t)n;
    }
    if (client->eof || memchr(client->data, 0, client->size))
        loop_stop(fake_parts.loop);
}

struct fake_client *fake_connect(void)
{
    struct fake_client *client = calloc(1, sizeof(*client));
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(address.sun_path, fake_path);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return client;
}

void fake_disconnect(struct fake_client *client)
{
    loop_unwatch(fake_parts.loop, &client->watch);
    while (client->n_fds > 0)
        close(client->fds[--client->n_fds]);
    close(client->fd);
    free(client->data);
    free(client);
}

void fake_send(struct fake_client *client, const char *text)
{
    size_t size = strlen(text) + 1;

    ck_assert_int_eq(send(client->fd, text, size, MSG_NOSIGNAL), (ssize_t)size);
}

json_t *fake_receive(struct fake_client *client)
{
    const char *end;

    while (!(end = client->size > 0 ? memchr(client->data, 0, client->size) : NULL)) {
        if (client->eof)
            return NULL;
        if (client->watch.id == 0)
            ck_assert_int_eq(loop_watch_fd(fake_parts.loop, &client->watch, client->fd, POLLIN,
                                           on_readable, client),
                             0);
        ck_assert_int_eq(loop_run(fake_parts.loop), 0);
    }
    json_t *answer = json_loads(client->data, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(answer != NULL, "no JSON: %s", client->data);
    client->size -= (size_t)(end + 1 - client->data);
    memmove(client->data, end + 1, client->size);
    ck_assert_int_eq(json_array_append_new(answers, answer), 0);
    return answer;
}

json_t *fake_ask(struct fake_client *client, const char *text)
{
    fake_send(client, text);
    return fake_receive(client);
}

json_t *fake_refused(struct fake_client *client, const char *error, const char *text)
{
    json_t *answer = fake_ask(client, text);
    const char *name = answer ? json_string_value(json_object_get(answer, "error")) : NULL;

    ck_assert_msg(name != NULL, "not refused: %s", text);
    ck_assert_str_eq(strrchr(name, '.') + 1, error);
    return json_object_get(answer, "parameters");
}

/* Two turns after the last one in which something was deferred. */
static unsigned n_turns;

static void count_turn(struct loop_deferred *deferred)
{
    if (--n_turns == 0)
        loop_stop(fake_parts.loop);
    else
        loop_defer(fake_parts.loop, deferred);
}

void fake_turns(unsigned n)
{
    struct loop_deferred deferred;

    n_turns = n;
    loop_deferred_init(&deferred, count_turn);
    loop_defer(fake_parts.loop, &deferred);
    ck_assert_int_eq(loop_run(fake_parts.loop), 0);
}

void fake_settle(void)
{
    fake_turns(20);
}
