/* SPDX-License-Identifier: MIT */
#include "supervisor/message/inheritance.h"

#include "shared/base/hash.h"
#include <errno.h>
#include <string.h>

#define ROW actor_counters
#define COUNTERS_FIELDS(F)                                                                         \
    F(UPGRADE, accepted, NUMBER(accepted))                                                         \
    F(UPGRADE, delivered, NUMBER(delivered))                                                       \
    F(UPGRADE, consumed, NUMBER(consumed))                                                         \
    F(UPGRADE, dead, NUMBER(dead))                                                                 \
    F(UPGRADE, redelivered, NUMBER(redelivered))
static const struct field COUNTERS[] = {COUNTERS_FIELDS(FIELD)};
static const struct record COUNTERS_RECORD = RECORD("actor-counters", COUNTERS);
#undef ROW

#define ROW actor_row
#define ACTOR_FIELDS(F)                                                                            \
    F(UPGRADE, name, WORD(name))                                                                   \
    F(UPGRADE, reference, BELOW(reference, INT64_MAX))                                             \
    F(UPGRADE, standby, NUMBER(standby))                                                           \
    F(UPGRADE, needed, NUMBER(needed))                                                             \
    F(UPGRADE, exchange, NUMBER(exchange))                                                         \
    F(UPGRADE, counters, SUBRECORD(counters, COUNTERS_RECORD))
static const struct field ACTOR[] = {ACTOR_FIELDS(FIELD)};
const struct record ACTOR_RECORD = RECORD(ACTOR_ROW, ACTOR);

static uint64_t number_of(const char *name)
{
    return hash_bytes(name, strlen(name));
}

int inheritance_read(struct saved_reader *row, struct actor_row *ret)
{
    *ret = (struct actor_row){0};
    record_get(row, &ACTOR_RECORD, ret);
    return row->damaged || !ret->name || ret->reference == 0 ? -EBADMSG : 0;
}

int inheritance_add(struct waiting_room *room, struct saved_reader *row)
{
    const struct saved_reader whole = *row;
    struct actor_row actor;
    int r = inheritance_read(row, &actor);

    if (r < 0)
        return r;
    return waiting_room_add(room, actor.standby ? STANDBY_ROW : ACTOR_ROW, number_of(actor.name),
                            &whole);
}

bool inheritance_take(struct waiting_room *room, const char *name, struct actor_row *ret)
{
    const uint64_t number = number_of(name);
    const char *kind = ACTOR_ROW;
    struct saved_reader row;

    if (!waiting_room_find(room, kind, number, &row)) {
        kind = STANDBY_ROW;
        if (!waiting_room_find(room, kind, number, &row))
            return false;
    }
    (void)inheritance_read(&row, ret);
    waiting_room_remove(room, kind, number);
    return true;
}
