/* SPDX-License-Identifier: MIT */
#include "shared/base/hash.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

struct thing {
    struct index_entry entry;
    uint64_t number;
};

static struct thing *found(const struct index *index, uint64_t key)
{
    return (struct thing *)index_find(index, key);
}

TEST(what_was_added_is_found_until_it_is_removed)
{
    struct index index = INDEX_NULL;
    struct thing things[100];

    ck_assert_ptr_null(found(&index, 0));
    for (uint64_t i = 0; i < 100; i++)
        index_add(&index, &things[i].entry, i * i);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_ptr_eq(found(&index, i * i), &things[i]);
    ck_assert_ptr_null(found(&index, 2));
    for (uint64_t i = 0; i < 100; i += 2)
        index_remove(&index, &things[i].entry);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_ptr_eq(found(&index, i * i), i % 2 ? &things[i] : NULL);
    for (uint64_t i = 1; i < 100; i += 2)
        index_remove(&index, &things[i].entry);
    index_deinit(&index);
}

TEST(several_may_have_the_same_key)
{
    struct index index = INDEX_NULL;
    struct thing things[100];
    struct index_entry *entry;
    unsigned n = 0;

    for (uint64_t i = 0; i < 100; i++)
        index_add(&index, &things[i].entry, i % 4);
    for (entry = index_find(&index, 3); entry; entry = index_find_next(entry), n++)
        ck_assert_uint_eq(entry->key, 3);
    ck_assert_uint_eq(n, 25);
    while ((entry = index_find(&index, 3)))
        index_remove(&index, entry);
    ck_assert_uint_eq(index.n_entries, 75);
    for (uint64_t i = 0; i < 100; i++)
        if (i % 4 != 3)
            index_remove(&index, &things[i].entry);
    index_deinit(&index);
}

TEST(a_look_up_passes_a_few_whatever_their_number)
{
    static struct thing things[200000];
    struct index index = INDEX_NULL;
    unsigned most = 0;

    for (uint32_t i = 0; i < 200000; i++) {
        index_add(&index, &things[i].entry, (uint64_t)i << 32 | i); /* as references are */
        if ((i & (i - 1)) == 0 || i == 199999)
            most = longest(&index) > most ? longest(&index) : most;
    }
    ck_assert_uint_le(most, 24);
    for (uint32_t i = 0; i < 200000; i++)
        ck_assert_ptr_eq(found(&index, (uint64_t)i << 32 | i), &things[i]);
    for (uint32_t i = 0; i < 200000; i++)
        index_remove(&index, &things[i].entry);
    index_deinit(&index);
}

static uint64_t hash_of_another_process(void)
{
    uint64_t hash = 0;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        hash = hash_bytes("order", 5);
        _exit(write(fds[1], &hash, sizeof(hash)) != sizeof(hash));
    }
    ck_assert_int_eq(read(fds[0], &hash, sizeof(hash)), sizeof(hash));
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(fds[0]);
    close(fds[1]);
    return hash;
}

TEST(no_two_processes_hash_alike)
{
    ck_assert_uint_ne(hash_of_another_process(), hash_of_another_process());
}

TEST(a_key_of_bytes_tells_them_apart)
{
    ck_assert_uint_eq(hash_bytes("order.created", 13), hash_bytes("order.created", 13));
    ck_assert_uint_ne(hash_bytes("order.created", 13), hash_bytes("order.createe", 13));
    ck_assert_uint_ne(hash_bytes("order", 5), hash_bytes("order\0", 6));
    ck_assert_uint_ne(hash_bytes("", 0), hash_bytes("\0", 1));
}
