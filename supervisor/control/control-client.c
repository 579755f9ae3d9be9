/* SPDX-License-Identifier: MIT */

#include "supervisor/control/control-client.h"

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/log.h"
#include "supervisor/client/attachment.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/target.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/loop/taker.h"
#include "supervisor/loop/toll.h"
#include "supervisor/process/holding.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Clients beyond ClientsMax= that get an error reply; further ones are closed immediately. */
#define REFUSED_MAX 64

static struct request_interface *find_interface(const struct request *request, const char *method,
                                                size_t length)
{
    for (struct request_interface *const *i = request->context->interfaces; *i; i++)
        if (strlen((*i)->name) == length && strncmp((*i)->name, method, length) == 0)
            return *i;
    return NULL;
}

static const struct request_method *find_method(const struct request_interface *interface,
                                                const char *name)
{
    for (const struct request_method *const *table = interface->methods; *table; table++)
        for (const struct request_method *method = *table; method->name; method++)
            if (strcmp(method->name, name) == 0)
                return method;
    return NULL;
}

static void fail_interface(struct request *request, size_t length)
{
    struct reply *reply = request_begin_error(request, "org.varlink.service.InterfaceNotFound");

    reply_text(reply, "interface", request->call.method, length);
    request_end(request);
}

static void refuse(struct request *request)
{
    char needed[PEER_NEEDED_MAX];

    peer_describe_needed(needed, request->context->config);
    request_fail_string(request, "NotPermitted", "needed", needed);
}

static bool permitted(struct request *request)
{
    if (!request->method->changes || request->method->submits ||
        request->connection->account->may_change)
        return true;
    refuse(request);
    return false;
}

/* Finds interface and method; replies with an error if there is none. */
static bool find(struct request *request)
{
    const char *method = request->call.method;
    size_t length = varlink_interface_length(method);

    if (length == 0) {
        request_invalid(request, "method");
        return false;
    }
    request->interface = find_interface(request, method, length);
    if (!request->interface) {
        fail_interface(request, length);
        return false;
    }
    request->method = find_method(request->interface, method + length + 1);
    if (!request->method) {
        request_fail_string(request, "org.varlink.service.MethodNotFound", "method", method);
        return false;
    }
    return true;
}

/* Nothing is known of the groups yet, and nothing may be made that they would own. */
static bool is_unconfigured(struct request *request)
{
    const char *problem = request->context->config_problem;

    if (!problem || request->method->always)
        return false;
    request_fail_string(request, "io.troupe.Supervisor.NotConfigured", "problem", problem);
    return true;
}

static void on_message(struct connection *connection, const char *text, size_t size)
{
    struct client *client = client_of(connection, connection);
    struct request *request = &client->request;

    if (request->attachment)
        attachment_drop_holding(request->attachment);
    if (!request_start(request, text, size) || !find(request))
        return;
    if (client->refused_at > 0) {
        request_fail_int(request, "TooManyClients", "maximum", (int64_t)client->refused_at);
        connection_finish(connection);
        return;
    }
    if (permitted(request) && request_take_parameters(request) &&
        !(request->method->begins && control_refuse_stopping(request)) && !is_unconfigured(request))
        request->method->call(request);
}

static void on_too_large(struct connection *connection)
{
    struct client *client = client_of(connection, connection);

    limited_log_write(client->request.log, NULL, LOG_LEVEL_NOTICE,
                      "client %d (uid %u) is cut off: a message beyond %zu KiB",
                      (int)connection->peer.pid, (unsigned)connection->peer.uid,
                      connection_input_max(connection) >> 10);
    /* The message is not read, but only methods that change something take one as large. */
    if (!connection->account->may_change)
        refuse(&client->request);
    else
        request_fail_int(&client->request, "TooLarge", "maximum", (int64_t)CONNECTION_INPUT_MAX);
}

static void on_cut_off(struct connection *connection, const char *why)
{
    struct client *client = client_of(connection, connection);

    limited_log_write(client->request.log, NULL, LOG_LEVEL_NOTICE,
                      "client %d (uid %u) is cut off: %s", (int)connection->peer.pid,
                      (unsigned)connection->peer.uid, why);
}

void client_free(struct client *client)
{
    struct control *control = client->control;

    task_cancel(&client->farewell);
    request_deinit(&client->request);
    attachment_free(client->request.attachment);
    connection_deinit(&client->connection);
    list_unlink(&client->link);
    list_unlink(&client->submits.link);
    if (client->refused_at > 0)
        control->n_refused--;
    else
        control->n_clients--;
    free(client);
}

void client_review(struct client *client)
{
    struct connection *connection = &client->connection;

    if (connection->dead || !connection->account->may_change ||
        peer_may_change(&connection->peer, client->control->context->config))
        return;
    on_cut_off(connection, "its user may not change things any more (AdminGroup=)");
    connection_close(connection);
}

static void leave(struct task *task)
{
    struct client *client = client_of(task, farewell);

    if (!client->request.attachment || attachment_finish(client->request.attachment, task))
        client_free(client);
}

static void on_closed(struct connection *connection)
{
    struct client *client = client_of(connection, connection);

    request_deinit(&client->request);
    leave(&client->farewell);
}

static void on_sent(struct connection *connection)
{
    struct request *request = &client_of(connection, connection)->request;

    if (request->sent)
        request->sent(request);
}

static const struct connection_handler handler = {
    .message = on_message,
    .too_large = on_too_large,
    .cut_off = on_cut_off,
    .sent = on_sent,
    .closed = on_closed,
};

/*
 * The last eighth of ClientsMax= is reserved for clients that may change things: readers cannot
 * lock them out. The last eighth of theirs is reserved for root and the supervisor's user.
 */
static unsigned places_of_all(const struct control *control, bool may_change)
{
    const unsigned max = control->context->config->clients_max;

    return may_change ? max : max - max / 8;
}

static unsigned places_of_user(const struct control *control, const struct account *account)
{
    const unsigned max = control->context->config->clients_max;

    if (!account->may_change)
        return (places_of_all(control, false) + 1) / 2;
    return account->uid == 0 || account->uid == geteuid() ? max : max - max / 8;
}

/* Closes a connection of the user with the most. Returns false if none may be closed. */
static bool make_room(const struct account *account)
{
    struct list *place = account_find_place(account);
    struct connection *connection = place ? list_entry(place, struct connection, place) : NULL;

    if (!connection)
        return false;
    on_cut_off(connection, "its user has the most connections, and another user needs a place");
    connection_close(connection);
    return true;
}

/* Returns the bound that a further client of the user would exceed; 0 = there is a place. */
static unsigned find_bound(const struct control *control, const struct account *account)
{
    const unsigned all = places_of_all(control, account->may_change);
    const unsigned own = places_of_user(control, account);

    if (account->n_places + account->n_leaving >= own)
        return own;
    return control->n_clients < all || make_room(account) ? 0 : all;
}

static void on_worker_end(struct submit_client *submits)
{
    struct client *client = client_of(submits, submits);

    list_unlink(&submits->link);
    client->connection.peer.worker = NULL;
    connection_close(&client->connection);
}

static int name_worker(struct peer *peer, const struct submit_socket *socket)
{
    if (!socket)
        return 0;
    peer->worker = socket;
    peer->worker_of = strdup(socket->options.group);
    return peer->worker_of ? 0 : -ENOMEM;
}

int client_new(struct control *control, int fd, struct submit_socket *socket)
{
    const struct config_daemon *config = control->context->config;
    _cleanup_(peer_deinit)
    struct peer peer = PEER_NULL;
    struct connection_options options = {.work = &control->work,
                                         .accounts = &control->accounts,
                                         .idle_max = config->client_idle,
                                         .request_max = config->client_request,
                                         .handler = &handler};
    struct account *account;
    struct client *client;
    unsigned refused_at;
    uint64_t owner;
    int r;

    r = peer_init(&peer, fd);
    if (r == 0)
        r = name_worker(&peer, socket);
    if (r < 0)
        return r;
    options.may_change = peer_may_change(&peer, config);
    /*
     * accept() returns the lowest free number; the highest ones are for spawns and for clients that
     * may change things.
     */
    if (!options.may_change && control->context->fds_for_all > 0 &&
        fd >= control->context->fds_for_all)
        return -EMFILE;
    owner = taker_owner_of_user(peer.uid);
    if (!options.may_change &&
        (taker_is_full(owner) || toll_bars(owner, loop_now(control->context->loop))))
        return -EUSERS;
    account = account_get(&control->accounts, peer.uid, options.may_change);
    if (!account)
        return -ENOMEM;
    refused_at = find_bound(control, account);
    account_put(account);
    if (refused_at > 0 && control->n_refused >= REFUSED_MAX)
        return -EUSERS;
    if (refused_at > 0)
        options.idle_max = CONNECTION_LINGER;
    options.counts = refused_at == 0;
    client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    r = connection_init(&client->connection, fd, &peer, &options);
    if (r < 0) {
        free(client);
        return r;
    }
    client->control = control;
    client->refused_at = refused_at;
    task_init(&client->farewell, &control->work, leave);
    request_init(&client->request, control->context, control, &client->connection,
                 control->context->log);
    list_push_back(&control->clients, &client->link);
    list_init(&client->submits.link);
    client->submits.end = on_worker_end;
    if (socket)
        list_push_back(&socket->clients, &client->submits.link);
    if (refused_at > 0)
        control->n_refused++;
    else
        control->n_clients++;
    return 0;
}

int client_adopt(struct control *control, struct held *held)
{
    int fd = attachment_take_connection(held);
    struct client *client;
    int r = fd < 0 ? -EPROTO : client_new(control, fd, NULL);

    if (r < 0) {
        (void)shutdown(fd, SHUT_RDWR);
        taker_close_socket(fd, 0);
        held_discard(held);
        return r;
    }
    client = client_of(control->clients.prev, link);
    if (client->refused_at > 0) {
        held_discard(held);
        r = -EUSERS;
    } else
        r = control_adopt_attachment(&client->request, held);
    if (r < 0)
        client_free(client);
    return r;
}

void client_bid_farewell(struct client *client, const char *farewell)
{
    struct connection *connection = &client->connection;

    if (client->request.attachment)
        attachment_flush(client->request.attachment);
    request_answer_now(&client->request);
    if (client->request.active && !connection->dead)
        request_fail(&client->request, farewell);
    if (!connection->dead)
        connection_flush(connection);
}

void client_drain(struct client *client, usec_t end)
{
    struct connection *connection = &client->connection;

    while (connection_unread(connection) > 0 && !connection->dead) {
        struct pollfd poll_fd = {.fd = connection->fd, .events = POLLOUT};
        usec_t left = usec_sub(end, clock_now());

        if (left == 0 || poll(&poll_fd, 1, (int)(left / USEC_PER_MSEC) + 1) <= 0)
            return;
        connection_flush(connection);
    }
}
