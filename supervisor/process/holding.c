/* SPDX-License-Identifier: MIT */
#include "supervisor/process/holding.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/hash.h"
#include "shared/base/log.h"
#include "supervisor/keeper/message.h"
#include "supervisor/loop/listener.h"
#include "supervisor/loop/taker.h"
#include "supervisor/process/spawner.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct holding_head) + HOLDING_NAME_MAX + 1 + HOLDING_DATA_MAX <=
                   HOLD_BYTES_MAX,
               "bytes of a holding fit a message");

/* Too large for the stack. */
static struct message outgoing;

/* Returns the size, or -E2BIG. */
static int put_together(uint8_t *bytes, const struct holding_content *content)
{
    const struct holding_head head = {.kind = (uint16_t)content->kind, .version = content->version};
    const size_t name_size = strlen(content->name) + 1;

    if (name_size > HOLDING_NAME_MAX + 1 || content->size > HOLDING_DATA_MAX)
        return -E2BIG;
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), content->name, name_size);
    if (content->size > 0)
        memcpy(bytes + sizeof(head) + name_size, content->data, content->size);
    return (int)(sizeof(head) + name_size + content->size);
}

int holding_put(struct holding *holding, struct spawner *spawner,
                const struct spawner_client *client, pid_t pid,
                const struct holding_content *content)
{
    uint8_t bytes[HOLD_BYTES_MAX];
    const uint64_t id = client->id != 0 ? client->id : holding->id;
    int r = fault_inject("hold");

    if (r == 0)
        r = id != 0 ? put_together(bytes, content) : -ESRCH;
    if (r < 0)
        return r;
    message_begin(&outgoing, MESSAGE_HOLD, id)->pid = pid;
    r = message_put_held(&outgoing, bytes, (size_t)r, content->fds, content->n_fds);
    if (r == 0)
        r = spawner_send(spawner, &outgoing);
    if (r == 0)
        holding->id = id;
    return r;
}

int holding_put_text(struct holding *holding, struct spawner *spawner,
                     struct spawner_client *client, const struct holding_content *content,
                     const char *text, size_t size)
{
    _cleanup_close_ int fd = memfd_create("trouped-text", MFD_CLOEXEC);
    struct holding_content with_text = *content;

    if (fd < 0)
        return -errno;
    if (write(fd, text, size) != (ssize_t)size)
        return -ENOSPC;
    with_text.fds = &fd;
    with_text.n_fds = 1;
    if (client->id == 0 && spawner_register(spawner, client) < 0)
        return -ENOMEM;
    return holding_put(holding, spawner, client, 0, &with_text);
}

void holding_drop(struct holding *holding, struct spawner *spawner)
{
    if (holding->id == 0)
        return;
    (void)message_begin(&outgoing, MESSAGE_RELEASE, holding->id);
    (void)spawner_send(spawner, &outgoing);
    holding->id = 0;
}

/* ---- what the last supervisor has left ---- */

static struct held *held_of(struct spawner_client *client)
{
    return list_entry(client, struct held, client);
}

static uint64_t key_of(enum holding_kind kind, const char *name)
{
    return hash_bytes(name, strlen(name)) ^ kind;
}

/* Closes a descriptor. That of a discarded process may be a socket with unread messages, so the
 * socket is shut down and emptied. Other descriptors are still held by the keeper for another
 * supervisor. */
static void drop_fd(const struct held *held, int fd)
{
    if (!held->discarded) {
        close_fd(fd);
        return;
    }
    listener_end(fd);
    (void)shutdown(fd, SHUT_RDWR);
    taker_close_socket(fd, 0);
}

static void close_fds(struct held *held)
{
    held->pidfd = close_fd(held->pidfd);
    for (size_t i = 0; i < held->n_fds; i++)
        drop_fd(held, TAKE_FD(held->fds[i]));
}

static void held_free(struct held *held)
{
    close_fds(held);
    list_unlink(&held->link);
    free(held);
}

/* Also ends its calls. */
static void forget(struct held *held)
{
    spawner_forget(held->table->spawner, &held->client);
    held_free(held);
}

/* ---- discarding ---- */

static void note_end(const struct held *held, int change)
{
    const struct held_table *table = held->table;

    if (held->kind == HOLDING_WORKER && table->worker_ends)
        table->worker_ends(table->userdata, held->name, change);
}

static void held_on_exited(struct spawner_client *client, const struct spawn_exit *how)
{
    struct held *held = held_of(client);

    held->ended = true;
    held->how = *how;
    held->pidfd = close_fd(held->pidfd);
    if (!held->discarded)
        return;
    note_end(held, -1);
    held_free(held);
}

static const struct spawner_handler HELD_SPAWNER = {.exited = held_on_exited};

/* The entry keeps its id until its process has ended. */
void held_discard(struct held *held)
{
    struct spawner *spawner = held->table->spawner;

    held->discarded = true;
    list_push_back(&held->table->discarded, &held->link);
    close_fds(held);
    if (held->pid != 0 && !held->ended) {
        spawner_kill(spawner, &held->client, held->pid);
        note_end(held, 1);
    }
    holding_drop(&held->holding, spawner);
    if (held->pid == 0 || held->ended)
        forget(held);
}

/* ---- taking ---- */

/* Takes it out of its table. */
static struct held *take_out(struct held *held)
{
    index_remove(&held->table->names, &held->entry);
    list_unlink(&held->link);
    return held;
}

static struct held *find(const struct held_table *table, enum holding_kind kind, const char *name)
{
    index_for_each_entry (held, &table->names, key_of(kind, name), struct held, entry)
        if (held->kind == kind && strcmp(held->name, name) == 0)
            return held;
    return NULL;
}

struct held *held_take(struct held_table *table, enum holding_kind kind, const char *name)
{
    struct held *held = find(table, kind, name);

    return held ? take_out(held) : NULL;
}

const struct held *held_find(const struct held_table *table, enum holding_kind kind,
                             const char *name)
{
    return find(table, kind, name);
}

int held_read_text(const struct held *held, char **ret, size_t *ret_size)
{
    _cleanup_free_ char *text = NULL;
    struct stat status;

    if (held->n_fds != 1 || fstat(held->fds[0], &status) < 0)
        return -EBADMSG;
    text = malloc((size_t)status.st_size + 1);
    if (!text)
        return -ENOMEM;
    if (pread(held->fds[0], text, (size_t)status.st_size, 0) != status.st_size)
        return -EIO;
    *ret = TAKE_PTR(text);
    *ret_size = (size_t)status.st_size;
    return 0;
}

const struct held *held_next(const struct held_table *table, enum holding_kind kind,
                             const struct held *after)
{
    const struct list *node = after ? after->link.next : table->waiting.next;

    for (; node != &table->waiting; node = node->next)
        if (list_entry(node, struct held, link)->kind == kind)
            return list_entry(node, struct held, link);
    return NULL;
}

static bool is_of_group(const struct held *held, const char *group)
{
    const size_t size = strlen(group);

    return strncmp(held->name, group, size) == 0 && held->name[size] == '/';
}

bool held_has_group(const struct held_table *table, const char *group)
{
    static const enum holding_kind kinds[] = {HOLDING_WORKER, HOLDING_SERVICE};

    for (size_t i = 0; i < ELEMENTS(kinds); i++)
        for (const struct held *held = NULL; (held = held_next(table, kinds[i], held));)
            if (is_of_group(held, group))
                return true;
    return false;
}

uint32_t held_n_ending(const struct held_table *table, const char *group)
{
    uint32_t n = 0;

    if (!table->spawner)
        return 0;
    list_for_each_entry (held, &table->discarded, struct held, link)
        n += held->kind == HOLDING_WORKER && is_of_group(held, group);
    return n;
}

struct held *held_take_any(struct held_table *table, enum holding_kind kind)
{
    const struct held *held = held_next(table, kind, NULL);

    return held ? held_take(table, kind, held->name) : NULL;
}

void held_adopt(struct held *held, struct spawner_client *client, struct holding *holding)
{
    struct spawner *spawner = held->table->spawner;

    *holding = held->holding;
    client->id = 0;
    if (held->pid != 0 && held->ended)
        spawner_forget(spawner, &held->client);
    else
        spawner_pass_on(spawner, &held->client, client);
    held_free(held);
}

void held_discard_rest(struct held_table *table)
{
    list_for_each_entry_safe (held, &table->waiting, struct held, link) {
        log_notice("%s: left by the previous supervisor, and not wanted any more", held->name);
        held_discard(take_out(held));
    }
}

/* ---- collecting ---- */

/* Too large for the stack. */
static struct message incoming;

/* Returns 0 or -EBADMSG. */
static int parse_bytes(struct held *held, size_t size)
{
    struct holding_head head;
    const char *end;

    if (size < sizeof(head))
        return -EBADMSG;
    memcpy(&head, held->bytes, sizeof(head));
    held->kind = head.kind;
    held->version = head.version;
    held->name = (const char *)held->bytes + sizeof(head);
    end = memchr(held->name, '\0', size - sizeof(head));
    if (!end)
        return -EBADMSG;
    held->data = (const uint8_t *)end + 1;
    held->size = size - (size_t)(held->data - held->bytes);
    return 0;
}

/* Copies the message. NULL without memory. */
static struct held *held_new(struct held_table *table, const struct message *message)
{
    const struct message_record *record = &message->record;
    struct held *held = fault_inject("held") < 0 ? NULL : calloc(1, sizeof(*held) + record->size);

    if (!held)
        return NULL;
    held->table = table;
    held->client.handler = &HELD_SPAWNER;
    held->client.id = held->holding.id = record->id;
    held->pid = record->pid;
    held->pidfd = -1;
    held->ended = record->ended;
    held->how = record->how;
    memcpy(held->bytes, record->bytes, record->size);
    list_init(&held->link);
    return held;
}

/* Whether the message has all held descriptors, and at most a pidfd beside them. */
static bool has_its_descriptors(const struct message *message)
{
    const size_t n = message->record.n_fds;

    return n <= HOLDING_FDS_MAX && (message->n_fds == n || message->n_fds == n + 1);
}

/* Gives the entry its id in the spawner. If its process has ended, a later process may have the
 * place of that id: the last supervisor reuses a place before it drops the holding. Then the id is
 * only kept from being used again. */
static int register_held(struct held_table *table, struct held *held)
{
    struct handle_table *clients = &table->spawner->clients;
    int r = handle_table_restore(clients, held->client.id, &held->client);

    if (held->pid == 0 || !held->ended)
        return r;
    if (r == 0)
        handle_table_remove(clients, held->client.id);
    return r == -EEXIST ? 0 : r;
}

/* Gives it the descriptors of the message. */
static void take_fds(struct held *held, struct message *message)
{
    const size_t n = message->record.n_fds;

    if (message->n_fds > n)
        held->pidfd = message->fds[n];
    held->n_fds = n;
    memcpy(held->fds, message->fds, n * sizeof(int));
    message->n_fds = 0;
}

/* Returns 0 or -errno. */
static int add(struct held_table *table)
{
    const struct message_record *record = &incoming.record;
    struct held *held = held_new(table, &incoming);
    int r = held ? register_held(table, held) : -ENOMEM;

    if (r < 0) {
        if (held)
            held_free(held);
        return r;
    }
    if (has_its_descriptors(&incoming))
        take_fds(held, &incoming);
    if (parse_bytes(held, record->size) < 0) {
        held->name = "something unknown";
        held_discard(held);
        return 0;
    }
    list_push_back(&table->waiting, &held->link);
    index_add(&table->names, &held->entry, key_of(held->kind, held->name));
    return 0;
}

/* Handles a message. `lost`: -EMFILE if its descriptors were lost. Returns 0 if it was the last
 * one, -EAGAIN if not, or another -errno. */
static int take_message(struct held_table *table, int lost)
{
    int r;

    switch (message_kind_of(&incoming)) {
    case MESSAGE_HELD:
        table->lost = lost < 0 ? lost : table->lost;
        r = add(table);
        message_close_fds(&incoming);
        return r < 0 ? r : -EAGAIN;
    case MESSAGE_HELD_END:
        table->end = incoming.record.end;
        handle_table_link_free(&table->spawner->clients);
        return table->end.upgrading ? table->lost : 0;
    default:
        message_close_fds(&incoming);
        return -EPROTO;
    }
}

int held_collect(struct held_table *table, struct spawner *spawner, usec_t timeout)
{
    const usec_t end = usec_add(clock_now(), timeout);
    struct pollfd wait = {.fd = spawner->fd, .events = POLLIN};
    int r = spawner->fd < 0 ? 0 : -EAGAIN;

    *table = (struct held_table){.spawner = spawner};
    list_init(&table->waiting);
    list_init(&table->discarded);
    while (r == -EAGAIN) {
        r = message_receive(spawner->fd, &incoming);
        if (r == 0 || r == -EMFILE)
            r = take_message(table, r);
        else if (r == -EAGAIN && clock_left(end) == 0)
            return -ETIMEDOUT;
        else if (r == -EAGAIN)
            (void)poll(&wait, 1, (int)(clock_left(end) / USEC_PER_MSEC) + 1);
    }
    if (spawner->loop)
        loop_update_now(spawner->loop);
    return r;
}

void held_deinit(struct held_table *table)
{
    if (!table->spawner)
        return;
    list_for_each_entry_safe (held, &table->waiting, struct held, link)
        forget(take_out(held));
    list_for_each_entry_safe (held, &table->discarded, struct held, link)
        forget(held);
    index_deinit(&table->names);
    table->spawner = NULL;
}
