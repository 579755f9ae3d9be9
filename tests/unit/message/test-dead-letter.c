/* SPDX-License-Identifier: MIT */
#include "supervisor/message/dead-letter/dead-letter.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>

static struct death_log deaths;
static struct dead_letters letters;

#define ANY &(struct dead_letter_filter)DEAD_LETTER_FILTER_ANY

static void setup(void)
{
    death_log_init(&deaths, 10);
    dead_letters_init(&letters, 10, 1 << 20);
}

static void teardown(void)
{
    dead_letters_deinit(&letters);
    ck_assert_uint_eq(letters.shares.used[DEAD_SHARE_MEMORY], 0);
    ck_assert_uint_eq(letters.shares.used[DEAD_SHARE_BLOBS], 0);
    death_log_deinit(&deaths);
}

static struct dead_letter facts(enum dead_letter_reason reason)
{
    return (struct dead_letter){
        .reason = reason,
        .sender = "shop/1",
        .recipient = "stock/0",
        .sender_ref = 7,
        .recipient_ref = 9,
        .topic = {.type = "order.created", .type_size = 13, .key = "k", .key_size = 1},
        .message = 42,
        .text = "why",
    };
}

static uint64_t add(enum dead_letter_reason reason, const char *bytes)
{
    struct payload payload = PAYLOAD_NULL;
    const struct dead_letter about = facts(reason);

    ck_assert_int_eq(payload_set(&payload, bytes, strlen(bytes)), 0);
    return dead_letter_add(&letters, &about, &payload);
}

/* Ids of what matches, as text such as "1 3 4". */
static const char *ids(const struct dead_letter_filter *filter)
{
    static char text[256];
    struct dead_letter_walk walk;
    const struct dead_letter *letter;

    *text = '\0';
    dead_letter_walk_begin(&walk, &letters, false);
    while ((letter = dead_letter_walk_next(&walk))) {
        char id[24];

        if (!dead_letter_matches(letter, filter))
            continue;
        (void)snprintf(id, sizeof(id), "%s%llu", *text ? " " : "", (unsigned long long)letter->id);
        strcat(text, id);
    }
    dead_letter_walk_end(&walk);
    return text;
}

/* Takes out what matches, in the middle of the walk. The number. */
static unsigned purge(const struct dead_letter_filter *filter)
{
    struct dead_letter_walk walk;
    struct dead_letter *letter;
    unsigned n = 0;

    dead_letter_walk_begin(&walk, &letters, true);
    while ((letter = dead_letter_walk_next(&walk))) {
        if (!dead_letter_matches(letter, filter))
            continue;
        dead_letter_take(&letters, letter);
        dead_letter_free(letter);
        n++;
    }
    dead_letter_walk_end(&walk);
    return n;
}

TEST(everything_about_a_letter_is_kept)
{
    struct dead_letter *letter = dead_letter_find(&letters, add(DEAD_UNHANDLED, "payload"));

    ck_assert_uint_eq(letter->id, 1);
    ck_assert_str_eq(letter->sender, "shop/1");
    ck_assert_str_eq(letter->recipient, "stock/0");
    ck_assert_str_eq(letter->text, "why");
    ck_assert_ptr_null(letter->job);
    ck_assert_uint_eq(letter->sender_ref, 7);
    ck_assert_uint_eq(letter->recipient_ref, 9);
    ck_assert_uint_eq(letter->message, 42);
    ck_assert_uint_eq(letter->topic.type_size, 13);
    ck_assert_mem_eq(letter->topic.type, "order.created", 13);
    ck_assert_uint_eq(letter->topic.key_size, 1);
    ck_assert_mem_eq(letter->topic.key, "k", 1);
    ck_assert_uint_eq(letter->payload.size, 7);
    ck_assert_mem_eq(payload_data(&letter->payload), "payload", 7);
    ck_assert(!letter->payload_dropped);
    ck_assert_uint_gt(letter->at, 0);
}

TEST(no_key_stays_different_from_an_empty_one_and_no_sender_from_an_unnamed_one)
{
    struct dead_letter about = facts(DEAD_GONE);

    about.topic.key = NULL;
    about.topic.key_size = 0;
    about.sender = NULL;
    const struct dead_letter *letter =
        dead_letter_find(&letters, dead_letter_add(&letters, &about, NULL));
    ck_assert_ptr_null(letter->topic.key);
    ck_assert_ptr_null(letter->sender);
    about.topic.key = "";
    letter = dead_letter_find(&letters, dead_letter_add(&letters, &about, NULL));
    ck_assert_ptr_nonnull(letter->topic.key);
    ck_assert_uint_eq(letter->topic.key_size, 0);
}

TEST(errors_and_crashes_go_to_the_error_queue_everything_else_to_the_dead_letters)
{
    dead_letters_resize(&letters, 100, 1 << 20);
    for (unsigned reason = 0; reason < _DEAD_N_REASONS; reason++)
        add((enum dead_letter_reason)reason, "");
    ck_assert_uint_eq(letters.shares.used[DEAD_ERRORS], 2);
    ck_assert_uint_eq(letters.shares.used[DEAD_LETTERS], _DEAD_N_REASONS - 2);
    for (unsigned reason = 0; reason < _DEAD_N_REASONS; reason++)
        ck_assert_uint_eq(letters.tally->counts[reason], 1);
}

TEST(a_full_ring_drops_its_oldest_and_leaves_the_other_alone)
{
    const struct dead_letter_filter errors = {.queue = DEAD_ERRORS, .reason = -1};

    add(DEAD_ERROR, "");
    for (unsigned i = 0; i < 12; i++)
        add(DEAD_GONE, "");
    ck_assert_uint_eq(letters.shares.used[DEAD_LETTERS], 10);
    ck_assert_str_eq(ids(ANY), "1 4 5 6 7 8 9 10 11 12 13");
    ck_assert_str_eq(ids(&errors), "1");
    ck_assert_uint_eq(letters.tally->counts[DEAD_GONE], 12);
    ck_assert_uint_eq(letters.tally->n_evicted, 2);
}

TEST(memory_is_bounded_over_both_rings_and_the_oldest_of_both_goes_first)
{
    static char large[100000];

    memset(large, 'x', sizeof(large) - 1);
    dead_letters_resize(&letters, 10, 350000);
    add(DEAD_ERROR, large);
    add(DEAD_GONE, large);
    add(DEAD_ERROR, large);
    ck_assert_str_eq(ids(ANY), "1 2 3");
    add(DEAD_GONE, large);
    ck_assert_str_eq(ids(ANY), "2 3 4");
    ck_assert_uint_le(letters.shares.used[DEAD_SHARE_MEMORY], 350000);
}

TEST(a_payload_larger_than_the_whole_memory_is_dropped_and_the_letter_says_so)
{
    static char large[100000];

    memset(large, 'x', sizeof(large) - 1);
    dead_letters_resize(&letters, 10, 50000);
    add(DEAD_GONE, "small");
    const struct dead_letter *letter = dead_letter_find(&letters, add(DEAD_GONE, large));
    ck_assert(letter->payload_dropped);
    ck_assert_uint_eq(letter->payload_size, sizeof(large) - 1);
    ck_assert_uint_eq(letter->payload.size, 0);
    ck_assert_str_eq(ids(ANY), "1 2");
}

TEST(smaller_bounds_take_effect_at_once)
{
    for (unsigned i = 0; i < 5; i++)
        add(DEAD_GONE, "");
    dead_letters_resize(&letters, 2, 1 << 20);
    ck_assert_str_eq(ids(ANY), "4 5");
    dead_letters_resize(&letters, 2, 0);
    ck_assert_str_eq(ids(ANY), "");
    add(DEAD_GONE, "");
    ck_assert_str_eq(ids(ANY), "");
    ck_assert_uint_eq(letters.tally->counts[DEAD_GONE], 6);
}

static uint64_t add_blob_from(const char *sender)
{
    struct payload payload = PAYLOAD_NULL;
    struct dead_letter about = facts(DEAD_GONE);

    about.sender = sender;
    payload_set_blob(&payload, open("/dev/null", O_RDONLY | O_CLOEXEC), 1000);
    ck_assert_int_ge(payload.fd, 0);
    return dead_letter_add(&letters, &about, &payload);
}

TEST(the_oldest_blobs_beyond_their_bound_lose_their_payload_and_descriptor)
{
    dead_letters_resize(&letters, 1000, 1 << 30);
    uint64_t first = add_blob_from("shop/1");
    int fd = dead_letter_find(&letters, first)->payload.fd;
    for (unsigned i = 0; i < DEAD_LETTER_BLOBS_MAX; i++)
        add_blob_from("shop/1");
    const struct dead_letter *letter = dead_letter_find(&letters, first);
    ck_assert(letter->payload_dropped);
    ck_assert_uint_eq(letter->payload_size, 1000);
    ck_assert_int_eq(letter->payload.fd, -1);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    ck_assert(!dead_letter_find(&letters, first + 1)->payload_dropped);
    ck_assert_uint_eq(letters.shares.used[DEAD_SHARE_BLOBS], DEAD_LETTER_BLOBS_MAX);
}

static uint64_t add_from(const char *sender, const char *recipient, enum dead_letter_reason reason)
{
    struct dead_letter about = facts(reason);

    about.sender = sender;
    about.recipient = recipient;
    return dead_letter_add(&letters, &about, NULL);
}

TEST(a_flood_of_one_group_displaces_only_its_own_letters)
{
    add_from("shop/0", "stock/0", DEAD_GONE);
    add_from(NULL, "stock/0", DEAD_JOB);
    add_from("@7", "stock/0", DEAD_GONE);
    add_from("@8", "stock/0", DEAD_GONE);
    for (unsigned i = 0; i < 100; i++)
        add_from(i % 2 ? "mill/0" : "mill/1", "stock/0", DEAD_UNHANDLED);
    ck_assert_str_eq(ids(ANY), "1 2 3 4 99 100 101 102 103 104");
    for (unsigned i = 0; i < 100; i++)
        add_from("(gone)", "mill/0", DEAD_UNHANDLED);
    ck_assert_str_eq(ids(ANY), "1 2 3 4 199 200 201 202 203 204");
    for (unsigned i = 0; i < 100; i++)
        add_from("shop/1", "mill/0", DEAD_UNHANDLED);
    ck_assert_str_eq(ids(&(struct dead_letter_filter){.queue = -1, .reason = -1, .sender = "@7"}),
                     "3");
    ck_assert_str_eq(ids(&(struct dead_letter_filter){.queue = -1, .reason = DEAD_JOB}), "2");
}

static uint64_t add_job_of(uid_t uid)
{
    return dead_letter_add(&letters,
                           &(struct dead_letter){.reason = DEAD_JOB,
                                                 .recipient = "stock/0",
                                                 .topic = {.type = ""},
                                                 .submitter_uid = uid},
                           NULL);
}

TEST(a_flood_of_dead_jobs_of_one_user_displaces_only_its_own)
{
    add_job_of(1000);
    add_job_of(0);
    add_from(NULL, "stock/0", DEAD_GONE);
    for (unsigned i = 0; i < 100; i++)
        add_job_of(1001);
    ck_assert_str_eq(ids(ANY), "1 2 3 97 98 99 100 101 102 103");
}

TEST(a_flood_of_large_letters_displaces_only_the_floods_own)
{
    struct payload payload = PAYLOAD_NULL;
    struct dead_letter about = facts(DEAD_UNHANDLED);
    static const char ZEROS[1 << 17];

    dead_letters_resize(&letters, 1000, 1 << 20);
    add(DEAD_GONE, "kept");
    about.sender = "mill/0";
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(payload_set(&payload, ZEROS, sizeof(ZEROS)), 0);
        dead_letter_add(&letters, &about, &payload);
    }
    ck_assert_ptr_nonnull(dead_letter_find(&letters, 1));
    ck_assert_uint_le(letters.shares.used[DEAD_SHARE_MEMORY], 1 << 20);
}

TEST(a_flood_of_blobs_takes_only_its_own_payloads)
{
    dead_letters_resize(&letters, 1000, 1 << 30);
    add_blob_from("shop/1");
    for (unsigned i = 0; i < 2 * DEAD_LETTER_BLOBS_MAX; i++)
        add_blob_from("mill/0");
    ck_assert(!dead_letter_find(&letters, 1)->payload_dropped);
    ck_assert_uint_eq(letters.shares.used[DEAD_SHARE_BLOBS], DEAD_LETTER_BLOBS_MAX);
}

TEST(blobs_of_moderate_size_are_copied_and_all_kept)
{
    const struct dead_letter about = facts(DEAD_JOB);
    struct payload payload = PAYLOAD_NULL;
    char bytes[40000];

    memset(bytes, 'x', sizeof(bytes));
    dead_letters_resize(&letters, 1000, 1 << 30);
    for (unsigned i = 0; i < 200; i++) {
        int fd = memfd_create("payload", MFD_CLOEXEC);
        ck_assert_int_eq(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
        payload_set_blob(&payload, fd, sizeof(bytes));
        dead_letter_add(&letters, &about, &payload);
    }
    for (uint64_t id = 1; id <= 200; id++) {
        const struct dead_letter *letter = dead_letter_find(&letters, id);
        ck_assert(!letter->payload_dropped);
        ck_assert_uint_eq(letter->payload.size, sizeof(bytes));
        ck_assert_mem_eq(payload_data(&letter->payload), bytes, sizeof(bytes));
    }
    ck_assert_uint_eq(letters.shares.used[DEAD_SHARE_BLOBS], 0);
    death_log_deinit(&deaths);
}

TEST(a_letter_that_was_taken_is_not_found_and_can_be_put_back_in_its_place)
{
    add(DEAD_GONE, "one");
    add(DEAD_GONE, "two");
    add(DEAD_ERROR, "three");
    add(DEAD_GONE, "four");
    struct dead_letter *letter = dead_letter_find(&letters, 2);
    dead_letter_take(&letters, letter);
    ck_assert_str_eq(ids(ANY), "1 3 4");
    ck_assert_ptr_null(dead_letter_find(&letters, 2));
    dead_letter_put(&letters, letter);
    ck_assert_str_eq(ids(ANY), "1 2 3 4");
    dead_letter_take(&letters, letter);
    dead_letter_free(letter);
    ck_assert_str_eq(ids(ANY), "1 3 4");
}

TEST(a_blob_that_was_put_back_counts_again)
{
    struct dead_letter *letter = dead_letter_find(&letters, add_blob_from("shop/1"));

    dead_letter_take(&letters, letter);
    ck_assert_uint_eq(letters.shares.used[DEAD_SHARE_BLOBS], 0);
    death_log_deinit(&deaths);
    ck_assert_uint_eq(letters.shares.used[DEAD_SHARE_MEMORY], 0);
    dead_letter_put(&letters, letter);
    ck_assert_uint_eq(letters.shares.used[DEAD_SHARE_BLOBS], 1);
}

#define FILTER(reason_, ...)                                                                       \
    {                                                                                              \
        .queue = -1, .reason = (reason_), __VA_ARGS__                                              \
    }

TEST(filters_narrow_and_add_up)
{
    static const struct {
        struct dead_letter_filter filter;
        const char *ids;
    } cases[] = {
        {FILTER(-1, .recipient = "stock"), "1 2 3 5"},
        {FILTER(-1, .recipient = "stock/0"), "1 2 3"},
        {FILTER(DEAD_UNHANDLED, .recipient = "stock/0"), "2"},
        {FILTER(-1, .sender = "shop"), "1 2 3"},
        {FILTER(-1, .type = "order"), "1 2 3"},
        {FILTER(-1, .type = "order.created.now"), ""},
        {FILTER(-1, .job = "j-1"), "5"},
        {FILTER(-1, .cause = ATTEMPT_CAUSE_OOM), "5"},
        {FILTER(-1, .cause = ATTEMPT_CAUSE_EXIT), ""},
    };
    struct dead_letter about = facts(DEAD_GONE);
    struct dead_letter_filter late = DEAD_LETTER_FILTER_ANY;

    add(DEAD_GONE, "");      /* 1 */
    add(DEAD_UNHANDLED, ""); /* 2 */
    add(DEAD_ERROR, "");     /* 3 */
    about.recipient = "stocks";
    about.sender = NULL;
    about.topic = (struct topic){.type = "orders", .type_size = 6};
    dead_letter_add(&letters, &about, NULL); /* 4 */
    about.reason = DEAD_JOB;
    about.job = "j-1";
    about.cause = ATTEMPT_CAUSE_OOM;
    about.recipient = "stock";
    dead_letter_add(&letters, &about, NULL); /* 5 */
    for (size_t i = 0; i < ELEMENTS(cases); i++)
        ck_assert_msg(strcmp(ids(&cases[i].filter), cases[i].ids) == 0, "filter %zu: %s", i,
                      ids(&cases[i].filter));
    late.since = dead_letter_find(&letters, 5)->at + 1;
    ck_assert_str_eq(ids(&late), "");
}

TEST(a_dead_job_keeps_its_death_reports_for_as_long_as_it_is_kept)
{
    struct dead_letter about = facts(DEAD_JOB);
    struct death *death = death_new(&deaths);

    ck_assert_ptr_nonnull(death);
    about.deaths[about.n_deaths++] = death;
    ck_assert_uint_gt(dead_letter_add(&letters, &about, NULL), 0);
    ck_assert_uint_eq(death->references, 2);
    purge(ANY);
    ck_assert_uint_eq(death->references, 1);
    death_unref(death);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
