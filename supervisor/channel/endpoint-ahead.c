/* SPDX-License-Identifier: MIT */

/* Reads records before their turn while reading is suspended. */

#include "shared/protocol/protocol-actors.h"
#include "supervisor/channel/endpoint-private.h"
#include <errno.h>

/* While a record waits, two kinds of later ones are handled before their turn: reports about our
 * records, because room depends on them, and those that the handler calls urgent. Each is skipped
 * when its turn comes. */

static bool is_report(uint16_t kind)
{
    return kind >= PROTOCOL_FORWARD && kind <= PROTOCOL_UNSTASHED;
}

/* Returns whether the record just read lies before the end of what was read ahead. */
static bool covers(struct endpoint_ahead *ahead, const struct ring_consumer *in)
{
    const int32_t left = (int32_t)(ahead->end - in->head);

    if (!ahead->is)
        return false;
    ahead->is = left > 0;
    return left >= 0;
}

bool endpoint_is_passed(struct endpoint *endpoint, uint16_t kind)
{
    const struct ring_consumer *in = &endpoint->channel.in;
    bool report, urgent;

    if (!endpoint->reports.is && !endpoint->urgent.is)
        return false;
    report = covers(&endpoint->reports, in);
    urgent = covers(&endpoint->urgent, in);
    return (report && is_report(kind)) || (urgent && endpoint->handler->is_urgent(kind));
}

/* A reader that continues where reading ahead has stopped. */
static struct ring_consumer reader_behind(const struct endpoint *endpoint,
                                          const struct endpoint_ahead *ahead)
{
    struct ring_consumer in = endpoint->channel.in;

    if (ahead->is)
        in.head = in.tail = ahead->end;
    return in;
}

static void set_ahead(struct endpoint_ahead *ahead, const struct endpoint *endpoint, uint32_t end)
{
    *ahead = (struct endpoint_ahead){.is = end != endpoint->channel.in.head, .end = end};
}

static int take_report(struct endpoint *endpoint, const struct ring_record *record)
{
    const struct endpoint_handler *handler = endpoint->handler;
    int r;

    if (!is_report(record->kind))
        return 0;
    endpoint->reading = true;
    r = handler->report ? handler->report(endpoint, record) : handler->record(endpoint, record);
    endpoint->reading = false;
    return r;
}

/* Reads one turn's share. Negative = violation: up to the mark there must be records. */
static int read_reports(struct endpoint *endpoint)
{
    struct ring_consumer in = reader_behind(endpoint, &endpoint->reports);
    struct ring_record record;

    for (unsigned n = 0; n < ENDPOINT_BATCH && (int32_t)(in.head - endpoint->check_tail) < 0; n++) {
        if (ring_next(&in, &record) != 0 || take_report(endpoint, &record) != 0)
            return -EPROTO;
        set_ahead(&endpoint->reports, endpoint, in.head);
    }
    return 0;
}

/* ---- the peer's consumption of our records ---- */

/* Returns whether all reports about our records up to the mark are read. While reading is suspended
 * they are read ahead; otherwise the record that waits for room would itself prevent it. This is
 * done at the end of the turn, since the caller may be handling a record. */
static bool endpoint_has_read_to_mark(struct endpoint *endpoint)
{
    if (endpoint->reading)
        return false; /* the current record may be a report about ours; advances afterwards */
    if ((int32_t)(endpoint->channel.in.head - endpoint->check_tail) >= 0)
        return true;
    if (endpoint->suspended)
        loop_defer(endpoint->loop, &endpoint->read_ahead);
    return false;
}

static bool endpoint_look_at_head(struct endpoint *endpoint)
{
    const struct channel *channel = &endpoint->channel;
    /* Partner: the release store in the peer's ring_release(). */
    const uint32_t head = atomic_load_explicit(&channel->their_words->head, memory_order_acquire);
    const uint32_t gate = atomic_load_explicit(endpoint->gate, memory_order_relaxed);
    const uint32_t ahead = head - gate;

    if (ahead == 0)
        return false;
    if ((head & (RING_ALIGNMENT - 1)) != 0 || ahead > channel->out.published - gate) {
        endpoint_break(endpoint, "read cursor out of range");
        return false;
    }
    endpoint->check_head = head;
    /* Partner: ring_publish(). Loaded after its head, so earlier records are included. */
    endpoint->check_tail =
        atomic_load_explicit(&channel->theirs.header->tail, memory_order_acquire);
    endpoint->checking = true;
    return true;
}

/* Counts our records as consumed, after all reports about them are read. The peer's cursor must be
 * at the end of a record. */
static bool endpoint_pass(struct endpoint *endpoint)
{
    uint32_t at = atomic_load_explicit(endpoint->gate, memory_order_relaxed);
    struct ring_record record;

    endpoint->checking = false;
    while ((int32_t)(endpoint->check_head - at) > 0) {
        if (ring_look(&endpoint->channel.out, &at, &record) != 0)
            break;
        if (endpoint->handler->consumed && (int32_t)(endpoint->check_head - at) >= 0)
            endpoint->handler->consumed(endpoint, &record, at);
    }
    if (at != endpoint->check_head) {
        endpoint_break(endpoint, "read cursor within a record");
        return false;
    }
    /* Read by our own ring_reserve(), and by memory_renew() in the next supervisor. */
    atomic_store_explicit(endpoint->gate, at, memory_order_relaxed);
    /* Calls space() in the next turn, not from within this call. */
    if (endpoint->wants_space) {
        endpoint->space_due = true;
        endpoint_heat(endpoint);
    }
    return true;
}

bool endpoint_advance(struct endpoint *endpoint)
{
    if (endpoint->dead || (!endpoint->checking && !endpoint_look_at_head(endpoint)))
        return false;
    return endpoint_has_read_to_mark(endpoint) && endpoint_pass(endpoint);
}

/* ---- reading ahead ---- */

static bool reports_are_read(const struct endpoint *endpoint)
{
    const struct endpoint_ahead *reports = &endpoint->reports;
    const uint32_t end = reports->is ? reports->end : endpoint->channel.in.head;

    return (int32_t)(end - endpoint->check_tail) >= 0;
}

void endpoint_on_read_ahead(struct loop_deferred *deferred)
{
    struct endpoint *endpoint = list_entry(deferred, struct endpoint, read_ahead);

    if (endpoint->dead || !endpoint->suspended || !endpoint->checking)
        return;
    if (read_reports(endpoint) < 0)
        endpoint_break(endpoint, "record that makes no sense");
    if (endpoint->dead || !endpoint->checking)
        return;
    if (reports_are_read(endpoint))
        (void)endpoint_pass(endpoint);
    else
        loop_defer(endpoint->loop, &endpoint->read_ahead);
}

uint32_t endpoint_urgent_end(const struct endpoint *endpoint)
{
    return endpoint->urgent.is ? endpoint->urgent.end : endpoint->channel.in.head;
}

/* Returns the result of the handler's look(). */
static int look_at(struct endpoint *endpoint, const struct ring_record *record)
{
    int r;

    endpoint->reading = true;
    r = endpoint->handler->look(endpoint, record, !endpoint->urgent.is);
    endpoint->reading = false;
    endpoint->urgent_waits = r > 0;
    return r;
}

bool endpoint_read_urgent(struct endpoint *endpoint)
{
    struct ring_consumer in = reader_behind(endpoint, &endpoint->urgent);
    struct ring_record record;
    bool found = false;

    for (unsigned n = 0; n < ENDPOINT_BATCH && !endpoint->urgent_waits && !endpoint->dead; n++) {
        int r = ring_next(&in, &record);

        if (r == RING_E_EMPTY) {
            set_ahead(&endpoint->urgent, endpoint, in.head); /* behind a padding record */
            break;
        }
        if (r == 0)
            r = look_at(endpoint, &record);
        if (r < 0)
            endpoint_break(endpoint, "record that makes no sense");
        if (r != 0)
            break;
        found = true;
        set_ahead(&endpoint->urgent, endpoint, in.head);
    }
    return found;
}
