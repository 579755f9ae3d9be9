/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-table.h"
#include "supervisor/group/cell/cell.h"
#include "tests/unit/suite.h"

#define MANY 1000

static struct cell_table table;
static struct cell cells[MANY];

static void setup(void)
{
    cell_table_init(&table);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(cells[i].name, sizeof(cells[i].name), "g/key-%u", i);
        cells[i].key = cells[i].name + 2;
        queue_init(&cells[i].queue);
        list_init(&cells[i].link);
        list_init(&cells[i].live_link);
    }
}

static void teardown(void)
{
    for (unsigned i = 0; i < MANY; i++)
        if (list_linked(&cells[i].link))
            cell_table_remove(&table, &cells[i]);
    cell_table_deinit(&table);
}

static struct cell *find(const char *key)
{
    return cell_table_find(&table, key, strlen(key));
}

static void add(unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        cell_table_add(&table, &cells[i]);
}

TEST(an_empty_table_finds_nothing)
{
    ck_assert_ptr_null(find("key-0"));
    ck_assert_ptr_null(find(""));
}

TEST(each_of_a_thousand_is_found_by_its_key_and_by_no_other)
{
    add(0, MANY);
    ck_assert_uint_eq(table.n_cells, MANY);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_ptr_eq(find(cells[i].key), &cells[i]);
    ck_assert_ptr_null(find("key-1000"));
    ck_assert_ptr_null(find("key-"));
    ck_assert_ptr_null(find("key-00"));
}

TEST(a_key_need_not_be_terminated)
{
    add(0, 20);
    ck_assert_ptr_eq(cell_table_find(&table, "key-1/0", 5), &cells[1]);
    ck_assert_ptr_eq(cell_table_find(&table, "key-19", 5), &cells[1]);
    ck_assert_ptr_eq(cell_table_find(&table, "key-19", 6), &cells[19]);
    ck_assert_ptr_null(cell_table_find(&table, "key-19\0", 7));
}

TEST(what_is_removed_is_not_found_and_the_others_are)
{
    add(0, MANY);
    for (unsigned i = 0; i < MANY; i += 2)
        cell_table_remove(&table, &cells[i]);
    ck_assert_uint_eq(table.n_cells, MANY / 2);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_ptr_eq(find(cells[i].key), i % 2 == 0 ? NULL : &cells[i]);
    for (unsigned i = 1; i < MANY; i += 2)
        cell_table_remove(&table, &cells[i]);
    ck_assert(list_empty(&table.cells));
    ck_assert_ptr_null(find("key-1"));
}

TEST(cells_are_listed_in_the_order_of_their_creation)
{
    unsigned n = 0;

    add(0, 100);
    cell_table_remove(&table, &cells[0]);
    add(0, 1);
    list_for_each (node, &table.cells) {
        ck_assert_ptr_eq(list_entry(node, struct cell, link), &cells[(n + 1) % 100]);
        n++;
    }
    ck_assert_uint_eq(n, 100);
}

TEST(chains_stay_short_however_many_there_are)
{
    size_t longest = 0;

    add(0, MANY);
    for (uint32_t i = 0; i < table.by_key.n_more; i++) {
        size_t length = 0;
        for (const struct index_entry *entry = table.by_key.more[i]; entry; entry = entry->next)
            length++;
        longest = length > longest ? length : longest;
    }
    ck_assert_uint_gt(longest, 0);
    /* Of a good hash and a thousand keys, one in a billion tables has a chain of 16. */
    ck_assert_uint_lt(longest, 16);
}

TEST(a_cursor_goes_through_all_in_order_and_moves_on_when_its_cell_goes)
{
    struct list_cursor cursor, other, end;

    add(0, 5);
    list_cursor_begin(&cursor, &table.cursors, &table.cells, false);
    list_cursor_begin(&other, &table.cursors, &table.cells, false);
    list_cursor_advance(&cursor);
    ck_assert_ptr_eq(cell_table_at(&table, &cursor), &cells[1]);
    cell_table_remove(&table, &cells[1]);
    cell_table_remove(&table, &cells[2]);
    ck_assert_ptr_eq(cell_table_at(&table, &cursor), &cells[3]);
    ck_assert_ptr_eq(cell_table_at(&table, &other), &cells[0]);
    list_cursor_advance(&cursor);
    list_cursor_begin(&end, &table.cursors, &table.cells, true);
    end.backward = false;
    cell_table_remove(&table, &cells[4]);
    ck_assert_ptr_null(cell_table_at(&table, &cursor));
    ck_assert_ptr_null(cell_table_at(&table, &end));
    add(5, 6); /* it comes too late */
    ck_assert_ptr_null(cell_table_at(&table, &cursor));
    list_cursor_end(&cursor);
    list_cursor_end(&other);
    list_cursor_end(&end);
    cell_table_remove(&table, &cells[0]);
    ck_assert_ptr_null(cell_table_at(&table, &other));
}

/* Gives the cell a queue whose only job in memory was created at that time. */
static void set_queue(unsigned i, struct job *job, usec_t created_at)
{
    queue_init(&cells[i].queue);
    list_init(&job->link);
    job->created_at = created_at;
    if (created_at > 0)
        queue_push_back(&cells[i].queue, job);
    cell_table_note_queue(&table, &cells[i]);
}

TEST(the_oldest_job_is_known_after_any_changes)
{
    static struct job jobs[MANY];

    add(0, 100);
    srand(1);
    for (unsigned round = 0; round < 2000; round++) {
        const unsigned changed = (unsigned)rand() % 100;
        usec_t oldest = 0;

        set_queue(changed, &jobs[changed], (usec_t)rand() % 1000);
        for (unsigned i = 0; i < 100; i++) {
            const usec_t own = queue_oldest(&cells[i].queue);

            oldest = own > 0 && (oldest == 0 || own < oldest) ? own : oldest;
        }
        ck_assert_uint_eq(cell_table_oldest(&table), oldest);
    }
}

TEST(a_cell_that_goes_takes_its_oldest_job_along)
{
    struct job job = {0};

    add(0, 2);
    set_queue(0, &job, 5);
    cell_table_remove(&table, &cells[0]);
    ck_assert_uint_eq(cell_table_oldest(&table), 0);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
