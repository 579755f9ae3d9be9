/* SPDX-License-Identifier: MIT */
#include "supervisor/message/exchange/exchange-private.h"
#include "supervisor/message/exchange/exchange.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>
#include <unistd.h>

enum {
    A,
    B,
    C,
    N_ACTORS
};

static struct exchange exchange;
static struct exchange_subscriber actors[N_ACTORS];

static void begin(enum exchange_kind kind)
{
    exchange_init(&exchange, kind);
    for (unsigned i = 0; i < N_ACTORS; i++)
        exchange_subscriber_init(&actors[i], (UINT64_C(1) << 32) | i);
}

static void begin_patterns(void)
{
    begin(EXCHANGE_PATTERN);
}

static void end(void)
{
    exchange_deinit(&exchange);
    for (unsigned i = 0; i < N_ACTORS; i++) {
        ck_assert(list_empty(&actors[i].subscriptions));
        ck_assert_uint_eq(actors[i].n_subscriptions, 0);
        ck_assert_uint_eq(actors[i].effort, 0);
    }
    ck_assert_uint_eq(exchange.buckets.n_entries, 0);
    ck_assert_uint_eq(exchange.owned.n_entries, 0);
    ck_assert(list_empty(&exchange.patterns));
    ck_assert_uint_eq(exchange.n_subscriptions, 0);
    ck_assert_uint_eq(exchange.effort, 0);
}

/* A key of NULL is none. */
static struct topic topic(const char *type, const char *key)
{
    return (struct topic){.type = type,
                          .type_size = (uint32_t)strlen(type),
                          .key = key,
                          .key_size = key ? (uint32_t)strlen(key) : 0};
}

static void subscribe(unsigned actor, const char *type, const char *key)
{
    const struct topic wanted = topic(type, key);

    ck_assert_int_eq(exchange_subscribe(&exchange, &actors[actor], &wanted), 0);
}

static bool unsubscribe(unsigned actor, const char *type, const char *key)
{
    const struct topic wanted = topic(type, key);

    return exchange_unsubscribe(&exchange, &actors[actor], &wanted);
}

static char delivered[256];

static void deliver(uint64_t actor)
{
    const size_t size = strlen(delivered);

    ck_assert_uint_lt(size, sizeof(delivered) - 1);
    delivered[size] = (char)('A' + (uint32_t)actor);
}

/* In pieces of at most `max`. */
static void deliver_pieces(const struct topic *about, size_t max)
{
    struct exchange_match matches[100];
    uint64_t after = 0;
    size_t n;

    memset(delivered, 0, sizeof(delivered));
    if (exchange_picks_one(&exchange)) {
        after = exchange_pick(&exchange, about);
        if (after != 0)
            deliver(after);
        return;
    }
    do {
        n = exchange_match(&exchange, about, after, matches, max);
        for (size_t i = 0; i < n; i++)
            deliver(matches[i].actor);
        after = n > 0 ? matches[n - 1].sequence : 0;
    } while (n == max);
}

/* Who gets it, as messages, in order; "" = no match. */
static const char *route(const char *type, const char *key)
{
    const struct topic about = topic(type, key);
    char once[sizeof(delivered)];

    deliver_pieces(&about, 100);
    memcpy(once, delivered, sizeof(once));
    for (size_t max = 1; max < 8; max++) {
        deliver_pieces(&about, max);
        ck_assert_str_eq(delivered, once);
    }
    return delivered;
}

#define assert_route(type, key, who) ck_assert_str_eq(route(type, key), who)

TEST(C9_single_any_subscription_replaces_the_one_before_it)
{
    begin(EXCHANGE_SINGLE);
    assert_route("a", NULL, "");
    subscribe(A, "a", NULL);
    assert_route("b", "k", "A");
    subscribe(B, "x.y", "k");
    assert_route("a", NULL, "B");
    ck_assert_uint_eq(exchange.n_subscriptions, 1);
}

TEST(C9_single_unsubscribing_touches_only_ones_own)
{
    begin(EXCHANGE_SINGLE);
    subscribe(A, "a", NULL);
    subscribe(B, "b", NULL);
    ck_assert(!unsubscribe(A, "a", NULL));
    assert_route("a", NULL, "B");
    ck_assert(unsubscribe(B, "", NULL));
    assert_route("a", NULL, "");
    ck_assert(!unsubscribe(B, "", NULL));
}

TEST(C9_typed_single_has_one_subscriber_per_exact_type_whoever_owned_it)
{
    begin(EXCHANGE_TYPED_SINGLE);
    subscribe(A, "order", NULL);
    subscribe(B, "invoice", NULL);
    assert_route("order", NULL, "A");
    subscribe(B, "order", "key is of no matter");
    assert_route("order", NULL, "B");
    assert_route("invoice", "k", "B");
    ck_assert_uint_eq(exchange.n_subscriptions, 2);
    ck_assert(!unsubscribe(A, "order", NULL));
    ck_assert(unsubscribe(B, "order", NULL));
    assert_route("order", NULL, "");
}

TEST(C9_typed_single_prefers_the_exact_type_to_older_ancestors)
{
    begin(EXCHANGE_TYPED_SINGLE);
    subscribe(A, "", NULL);
    subscribe(B, "order", NULL);
    subscribe(C, "order.created", NULL);
    assert_route("order.created", NULL, "C");
    assert_route("order", NULL, "B");
}

TEST(C9_typed_single_else_takes_the_first_registered_ancestor_not_the_nearest)
{
    begin(EXCHANGE_TYPED_SINGLE);
    subscribe(A, "order.created", NULL);
    subscribe(B, "order", NULL);
    subscribe(C, "", NULL);
    assert_route("order.created.now", NULL, "A");
    ck_assert(unsubscribe(A, "order.created", NULL));
    subscribe(A, "order.created", NULL);
    assert_route("order.created.now", NULL, "B");
    assert_route("invoice", NULL, "C");
    ck_assert(unsubscribe(B, "order", NULL));
    assert_route("order.created.now", NULL, "C");
}

TEST(C9_typed_single_a_replacement_keeps_the_place_of_what_it_replaces)
{
    begin(EXCHANGE_TYPED_SINGLE);
    subscribe(A, "order", NULL);
    subscribe(B, "", NULL);
    subscribe(C, "order", NULL);
    assert_route("order.created", NULL, "C");
}

TEST(C9_typed_multi_delivers_to_all_of_the_type_and_its_ancestors_in_order_of_registration)
{
    begin(EXCHANGE_TYPED_MULTI);
    subscribe(C, "", NULL);
    subscribe(A, "order.created", NULL);
    subscribe(B, "order", NULL);
    subscribe(B, "order.created", NULL);
    subscribe(A, "order.deleted", NULL);
    assert_route("order.created", NULL, "CABB");
    assert_route("order", "k", "CB");
    assert_route("orders", NULL, "C");
    assert_route("", NULL, "C");
}

TEST(C9_typed_multi_replaces_per_actor_and_type)
{
    begin(EXCHANGE_TYPED_MULTI);
    subscribe(A, "order", NULL);
    subscribe(B, "order", NULL);
    subscribe(A, "order", "another key");
    assert_route("order", NULL, "AB");
    ck_assert_uint_eq(exchange.n_subscriptions, 2);
    ck_assert_uint_eq(actors[A].n_subscriptions, 1);
}

TEST(C9_removing_a_typed_subscription_needs_the_exact_type_and_is_ones_own)
{
    begin(EXCHANGE_TYPED_MULTI);
    subscribe(A, "order.created", NULL);
    subscribe(B, "order.created", NULL);
    ck_assert(!unsubscribe(A, "order", NULL));
    ck_assert(!unsubscribe(A, "", NULL));
    ck_assert(!unsubscribe(A, "order.created.now", NULL));
    ck_assert(unsubscribe(A, "order.created", NULL));
    ck_assert(!unsubscribe(A, "order.created", NULL));
    assert_route("order.created", NULL, "B");
}

TEST(C9_routing_key_a_subscription_without_key_matches_every_message)
{
    begin(EXCHANGE_ROUTING_KEY);
    subscribe(A, "order", NULL);
    assert_route("order", NULL, "A");
    assert_route("order", "", "A");
    assert_route("order.created", "k", "A");
    assert_route("invoice", "k", "");
}

TEST(C9_routing_key_a_message_without_key_matches_only_subscriptions_without_one)
{
    begin(EXCHANGE_ROUTING_KEY);
    subscribe(A, "order", "k");
    subscribe(B, "order", "");
    assert_route("order", NULL, "");
    assert_route("order", "", "B");
    assert_route("order", "k", "A");
    assert_route("order.created", "k", "A");
    assert_route("order", "other", "");
}

TEST(C9_routing_key_replaces_per_actor_type_and_key_a_null_key_included)
{
    begin(EXCHANGE_ROUTING_KEY);
    subscribe(A, "order", "k");
    subscribe(A, "order", NULL);
    subscribe(A, "order", "");
    subscribe(B, "order", "k");
    ck_assert_uint_eq(exchange.n_subscriptions, 4);
    subscribe(A, "order", NULL);
    subscribe(A, "order", "k");
    subscribe(A, "order", "");
    ck_assert_uint_eq(exchange.n_subscriptions, 4);
    assert_route("order", "k", "AAB");
    ck_assert(!unsubscribe(B, "order", NULL));
    ck_assert(unsubscribe(A, "order", NULL));
    assert_route("order", "k", "AB");
    ck_assert(unsubscribe(A, "order", "k"));
    assert_route("order", "k", "B");
    assert_route("order", "", "A");
}

TEST(C9_keys_with_bytes_of_any_value_are_told_apart)
{
    const struct topic one = {.type = "t", .type_size = 1, .key = "a\0b", .key_size = 3};
    const struct topic two = {.type = "t", .type_size = 1, .key = "a\0c", .key_size = 3};

    begin(EXCHANGE_ROUTING_KEY);
    ck_assert_int_eq(exchange_subscribe(&exchange, &actors[A], &one), 0);
    ck_assert_int_eq(exchange_subscribe(&exchange, &actors[B], &two), 0);
    deliver_pieces(&two, 10);
    ck_assert_str_eq(delivered, "B");
    assert_route("t", "a", "");
}

TEST(in_routing_keys_stars_and_hashes_stand_for_themselves)
{
    begin(EXCHANGE_ROUTING_KEY);
    subscribe(A, "t", "a.*");
    subscribe(B, "t", "#");
    assert_route("t", "a.b", "");
    assert_route("t", "a.*", "A");
    assert_route("t", "#", "B");
}

TEST(patterns_match_keys_but_never_a_message_without_one)
{
    subscribe(A, "t", "eu.*.high");
    subscribe(B, "t", "eu.#");
    subscribe(C, "t", "eu.fr.high");
    assert_route("t", "eu.fr.high", "ABC");
    assert_route("t", "eu.de.high", "AB");
    assert_route("t.child", "eu", "B");
    assert_route("t", "eu.*.high", "AB"); /* once, although it is spelled like the pattern */
    assert_route("t", "us.fr.high", "");
    assert_route("other", "eu.fr.high", "");
    assert_route("t", NULL, "");
}

TEST(a_pattern_is_replaced_and_removed_like_any_other_key)
{
    subscribe(A, "t", "a.*");
    subscribe(A, "t", "a.*");
    subscribe(B, "t", "a.*");
    assert_route("t", "a.b", "AB");
    ck_assert(!unsubscribe(A, "t", "a.b"));
    ck_assert(unsubscribe(A, "t", "a.*"));
    assert_route("t", "a.b", "B");
    ck_assert(unsubscribe(B, "t", "a.*"));
    assert_route("t", "a.b", "");
    ck_assert(list_empty(&exchange.patterns));
}

static const struct {
    const char *pattern, *key;
    bool matches;
} PATTERNS[] = {
    {"*", "", false},   {"a.#", "ab", false}, {"*", ".", false}, /* two empty words */
    {"*.*", ".", true}, {"a*", "ab", false}, /* only a whole word is a wildcard */
    {"a.", "a.", true}, {"a.", "a", false},   {"a.*", "a.", true},
};

/* Words of any length; those of one character are below. */
TEST(a_wildcard_is_a_whole_word_and_words_may_be_empty, .n = ELEMENTS(PATTERNS))
{
    const char *pattern = PATTERNS[_i].pattern, *key = PATTERNS[_i].key;

    ck_assert_msg(exchange_pattern_matches(pattern, (uint32_t)strlen(pattern), key,
                                           (uint32_t)strlen(key)) == PATTERNS[_i].matches,
                  "'%s' and '%s'", pattern, key);
}

/* As the rules say it; one character a word. */
static bool matches_by_the_rules(const char *pattern, const char *key)
{
    if (*pattern == '\0')
        return *key == '\0';
    if (*pattern == '#')
        return matches_by_the_rules(pattern + 1, key) ||
               (*key != '\0' && matches_by_the_rules(pattern, key + 1));
    return *key != '\0' && (*pattern == '*' || *pattern == *key) &&
           matches_by_the_rules(pattern + 1, key + 1);
}

static void random_words(char *words, char *dotted, const char *alphabet)
{
    const size_t n = (size_t)rand() % 8, n_envelopes = strlen(alphabet);

    for (size_t i = 0; i < n; i++) {
        words[i] = alphabet[(size_t)rand() % n_envelopes];
        dotted[2 * i] = words[i];
        dotted[2 * i + 1] = '.';
    }
    words[n] = '\0';
    dotted[n > 0 ? 2 * n - 1 : 0] = '\0';
}

TEST(any_pattern_matches_what_the_rules_say)
{
    srand(4711);
    for (unsigned i = 0; i < 200000; i++) {
        char pattern[8], key[8], pattern_text[16], key_text[16];

        random_words(pattern, pattern_text, "ab*##");
        random_words(key, key_text, "ab");
        ck_assert_msg(exchange_pattern_matches(pattern_text, (uint32_t)strlen(pattern_text),
                                               key_text, (uint32_t)strlen(key_text)) ==
                          matches_by_the_rules(pattern, key),
                      "'%s' and '%s'", pattern_text, key_text);
    }
}

/* The words that a `#` skips are in memory that cannot be read. */
TEST(a_hash_skips_words_without_reading_them)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *key = pages + page - 127;

    ck_assert(pages != MAP_FAILED);
    for (unsigned i = 0; i < TOPIC_KEY_MAX; i++)
        key[i] = i % 2 == 0 ? 'a' : '.';
    ck_assert_int_eq(mprotect(pages, page, PROT_NONE), 0);
    ck_assert(exchange_pattern_matches("#", 1, key, TOPIC_KEY_MAX));
    ck_assert(exchange_pattern_matches("#.a.*", 5, key, TOPIC_KEY_MAX));
    ck_assert(!exchange_pattern_matches("#.b", 3, key, TOPIC_KEY_MAX));
    ck_assert_int_eq(munmap(pages, 2 * page), 0);
}

TEST(the_effort_of_a_pattern_grows_with_what_is_between_two_hashes)
{
    ck_assert_uint_eq(exchange_pattern_effort("a.*.c", 5), 4);
    ck_assert_uint_eq(exchange_pattern_effort("#.c.d", 5), 4);
    ck_assert_uint_eq(exchange_pattern_effort("a.#", 3), 3);
    ck_assert_uint_eq(exchange_pattern_effort("#.c.#", 5), 4 + 128);
}

/* "#.c.INDEX.#": tried at every word of a key. */
static int subscribe_costly(unsigned actor, unsigned index)
{
    char key[32];

    (void)snprintf(key, sizeof(key), "#.c.%u.#", index);
    struct topic wanted = topic("t", key);
    return exchange_subscribe(&exchange, &actors[actor], &wanted);
}

TEST(what_patterns_cost_together_is_bounded_and_room_comes_with_those_that_go)
{
    unsigned n = 0;

    while (subscribe_costly(A, n) == 0)
        n++;
    ck_assert_uint_gt(n, 10);
    ck_assert_uint_lt(n, 1000);
    ck_assert_int_eq(subscribe_costly(A, n), EXCHANGE_E_FULL);
    ck_assert_int_eq(subscribe_costly(A, 0), 0); /* again */
    ck_assert_int_eq(subscribe_costly(B, n), 0); /* everybody has his share */
    subscribe(A, "t", "no.pattern");
    ck_assert(unsubscribe(A, "t", "#.c.0.#"));
    ck_assert_int_eq(subscribe_costly(A, n), 0);
}

TEST(only_whole_words_make_a_pattern)
{
    ck_assert(exchange_is_pattern("a.*", 3));
    ck_assert(exchange_is_pattern("#", 1));
    ck_assert(!exchange_is_pattern("a*.#b", 5));
    ck_assert(!exchange_is_pattern("", 0));
}

TEST(an_actor_that_is_gone_is_forgotten_by_every_exchange)
{
    struct exchange other;
    const struct topic all = topic("", NULL);

    exchange_init(&other, EXCHANGE_TYPED_MULTI);
    subscribe(A, "t", "a.*");
    subscribe(A, "t", NULL);
    subscribe(B, "t", "a.*");
    ck_assert_int_eq(exchange_subscribe(&other, &actors[A], &all), 0);
    ck_assert_uint_eq(actors[A].n_subscriptions, 3);
    exchange_forget(&actors[A]);
    assert_route("t", "a.b", "B");
    ck_assert_uint_eq(other.n_subscriptions, 0);
    exchange_deinit(&other);
}

TEST(an_actor_has_a_bounded_number_of_subscriptions_and_may_replace_at_the_bound)
{
    const struct topic one_more = topic("t", NULL), old = topic("t", "0");

    begin(EXCHANGE_ROUTING_KEY);
    for (unsigned i = 0; i < EXCHANGE_PER_ACTOR_MAX; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "%u", i);
        subscribe(A, "t", key);
    }
    ck_assert_int_eq(exchange_subscribe(&exchange, &actors[A], &one_more), EXCHANGE_E_FULL);
    ck_assert_int_eq(exchange_subscribe(&exchange, &actors[A], &old), 0);
    ck_assert_int_eq(exchange_subscribe(&exchange, &actors[B], &one_more), 0);
    assert_route("t", "77", "AB");
}

TEST(more_matches_than_fit_in_place_come_in_order_all_the_same)
{
    char expected[201] = "";

    for (unsigned i = 0; i < 100; i++) {
        char type[128] = "a";

        /* 50 ancestors, both actors each. */
        for (unsigned depth = i / 2; depth > 0; depth--)
            strcat(type, ".a");
        subscribe(i % 2 == 0 ? B : A, type, i % 3 == 0 ? NULL : "#");
        strcat(expected, i % 2 == 0 ? "B" : "A");
    }
    assert_route(
        "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."
        "a.a.a.a.a.a.a.a.a.a",
        "key", expected);
}

TEST(subscriptions_that_end_between_two_pieces_end_no_others)
{
    const struct topic about = topic("a", NULL);
    struct exchange_match matches[2];

    begin(EXCHANGE_TYPED_MULTI);
    subscribe(A, "a", NULL);
    subscribe(B, "a", NULL);
    subscribe(C, "a", NULL);
    ck_assert_uint_eq(exchange_match(&exchange, &about, 0, matches, 1), 1);
    ck_assert_uint_eq(exchange_match(&exchange, &about, matches[0].sequence, matches, 1), 1);
    ck_assert(unsubscribe(A, "a", NULL));
    ck_assert(unsubscribe(B, "a", NULL));
    subscribe(A, "", NULL); /* sees the rest, too */
    ck_assert_uint_eq(exchange_match(&exchange, &about, matches[0].sequence, matches, 2), 2);
    ck_assert_uint_eq(matches[0].actor, actors[C].actor);
    ck_assert_uint_eq(matches[1].actor, actors[A].actor);
}

/* ---- against a plain model ---- */

struct rule {
    unsigned actor;
    const char *type, *key;
};

static struct rule rules[64];
static unsigned n_rules;

static bool same_key(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether `rule` is what a subscription of this actor, type and key replaces. */
static bool replaces(const struct rule *rule, unsigned actor, const char *type, const char *key)
{
    switch (exchange.kind) {
    case EXCHANGE_SINGLE:
        return true;
    case EXCHANGE_TYPED_SINGLE:
        return strcmp(rule->type, type) == 0;
    case EXCHANGE_TYPED_MULTI:
        return rule->actor == actor && strcmp(rule->type, type) == 0;
    default:
        return rule->actor == actor && strcmp(rule->type, type) == 0 && same_key(rule->key, key);
    }
}

static void model_subscribe(unsigned actor, const char *type, const char *key)
{
    for (unsigned i = 0; i < n_rules; i++)
        if (replaces(&rules[i], actor, type, key)) {
            rules[i] = (struct rule){actor, type, key};
            return;
        }
    rules[n_rules++] = (struct rule){actor, type, key};
}

static bool model_unsubscribe(unsigned actor, const char *type, const char *key)
{
    for (unsigned i = 0; i < n_rules; i++)
        if (rules[i].actor == actor && replaces(&rules[i], actor, type, key)) {
            memmove(&rules[i], &rules[i + 1], (n_rules - i - 1) * sizeof(*rules));
            n_rules--;
            return true;
        }
    return false;
}

static bool model_key_matches(const char *wanted, const char *key)
{
    if (exchange.kind < EXCHANGE_ROUTING_KEY || !wanted)
        return true;
    if (!key)
        return false;
    if (exchange.kind == EXCHANGE_PATTERN)
        return exchange_pattern_matches(wanted, (uint32_t)strlen(wanted), key,
                                        (uint32_t)strlen(key));
    return strcmp(wanted, key) == 0;
}

static bool model_matches(const struct rule *rule, const char *type, const char *key)
{
    const size_t size = strlen(rule->type);

    if (exchange.kind == EXCHANGE_SINGLE)
        return true;
    if (size > 0 && (strncmp(type, rule->type, size) != 0 || (type[size] && type[size] != '.')))
        return false;
    return model_key_matches(rule->key, key);
}

static void model_route(const char *type, const char *key, char *who)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_rules; i++)
        if (model_matches(&rules[i], type, key)) {
            if (exchange.kind == EXCHANGE_TYPED_SINGLE && strcmp(rules[i].type, type) == 0) {
                who[0] = (char)('A' + rules[i].actor);
                n = 1;
                break;
            }
            who[n++] = (char)('A' + rules[i].actor);
        }
    if (exchange.kind == EXCHANGE_TYPED_SINGLE && n > 1)
        n = 1;
    who[n] = '\0';
}

static const char *const TYPES[] = {"", "a", "a.b", "a.b.c", "a.c", "b", "ab"};
static const char *const KEYS[] = {NULL, "", "k", "k.l", "k.*", "#", "*"};

#define any(vector) (vector)[(size_t)rand() % (sizeof(vector) / sizeof(*(vector)))]

TEST(any_sequence_of_changes_agrees_with_the_rules_read_literally, .n = 20)
{
    char expected[65];

    srand((unsigned)_i);
    begin((enum exchange_kind)(_i % _EXCHANGE_N_KINDS));
    n_rules = 0;
    for (unsigned step = 0; step < 3000; step++) {
        const unsigned actor = (unsigned)rand() % N_ACTORS;
        const char *type = any(TYPES), *key = any(KEYS);

        switch (rand() % 8) {
        case 0:
        case 1:
            if (n_rules < 64) {
                model_subscribe(actor, type, key);
                subscribe(actor, type, key);
            }
            break;
        case 2:
        case 3:
            ck_assert_int_eq(unsubscribe(actor, type, key), model_unsubscribe(actor, type, key));
            break;
        default:
            model_route(type, key, expected);
            ck_assert_str_eq(route(type, key), expected);
            break;
        }
        ck_assert_uint_eq(exchange.n_subscriptions, n_rules);
    }
}

const struct suite suite = {.setup = begin_patterns, .teardown = end};
