/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "tests/unit/suite.h"

#define N 500

static struct registry registry;
static struct group groups[N];
static char names[N][8];
static char user[] = "nobody";
static struct config_group no_user, users[3];
static const struct group_context context = {.registry = &registry};

/* In an order that is neither that of names nor its reverse. */
static size_t shuffled(size_t i)
{
    return i * 7 % N;
}

static void add(struct registry *to, struct group *group, char *name)
{
    *group = (struct group){.name = name, .config = &no_user, .context = &context};
    list_init(&group->pending_link);
    list_init(&group->removed_link);
    list_init(&group->down_link);
    ck_assert_int_eq(registry_add(to, group), 0);
}

static void setup(void)
{
    registry_init(&registry);
    for (size_t i = 0; i < N; i++) {
        struct group *group = &groups[shuffled(i)];

        snprintf(names[shuffled(i)], sizeof(names[0]), "g%03zu", shuffled(i));
        add(&registry, group, names[shuffled(i)]);
    }
}

static void empty(struct registry *of)
{
    while (of->n_groups > 0)
        registry_remove(of, of->sorted[0]);
    registry_deinit(of);
}

static void teardown(void)
{
    empty(&registry);
}

TEST(a_group_is_found_by_its_name_and_by_its_reference)
{
    struct group again = {.name = "g123"};

    for (size_t i = 0; i < N; i++) {
        ck_assert_ptr_eq(registry_find(&registry, names[i]), &groups[i]);
        ck_assert_ptr_eq(registry_get(&registry, groups[i].reference), &groups[i]);
    }
    ck_assert_ptr_null(registry_find(&registry, "g"));
    ck_assert_ptr_null(registry_find(&registry, "g0000"));
    ck_assert_ptr_null(registry_find(&registry, "h"));
    ck_assert_int_eq(registry_add(&registry, &again), -EEXIST);
}

static size_t count_of_user(uid_t uid)
{
    const struct group *group = NULL;
    size_t n = 0;

    while ((group = registry_next_of_user(&registry, uid, group))) {
        ck_assert_ptr_nonnull(group->config->user);
        ck_assert_uint_eq(group->config->uid, uid);
        n++;
    }
    return n;
}

TEST(groups_are_found_by_their_user)
{
    for (uid_t uid = 0; uid < 3; uid++)
        users[uid] = (struct config_group){.user = user, .uid = uid};
    ck_assert_uint_eq(count_of_user(0), 0);
    for (size_t i = 0; i < 30; i++) {
        groups[i].config = &users[i % 3];
        group_note_user(&groups[i]);
    }
    for (uid_t uid = 0; uid < 3; uid++)
        ck_assert_uint_eq(count_of_user(uid), 10);
    groups[1].config = &no_user;
    group_note_user(&groups[1]);
    registry_remove(&registry, &groups[4]);
    ck_assert_uint_eq(count_of_user(1), 8);
    ck_assert_uint_eq(count_of_user(3), 0);
    ck_assert_uint_eq(count_of_user((uid_t)-1), 0);
}

TEST(groups_come_in_the_order_of_names_from_any_name_on)
{
    const struct group *group;
    const char *name = "";

    for (size_t i = 0; i < N; i++) {
        group = registry_after(&registry, name);
        ck_assert_ptr_eq(group, &groups[i]);
        name = group->name;
    }
    ck_assert_ptr_null(registry_after(&registry, name));
    ck_assert_ptr_eq(registry_after(&registry, "g0005"), &groups[1]);
}

TEST(a_reference_finds_a_group_only_while_it_is_there)
{
    uint64_t reference = groups[200].reference;

    registry_remove(&registry, &groups[200]);
    ck_assert_ptr_null(registry_find(&registry, "g200"));
    ck_assert_ptr_null(registry_get(&registry, reference));
    ck_assert_ptr_eq(registry_after(&registry, "g199"), &groups[201]);
    ck_assert_int_eq(registry_add(&registry, &groups[200]), 0);
    ck_assert_ptr_eq(registry_find(&registry, "g200"), &groups[200]);
    ck_assert_ptr_eq(registry_get(&registry, reference), &groups[200]);
    ck_assert_uint_eq(registry.n_groups, N);
}

TEST(another_supervisor_gives_a_group_the_same_reference_in_any_order)
{
    const uint64_t reference = groups[123].reference;
    struct registry other;
    struct group group, before;

    registry_init(&other);
    add(&other, &before, "other");
    add(&other, &group, "g123");
    ck_assert_uint_eq(group.reference, reference);
    ck_assert_ptr_eq(registry_get(&other, reference), &group);
    empty(&other);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
