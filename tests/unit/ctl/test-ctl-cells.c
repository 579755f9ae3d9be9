/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/show/show.h"
#include "tests/unit/suite.h"

#define NOW (1000 * USEC_PER_SEC)

static char *output;
static size_t output_size;
static struct terminal terminal;
static json_t *group;

static void set_up(void)
{
    json_error_t error;

    group = json_loads("{\"name\":\"mail\",\"description\":\"Mail\",\"type\":\"actor\","
                       "\"state\":\"running\",\"size\":1,\"queued\":0,\"succeeded\":9,"
                       "\"workers\":[],\"cells\":[]}",
                       0, &error);
    ck_assert_ptr_nonnull(group);
    terminal = (struct terminal){.utf8 = true};
    terminal.file = open_memstream(&output, &output_size);
    ck_assert_ptr_nonnull(terminal.file);
}

static void tear_down(void)
{
    json_decref(group);
    free(output);
}

/* Of one worker, which is idle. */
static json_t *add_cell(const char *key, const char *state, int queued)
{
    json_t *cells = json_object_get(group, "cells");
    json_t *worker = json_pack("{s:o, s:s, s:i}", "name", json_sprintf("mail/%s/0", key), "state",
                               "idle", "pid", 4711);
    json_t *cell = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:[o]}", "key", key, "state",
                             state, "size", 1, "up", 1, "queued", queued, "queue_bytes", 0,
                             "succeeded", 3, "workers", worker);

    ck_assert_ptr_nonnull(cell);
    json_array_append_new(cells, cell);
    json_object_set_new(group, "cells_total", json_integer((json_int_t)json_array_size(cells)));
    return cell;
}

static void show(bool all)
{
    show_group(&terminal, group, NOW, all);
    ck_assert_int_eq(fclose(terminal.file), 0);
}

TEST(cells_are_a_table_below_what_they_make_together)
{
    json_t *cell = add_cell("loud", "running", 5);

    json_object_set_new(cell, "oldest_queued_at", json_integer(NOW - 3 * USEC_PER_SEC));
    json_object_set_new(cell, "deaths", json_integer(2));
    json_object_set_new(cell, "p99_usec", json_integer(5200000));
    json_object_set_new(group, "p50_usec", json_integer(4000));
    json_object_set_new(group, "p99_usec", json_integer(5000000));
    add_cell("quiet", "paused", 0);
    show(false);
    ck_assert_str_eq(
        output, "● mail - Mail: running\n"
                "   Workers: 2 of 2 up: 2 idle\n"
                "     Queue: empty\n"
                "      Jobs: 9 succeeded\n"
                "      Took: at most 4ms for half of the last jobs, 5.0s for 99 %\n"
                "     Cells: 2\n"
                "   ● loud   running  1/1 up  5 queued  0 running  3 done  p99 5.2s, oldest waits "
                "for 3.0s, 2 died\n"
                "   ● quiet  paused   1/1 up  0 queued  0 running  3 done\n");
}

static void add_thousand(void)
{
    char key[32];

    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        add_cell(key, i == 777 ? "degraded" : "running", i < 20 ? i : 0);
    }
}

/* Where it stands in the output, or fails. */
static const char *place_of(const char *text)
{
    const char *place = strstr(output, text);

    ck_assert_msg(place != NULL, "%s", output);
    return place;
}

TEST(of_many_cells_those_in_trouble_come_first_then_some_with_work)
{
    add_thousand();
    show(false);
    ck_assert(place_of("! k777 ") < place_of("● k1 "));
    ck_assert(place_of("● k8 ") < place_of("● k9 "));
    ck_assert_ptr_null(strstr(output, "● k10 "));
    place_of("   and 990 more\n");
}

TEST(all_cells_are_listed_when_asked_for)
{
    add_thousand();
    show(true);
    place_of("● k2 ");
    place_of("● k999 ");
    ck_assert_ptr_null(strstr(output, "more"));
}

TEST(one_cell_looks_like_a_group)
{
    add_cell("quiet", "running", 0);
    show_cell(&terminal, group, add_cell("loud", "paused", 1), NOW, false);
    ck_assert_int_eq(fclose(terminal.file), 0);
    ck_assert_str_eq(output, "● mail/loud - Mail: paused\n"
                             "   Workers: 1 of 1 up: 1 idle\n"
                             "     Queue: 1 job (0 B)\n"
                             "      Jobs: 3 succeeded\n"
                             "   ● mail/loud/0  idle  pid 4711\n");
}

TEST(a_cell_is_found_by_group_and_key)
{
    json_t *cell = add_cell("acme", "running", 0);

    ck_assert_ptr_eq(view_find_cell(group, "mail/acme"), cell);
    ck_assert_ptr_null(view_find_cell(group, "mail/acme/0"));
    ck_assert_ptr_null(view_find_cell(group, "mail"));
    json_object_del(group, "cells");
    ck_assert_ptr_null(view_find_cell(group, "mail/acme"));
}

TEST(cells_without_any_member_do_no_harm)
{
    json_array_append_new(json_object_get(group, "cells"), json_object());
    json_array_append_new(json_object_get(group, "cells"), json_integer(3));
    json_object_set_new(group, "cells_total", json_integer(-1));
    show(true);
    ck_assert_msg(strstr(output, "Cells:") != NULL, "%s", output);
}

/* ---- parts ---- */

static json_t *part(const char *text)
{
    char copy[512];

    /* ' stands for " in here. */
    ck_assert_uint_lt(strlen(text), sizeof(copy));
    strcpy(copy, text);
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_t *value = json_loads(copy, 0, NULL);
    ck_assert_ptr_nonnull(value);
    return value;
}

TEST(parts_of_a_status_make_one_whole)
{
    json_t *groups = json_array(), *whole;
    json_t *parts[] = {
        part("[{'name':'a','size':1,'workers':[1,2]},"
             "{'name':'b','queued':1,'workers':[],'cells':[{'key':'x','dead':0,'workers':[1]}]}]"),
        part("[{'name':'b','queued':2,'workers':[],'cells':[{'key':'x','dead':1,'workers':[2,3]},"
             "{'key':'y','dead':0,'workers':[4]}]}]"),
        part("[{'name':'b','queued':3,'workers':[],'cells':[{'key':'z','dead':0,'workers':[5]}],"
             "'oldest_queued_at':7},{'name':'c','workers':[]}]"),
        part("[{'name':'c','workers':[9]}]"),
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        ck_assert_int_eq(parts_add_groups(groups, parts[i]), 0);
        json_decref(parts[i]);
    }
    whole = part("[{'name':'a','size':1,'workers':[1,2]},"
                 "{'name':'b','queued':3,'workers':[],'oldest_queued_at':7,'cells':["
                 "{'key':'x','dead':1,'workers':[1,2,3]},{'key':'y','dead':0,'workers':[4]},"
                 "{'key':'z','dead':0,'workers':[5]}]},{'name':'c','workers':[9]}]");
    ck_assert(json_equal(groups, whole));
    json_decref(groups);
    json_decref(whole);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
