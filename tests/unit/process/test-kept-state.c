/* SPDX-License-Identifier: MIT */
#include "supervisor/process/kept-state.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>

static struct kept_states first, second;

static void set_up(void)
{
    ck_assert_int_eq(kept_states_init(&first), 0);
}

static void tear_down(void)
{
    kept_states_deinit(&first);
    kept_states_deinit(&second);
}

/* The keeper holds the memory from one to the other. */
static void pass_on(struct kept_states *from, struct kept_states *to)
{
    int held = fcntl(from->fd, F_DUPFD_CLOEXEC, 3);
    kept_states_deinit(from);
    memset(to, 0, sizeof(*to));
    ck_assert_int_eq(kept_states_adopt(to, held), 0);
}

static void crash_and_adopt(void)
{
    pass_on(&first, &second);
}

static struct kept_state *open_state(struct kept_states *states, const char *name, bool found)
{
    bool was_found;
    struct kept_state *state = kept_state_open(states, name, &was_found);
    ck_assert(was_found == found);
    return state;
}

TEST(the_next_supervisor_finds_states_by_name)
{
    strcpy((char *)open_state(&first, "a/0", false)->data, "of a");
    strcpy((char *)open_state(&first, "b/0", false)->data, "of b");
    crash_and_adopt();
    struct kept_state *b = open_state(&second, "b/0", true);
    ck_assert_str_eq((char *)b->data, "of b");
    ck_assert_str_eq((char *)open_state(&second, "a/0", true)->data, "of a");
    ck_assert_str_eq((char *)open_state(&second, "c/0", false)->data, "");
    kept_state_free(&second, b);
    ck_assert_str_eq((char *)open_state(&second, "b/0", false)->data, "");
}

TEST(states_that_are_not_opened_again_are_forgotten_and_used_for_others)
{
    struct kept_state *a = open_state(&first, "a/0", false);
    strcpy((char *)a->data, "of a");
    kept_state_output(&first, a)->end = kept_state_output(&first, a)->line = 7;
    kept_state_output(&first, a)->reading_to = 7;
    (void)open_state(&first, "b/0", false);
    crash_and_adopt();
    (void)open_state(&second, "b/0", true);
    kept_states_settle(&second);
    struct kept_state *c = open_state(&second, "a/0", false);
    ck_assert_str_eq((char *)c->data, "");
    ck_assert_uint_eq(kept_state_output(&second, c)->end, 0);
    ck_assert_uint_eq(kept_state_output(&second, c)->line, 0);
    ck_assert_uint_eq(kept_state_output(&second, c)->reading_to, 0);
    ck_assert_uint_eq(second.n_free, 0);
}

TEST(a_supervisor_that_does_not_start_leaves_the_states_to_the_next_one)
{
    (void)open_state(&first, "a/0", false);
    (void)open_state(&first, "b/0", false);
    crash_and_adopt();
    (void)open_state(&second, "a/0", true);
    pass_on(&second, &first);
    (void)open_state(&first, "a/0", true);
    (void)open_state(&first, "b/0", true);
}

TEST(a_name_that_is_damaged_is_not_found)
{
    struct kept_state *a = open_state(&first, "a/0", false);
    (void)open_state(&first, "b/0", false);
    memset(a->name, 'a', sizeof(a->name));
    crash_and_adopt();
    (void)open_state(&second, "a/0", false);
    (void)open_state(&second, "b/0", true);
}

TEST(all_states_can_be_used)
{
    char name[16];
    struct kept_state *state = NULL;
    for (unsigned i = 0; i < KEPT_STATES_MAX; i++) {
        snprintf(name, sizeof(name), "%u", i);
        state = open_state(&first, name, false);
        ck_assert_ptr_nonnull(state);
    }
    ck_assert_ptr_null(open_state(&first, "more", false));
    kept_state_free(&first, state);
    ck_assert_ptr_eq(open_state(&first, "more", false), state);
    crash_and_adopt();
    ck_assert_ptr_nonnull(open_state(&second, "more", true));
}

TEST(without_memory_or_with_a_long_name_there_is_no_state)
{
    char name[KEPT_NAME_MAX + 2];
    memset(name, 'x', sizeof(name));
    name[KEPT_NAME_MAX + 1] = '\0';
    ck_assert_ptr_null(open_state(&second, "a/0", false));
    ck_assert_ptr_null(open_state(&first, name, false));
    ck_assert_ptr_nonnull(open_state(&first, name + 1, false));
    ck_assert_ptr_null(kept_state_output(&first, NULL));
    kept_state_free(&second, NULL);
}

TEST(memory_of_another_size_or_version_is_refused)
{
    int fd = memfd_create("other", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(kept_states_adopt(&second, fd), -EINVAL);
    ck_assert_int_eq(close(fd), 0);
    *(uint32_t *)(void *)first.memory = KEPT_STATES_VERSION + 1;
    ck_assert_int_eq(kept_states_adopt(&second, first.fd), -EINVAL);
    ck_assert_ptr_null(second.memory);
}

TEST(output_that_is_not_written_occupies_no_memory)
{
    char name[16];
    struct stat stat;
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "%u", i);
        ck_assert_ptr_nonnull(kept_state_output(&first, open_state(&first, name, false)));
    }
    ck_assert_int_eq(fstat(first.fd, &stat), 0);
    ck_assert_int_le(stat.st_blocks * 512, 1000 * 512 + 2 * 4096);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
