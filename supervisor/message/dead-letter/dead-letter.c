/* SPDX-License-Identifier: MIT */
#include "supervisor/message/dead-letter/dead-letter.h"

#include "shared/base/hash.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const REASONS[_DEAD_N_REASONS] = {
    [DEAD_UNHANDLED] = "unhandled",
    [DEAD_NO_MATCH] = "no_match",
    [DEAD_GONE] = "gone",
    [DEAD_MAILBOX_FULL] = "mailbox_full",
    [DEAD_DROPPED] = "dropped",
    [DEAD_LATE_REPLY] = "late_reply",
    [DEAD_WRONG_REPLY] = "wrong_reply",
    [DEAD_UNKNOWN_DEATH] = "unknown_death",
    [DEAD_LOOP] = "loop",
    [DEAD_NO_MEMORY] = "no_memory",
    [DEAD_JOB] = "job",
    [DEAD_ERROR] = "error",
    [DEAD_CRASH] = "crash",
};

const char *dead_letter_reason_to_string(enum dead_letter_reason reason)
{
    return REASONS[reason];
}

enum dead_letter_queue dead_letter_queue_of(enum dead_letter_reason reason)
{
    return reason == DEAD_ERROR || reason == DEAD_CRASH ? DEAD_ERRORS : DEAD_LETTERS;
}

#define letter_of(node, member) list_entry(node, struct dead_letter, member)

void dead_letter_free(struct dead_letter *letter)
{
    if (!letter)
        return;
    assert(!list_linked(&letter->link));
    if (letter->row != 0 && letter->letters && letter->letters->drop_row)
        letter->letters->drop_row(letter->letters->userdata, letter->row);
    share_unref(letter->share);
    for (size_t i = 0; i < letter->n_deaths; i++)
        death_unref(letter->deaths[i]);
    payload_deinit(&letter->payload);
    free(letter);
}

/* Appends bytes and a NUL at *end. */
static char *append(char **end, const void *bytes, size_t size)
{
    char *start = *end;

    if (size > 0)
        memcpy(start, bytes, size);
    start[size] = '\0';
    *end += size + 1;
    return start;
}

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static char *append_text(char **end, const char *text)
{
    return text ? append(end, text, strlen(text)) : NULL;
}

static void copy_texts(struct dead_letter *letter, const struct dead_letter *like)
{
    const struct topic *topic = &like->topic;
    char *end = (char *)(letter + 1);

    letter->sender = append_text(&end, like->sender);
    letter->recipient = append_text(&end, like->recipient);
    letter->job = append_text(&end, like->job);
    letter->text = append_text(&end, like->text);
    letter->tags = append_text(&end, like->tags);
    letter->traceparent = append_text(&end, like->traceparent);
    letter->topic.type = append(&end, topic->type, topic->type_size);
    if (topic->key)
        letter->topic.key = append(&end, topic->key, topic->key_size);
}

static enum attempt_cause cause_of(const struct dead_letter *like)
{
    if (like->cause != ATTEMPT_CAUSE_NONE || like->n_deaths == 0)
        return like->cause;
    return attempt_cause_from_string(
        death_cause_to_string(like->deaths[like->n_deaths - 1]->cause));
}

/* The memory of a letter, without the payload, and without stacks, which have a bound of their own.
 */
static size_t base_memory(const struct dead_letter *letter, size_t texts)
{
    size_t memory = sizeof(*letter) + texts;

    for (size_t i = 0; i < letter->n_deaths; i++)
        memory +=
            sizeof(struct death) + letter->deaths[i]->state_size + letter->deaths[i]->stderr_size;
    return memory;
}

static struct dead_letter *letter_new(const struct dead_letter *like)
{
    const size_t texts = text_size(like->sender) + text_size(like->recipient) +
                         text_size(like->job) + text_size(like->text) + text_size(like->tags) +
                         text_size(like->traceparent) + like->topic.type_size +
                         like->topic.key_size + 2;
    struct dead_letter *letter = calloc(1, sizeof(*letter) + texts);

    if (!letter)
        return NULL;
    *letter = *like;
    list_init(&letter->link);
    list_init(&letter->share_link);
    list_init(&letter->blob_link);
    if (letter->at == 0)
        letter->at = clock_realtime();
    letter->cause = cause_of(like);
    letter->payload = (struct payload)PAYLOAD_NULL;
    copy_texts(letter, like);
    for (size_t i = 0; i < letter->n_deaths; i++)
        (void)death_ref(letter->deaths[i]);
    letter->memory = base_memory(letter, texts);
    return letter;
}

void dead_letters_init(struct dead_letters *letters, uint64_t max, uint64_t memory_max)
{
    *letters = (struct dead_letters){.max = max, .memory_max = memory_max};
    for (unsigned i = 0; i < _DEAD_N_QUEUES; i++)
        list_init(&letters->rings[i]);
    list_init(&letters->cursors);
    letters->tally = &letters->own_tally;
    shares_init(&letters->shares);
}

void dead_letters_resume(struct dead_letters *letters, struct dead_letter_tally *kept)
{
    if (kept->last_id > DEAD_LETTER_ID_MAX)
        kept->last_id = 0;
    letters->tally = kept;
    letters->inherited_id = kept->last_id;
}

static void link_blob(struct dead_letter *letter)
{
    if (letter->payload.fd < 0)
        return;
    list_push_back(&letter->share->entries[DEAD_SHARE_BLOBS], &letter->blob_link);
    share_add(letter->share, DEAD_SHARE_BLOBS, 1);
}

static void unlink_blob(struct dead_letter *letter)
{
    if (!list_linked(&letter->blob_link))
        return;
    list_unlink(&letter->blob_link);
    share_sub(letter->share, DEAD_SHARE_BLOBS, 1);
}

void dead_letter_take(struct dead_letters *letters, struct dead_letter *letter)
{
    unlink_blob(letter);
    index_remove(&letters->by_id, &letter->by_id);
    if (letter->job)
        index_remove(&letters->by_job, &letter->by_job);
    list_cursors_pass(&letters->cursors, &letter->link);
    list_unlink(&letter->link);
    list_unlink(&letter->share_link);
    share_sub(letter->share, dead_letter_queue_of(letter->reason), 1);
    share_sub(letter->share, DEAD_SHARE_MEMORY, letter->memory);
}

static void remove_letter(struct dead_letters *letters, struct dead_letter *letter)
{
    dead_letter_take(letters, letter);
    dead_letter_free(letter);
}

void dead_letters_deinit(struct dead_letters *letters)
{
    list_cursors_end(&letters->cursors);
    for (unsigned queue = 0; queue < _DEAD_N_QUEUES; queue++)
        list_for_each_entry_safe (letter, &letters->rings[queue], struct dead_letter, link)
            remove_letter(letters, letter);
    shares_deinit(&letters->shares);
    index_deinit(&letters->by_id);
    index_deinit(&letters->by_job);
}

static void drop_payload(struct dead_letter *letter)
{
    unlink_blob(letter);
    letter->payload_dropped = letter->payload_size > 0;
    letter->memory -= (size_t)letter->payload.size;
    share_sub(letter->share, DEAD_SHARE_MEMORY, letter->payload.size);
    payload_deinit(&letter->payload);
}

/* The oldest letter of a share in that ring, or NULL. */
static struct dead_letter *oldest_in(const struct share *share, unsigned queue)
{
    return list_first_entry(&share->entries[queue], struct dead_letter, share_link);
}

static struct dead_letter *oldest_of(const struct share *share)
{
    struct dead_letter *dead = oldest_in(share, DEAD_LETTERS);
    struct dead_letter *error = oldest_in(share, DEAD_ERRORS);

    if (!dead || !error)
        return dead ? dead : error;
    return dead->id < error->id ? dead : error;
}

static void evict_letter(struct dead_letters *letters, struct dead_letter *letter)
{
    remove_letter(letters, letter);
    letters->tally->n_evicted++;
}

/* Evicts letters down to the bounds. */
static void evict(struct dead_letters *letters)
{
    struct shares *shares = &letters->shares;

    while (shares->used[DEAD_SHARE_BLOBS] > DEAD_LETTER_BLOBS_MAX) {
        struct share *share = share_victim(shares, DEAD_SHARE_BLOBS);
        drop_payload(letter_of(list_first(&share->entries[DEAD_SHARE_BLOBS]), blob_link));
    }
    for (unsigned queue = 0; queue < _DEAD_N_QUEUES; queue++)
        while (shares->used[queue] > letters->max)
            evict_letter(letters, oldest_in(share_victim(shares, queue), queue));
    while (shares->used[DEAD_SHARE_MEMORY] > letters->memory_max)
        evict_letter(letters, oldest_of(share_victim(shares, DEAD_SHARE_MEMORY)));
}

void dead_letters_resize(struct dead_letters *letters, uint64_t max, uint64_t memory_max)
{
    letters->max = max;
    letters->memory_max = memory_max;
    evict(letters);
}

/* A new letter goes to the end; only for one that is put back the position is searched. */
static void link_in_order(struct dead_letters *letters, struct dead_letter *letter)
{
    const enum dead_letter_queue queue = dead_letter_queue_of(letter->reason);
    struct list *ring = &letters->rings[queue], *before = ring->prev;
    struct list *own = &letter->share->entries[queue], *own_before = own->prev;

    while (before != ring && letter_of(before, link)->id > letter->id)
        before = before->prev;
    list_insert_between(&letter->link, before, before->next);
    while (own_before != own && letter_of(own_before, share_link)->id > letter->id)
        own_before = own_before->prev;
    list_insert_between(&letter->share_link, own_before, own_before->next);
}

void dead_letter_put(struct dead_letters *letters, struct dead_letter *letter)
{
    link_in_order(letters, letter);
    index_add(&letters->by_id, &letter->by_id, letter->id);
    if (letter->job)
        index_add(&letters->by_job, &letter->by_job, hash_bytes(letter->job, strlen(letter->job)));
    share_add(letter->share, dead_letter_queue_of(letter->reason), 1);
    share_add(letter->share, DEAD_SHARE_MEMORY, letter->memory);
    link_blob(letter);
    evict(letters);
}

struct dead_letter *dead_letter_find(const struct dead_letters *letters, uint64_t id)
{
    return index_find_entry(&letters->by_id, id, struct dead_letter, by_id);
}

struct dead_letter *dead_letter_of_job(const struct dead_letters *letters, const char *job)
{
    const uint64_t hash = hash_bytes(job, strlen(job));
    struct dead_letter *last = NULL;

    index_for_each_entry (letter, &letters->by_job, hash, struct dead_letter, by_job)
        if (strcmp(letter->job, job) == 0 && (!last || letter->id > last->id))
            last = letter;
    return last;
}

/* Copies a small blob, since a descriptor costs more than its bytes. On failure it stays a blob. */
static void copy_blob(struct payload *payload)
{
    const size_t size = (size_t)payload->size;
    uint8_t *copy;

    if (payload->fd < 0 || payload->size > DEAD_LETTER_COPY_MAX || size <= PAYLOAD_SMALL)
        return;
    copy = malloc(size);
    if (!copy)
        return;
    if (pread(payload->fd, copy, size, 0) != (ssize_t)size) {
        free(copy);
        return;
    }
    payload_deinit(payload);
    payload->heap = copy;
    payload->size = size;
}

static void set_payload(const struct dead_letters *letters, struct dead_letter *letter,
                        struct payload *payload)
{
    if (!letter->payload_dropped)
        letter->payload_size = payload->size;
    if (payload->size > letters->memory_max ||
        letter->memory > letters->memory_max - payload->size) {
        letter->payload_dropped = letter->payload_size > 0;
        payload_deinit(payload);
        return;
    }
    copy_blob(payload);
    letter->memory += (size_t)payload->size;
    payload_move(&letter->payload, payload);
}

/* The share of a job's submitter; else of the sender's group, or if there is none, of the
 * recipient's. Jobs of root, among them those of schedules, belong to their group. */
static struct share *share_for(struct dead_letters *letters, const struct dead_letter *letter)
{
    const char *owner = letter->sender;
    char user[32];

    if (letter->reason == DEAD_JOB && letter->submitter_uid != 0) {
        (void)snprintf(user, sizeof(user), "(user %u)", (unsigned)letter->submitter_uid);
        owner = user;
    } else if (!owner || *owner == '(') {
        owner = letter->recipient ? letter->recipient : "";
    }
    return share_get(&letters->shares, owner, share_owner_size(owner));
}

uint64_t dead_letter_restore(struct dead_letters *letters, const struct dead_letter *like,
                             struct payload *payload)
{
    const uint64_t id = like->id > 0 ? like->id : dead_letter_reserve_id(letters);
    struct dead_letter *letter = letter_new(like);

    if (letters->tally->last_id < id)
        letters->tally->last_id = id;
    if (letter)
        letter->share = share_for(letters, letter);
    if (!letter || !letter->share) {
        dead_letter_free(letter);
        if (payload)
            payload_deinit(payload);
        return 0;
    }
    letter->id = id;
    letter->letters = letters;
    if (payload)
        set_payload(letters, letter, payload);
    dead_letter_put(letters, letter);
    return id;
}

uint64_t dead_letter_add(struct dead_letters *letters, const struct dead_letter *like,
                         struct payload *payload)
{
    letters->tally->counts[like->reason]++;
    return dead_letter_restore(letters, like, payload);
}
