/* SPDX-License-Identifier: MIT */
#include "supervisor/succession/waiting-room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
    struct index_entry by_number;
    struct list link;
    const char *kind;
    bool stays;
    size_t size;
    uint8_t fields[];
};

void waiting_room_init(struct waiting_room *room)
{
    *room = (struct waiting_room){.by_number = INDEX_NULL};
    list_init(&room->all);
}

static void forget(struct waiting_room *room, struct waiting *waiting)
{
    index_remove(&room->by_number, &waiting->by_number);
    list_unlink(&waiting->link);
    free(waiting);
}

void waiting_room_deinit(struct waiting_room *room)
{
    list_for_each_entry_safe (waiting, &room->all, struct waiting, link)
        forget(room, waiting);
    index_deinit(&room->by_number);
}

static struct waiting *find(const struct waiting_room *room, const char *kind, uint64_t number)
{
    index_for_each_entry (waiting, &room->by_number, number, struct waiting, by_number)
        if (strcmp(waiting->kind, kind) == 0)
            return waiting;
    return NULL;
}

int waiting_room_add(struct waiting_room *room, const char *kind, uint64_t number,
                     const struct saved_reader *row)
{
    const size_t size = (size_t)(row->end - row->at);
    struct waiting *waiting = malloc(sizeof(*waiting) + size);

    if (!waiting)
        return -ENOMEM;
    waiting->kind = kind;
    waiting->stays = false;
    waiting->size = size;
    memcpy(waiting->fields, row->at, size);
    list_init(&waiting->link);
    list_push_back(&room->all, &waiting->link);
    index_add(&room->by_number, &waiting->by_number, number);
    return 0;
}

static struct saved_reader reader_of(const struct waiting *waiting)
{
    return (struct saved_reader){
        .at = waiting->fields, .end = waiting->fields + waiting->size, .payload = ""};
}

bool waiting_room_find(const struct waiting_room *room, const char *kind, uint64_t number,
                       struct saved_reader *ret)
{
    const struct waiting *waiting = find(room, kind, number);

    if (waiting)
        *ret = reader_of(waiting);
    return waiting;
}

void waiting_room_remove(struct waiting_room *room, const char *kind, uint64_t number)
{
    struct waiting *waiting = find(room, kind, number);

    if (waiting)
        forget(room, waiting);
}

void waiting_room_keep(struct waiting_room *room, const char *kind, uint64_t number)
{
    struct waiting *waiting = find(room, kind, number);

    if (waiting)
        waiting->stays = true;
}

unsigned waiting_room_settle(struct waiting_room *room, const char *kind,
                             void (*dropped)(void *userdata, struct saved_reader *row),
                             void *userdata)
{
    unsigned n = 0;

    list_for_each_entry_safe (waiting, &room->all, struct waiting, link) {
        if (waiting->stays || strcmp(waiting->kind, kind) != 0)
            continue;
        if (dropped) {
            struct saved_reader row = reader_of(waiting);
            dropped(userdata, &row);
        }
        forget(room, waiting);
        n++;
    }
    return n;
}

void waiting_room_save(const struct waiting_room *room, struct saver *saver)
{
    list_for_each_entry (waiting, &room->all, struct waiting, link) {
        struct saved_writer row = {0};

        saved_put_raw(&row, waiting->fields, waiting->size);
        saved_add(saver, waiting->kind, &row, NULL);
    }
}
