/* SPDX-License-Identifier: MIT */
#include "worker/nats/engine-arrivals.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* Beyond these limits messages are dropped; the server delivers each again. */
#define ARRIVALS_MAX       65536u
#define ARRIVALS_BYTES_MAX ((size_t)64 << 20)

struct arrival {
    struct list link;
    struct engine_arrival what;
};

int engine_arrivals_init(struct engine_arrivals *arrivals)
{
    *arrivals = (struct engine_arrivals){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                         .lock = PTHREAD_MUTEX_INITIALIZER};
    list_init(&arrivals->list);
    return arrivals->fd < 0 ? -errno : 0;
}

void engine_arrivals_deinit(struct engine_arrivals *arrivals)
{
    arrivals->fd = close_fd(arrivals->fd);
}

static size_t bytes_of(const natsMsg *message)
{
    return message ? (size_t)natsMsg_GetDataLength(message) : 0;
}

/* With the lock held. */
static bool is_full(const struct engine_arrivals *arrivals)
{
    return arrivals->n >= ARRIVALS_MAX || arrivals->bytes >= ARRIVALS_BYTES_MAX;
}

/* With the lock held. */
static void remove_arrival(struct engine_arrivals *arrivals, struct arrival *arrival)
{
    list_unlink(&arrival->link);
    arrivals->n--;
    arrivals->bytes -= bytes_of(arrival->what.message);
}

/* Returns false if there is no room for it; otherwise takes it over. */
static bool add(struct engine_arrivals *arrivals, struct arrival *arrival)
{
    bool first, full;

    pthread_mutex_lock(&arrivals->lock);
    first = list_empty(&arrivals->list);
    full = arrival->what.event >= ENGINE_MESSAGE && is_full(arrivals);
    if (!full) {
        list_push_back(&arrivals->list, &arrival->link);
        arrivals->n++;
        arrivals->bytes += bytes_of(arrival->what.message);
    }
    pthread_mutex_unlock(&arrivals->lock);
    if (first) /* the main loop takes all of them */
        (void)eventfd_write(arrivals->fd, 1);
    return !full;
}

void engine_arrivals_put(struct engine_arrivals *arrivals, struct engine_arrival what)
{
    struct arrival *arrival = malloc(sizeof(*arrival));

    if (arrival) {
        *arrival = (struct arrival){.what = what};
        if (add(arrivals, arrival))
            return;
        free(arrival);
    }
    natsMsg_Destroy(what.message);
}

bool engine_arrivals_take(struct engine_arrivals *arrivals, struct engine_arrival *ret)
{
    struct arrival *arrival = NULL;
    struct list *node;

    pthread_mutex_lock(&arrivals->lock);
    node = list_first(&arrivals->list);
    if (node) {
        arrival = list_entry(node, struct arrival, link);
        remove_arrival(arrivals, arrival);
    }
    pthread_mutex_unlock(&arrivals->lock);
    if (!arrival)
        return false;
    *ret = arrival->what;
    free(arrival);
    return true;
}

static bool is_from_stream(const struct engine_arrival *what)
{
    return what->event == ENGINE_MESSAGE && what->channel >= ENGINE_MESSAGES;
}

void engine_arrivals_forget(struct engine_arrivals *arrivals)
{
    struct list forgotten, *node;

    list_init(&forgotten);
    pthread_mutex_lock(&arrivals->lock);
    list_for_each_safe (of, &arrivals->list) {
        struct arrival *arrival = list_entry(of, struct arrival, link);

        if (!is_from_stream(&arrival->what))
            continue;
        remove_arrival(arrivals, arrival);
        list_push_back(&forgotten, of);
    }
    pthread_mutex_unlock(&arrivals->lock);
    while ((node = list_first(&forgotten))) {
        struct arrival *arrival = list_entry(node, struct arrival, link);

        list_unlink(node);
        natsMsg_Destroy(arrival->what.message);
        free(arrival);
    }
}
