/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/unitfile.h"
#include "supervisor/store/database.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MANUAL[] = "supervisor/store/troupe.db.5";

/* Asserts that a line of the manual begins with the macro and has the word. */
static void assert_in_manual(const char *manual, const char *macro, const char *word)
{
    const size_t size = strlen(word);

    for (const char *line = strstr(manual, macro); line; line = strstr(line + 1, macro)) {
        const char *found = strstr(line, word);

        if (found && found < line + strcspn(line + 1, "\n") + 1 && found[-1] == ' ' &&
            isspace((unsigned char)found[size]))
            return;
    }
    ck_abort_msg("%s lacks %s%s (tests are run from the top of the tree)", MANUAL, macro, word);
}

START_TEST(the_manual_tells_of_every_table_and_column)
{
    static const char sql[] = "SELECT t.name, c.name FROM sqlite_schema t,"
                              " pragma_table_info(t.name) c WHERE t.type = 'table'";
    struct database database = DATABASE_NULL;
    struct scratch scratch;
    sqlite3_stmt *query;
    char *manual;
    size_t size;

    ck_assert_int_eq(unitfile_read(MANUAL, &manual, &size), 0);
    manual = realloc(manual, size + 1);
    ck_assert_ptr_nonnull(manual);
    manual[size] = '\0';
    scratch_init(&scratch);
    ck_assert_int_eq(database_open(&database, scratch.path, NULL), 0);
    query = database_query(&database, sql);
    while (database_step(&database, query) == DATABASE_E_ROW) {
        assert_in_manual(manual, "\n.Ss ", (const char *)sqlite3_column_text(query, 0));
        assert_in_manual(manual, "Va ", (const char *)sqlite3_column_text(query, 1));
    }
    database_close(&database, false);
    scratch_deinit(&scratch);
    free(manual);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_manual_tells_of_every_table_and_column};

    return suite_run("schema", NULL, NULL, tests, ELEMENTS(tests));
}
