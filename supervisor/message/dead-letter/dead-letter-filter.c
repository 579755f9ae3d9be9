/* SPDX-License-Identifier: MIT */

/* Finds, filters and walks over dead letters. */

#include "supervisor/message/dead-letter/dead-letter.h"

#include <string.h>

/* Whether `address` is `wanted` or below it. */
static bool address_matches(const char *address, const char *wanted)
{
    const size_t size = strlen(wanted);

    return address && strncmp(address, wanted, size) == 0 &&
           (address[size] == '\0' || address[size] == '/');
}

static bool has_key(const struct dead_letter *letter, const char *key)
{
    const size_t size = letter->topic.key_size;

    return size > 0 && size == strlen(key) && memcmp(letter->topic.key, key, size) == 0;
}

bool dead_letter_matches(const struct dead_letter *letter, const struct dead_letter_filter *filter)
{
    if (filter->queue >= 0 && filter->queue != (int)dead_letter_queue_of(letter->reason))
        return false;
    if (filter->reason >= 0 && filter->reason != (int)letter->reason)
        return false;
    if (filter->sender && !address_matches(letter->sender, filter->sender))
        return false;
    if (filter->recipient && !address_matches(letter->recipient, filter->recipient))
        return false;
    if (filter->type && !topic_type_is_a(letter->topic.type, letter->topic.type_size, filter->type,
                                         (uint32_t)strlen(filter->type)))
        return false;
    if (filter->job && (!letter->job || strcmp(letter->job, filter->job) != 0))
        return false;
    if (filter->key && !has_key(letter, filter->key))
        return false;
    if (filter->cause != ATTEMPT_CAUSE_NONE && letter->cause != filter->cause)
        return false;
    return letter->at >= filter->since && (filter->until == 0 || letter->at <= filter->until);
}

void dead_letter_walk_begin(struct dead_letter_walk *walk, struct dead_letters *letters,
                            bool newest_first)
{
    *walk = (struct dead_letter_walk){.letters = letters};
    for (unsigned queue = 0; queue < _DEAD_N_QUEUES; queue++)
        list_cursor_begin(&walk->at[queue], &letters->cursors, &letters->rings[queue],
                          newest_first);
}

/* The letter at the cursor; NULL at the ring's end. */
static struct dead_letter *under(const struct dead_letter_walk *walk, unsigned queue)
{
    struct list *node = walk->at[queue].at;

    return node && node != &walk->letters->rings[queue] ? list_entry(node, struct dead_letter, link)
                                                        : NULL;
}

struct dead_letter *dead_letter_walk_next(struct dead_letter_walk *walk)
{
    struct dead_letter *letter = under(walk, DEAD_LETTERS), *error = under(walk, DEAD_ERRORS);
    const bool newest_first = walk->at[DEAD_LETTERS].backward;

    if (!letter || (error && (error->id > letter->id) == newest_first))
        letter = error;
    if (letter)
        list_cursor_advance(&walk->at[dead_letter_queue_of(letter->reason)]);
    return letter;
}

void dead_letter_walk_end(struct dead_letter_walk *walk)
{
    for (unsigned queue = 0; queue < _DEAD_N_QUEUES; queue++)
        list_cursor_end(&walk->at[queue]);
}
