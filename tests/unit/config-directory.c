/* SPDX-License-Identifier: MIT */
#include "tests/unit/config-directory.h"

#include "tests/unit/suite.h"

char config_test_directory[] = "/tmp/troupe-config-XXXXXX";
char config_test_source_directory[PATH_MAX];

/* What a test has loaded. */
static struct config *loaded[128];
static size_t n_loaded;

void config_test_enter(void)
{
    ck_assert_ptr_nonnull(getcwd(config_test_source_directory, PATH_MAX));
    ck_assert_ptr_nonnull(mkdtemp(config_test_directory));
    ck_assert_int_eq(chdir(config_test_directory), 0);
}

void config_test_leave(void)
{
    char command[256];

    while (n_loaded > 0)
        config_free(loaded[--n_loaded]);
    snprintf(command, sizeof(command), "rm -r %s", config_test_directory);
    ck_assert_int_eq(system(command), 0);
}

void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

void write_group(const char *name, const char *more)
{
    char path[128], text[4096];

    snprintf(path, sizeof(path), "%s.group", name);
    snprintf(text, sizeof(text), "[Group]\n" PROGRAM "%s", more);
    write_file(path, text);
}

const char *describe(const struct config_problems *problems)
{
    static char text[16384];

    text[0] = '\0';
    for (size_t i = 0; i < problems->n_problems; i++) {
        const struct config_problem *problem = &problems->problems[i];
        const char *path = strncmp(problem->path, "./", 2) == 0 ? problem->path + 2 : problem->path;
        size_t used = strlen(text);

        snprintf(text + used, sizeof(text) - used, "%s:%u: %s\n", path, problem->line,
                 problem->text);
    }
    return text;
}

struct config *load(void)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;
    int r = config_load(&config, ".", &problems);

    ck_assert_msg(r == 0, "%d: %s", r, describe(&problems));
    ck_assert_uint_eq(problems.n_problems, 0);
    ck_assert_uint_lt(n_loaded, ELEMENTS(loaded));
    loaded[n_loaded++] = config;
    return config;
}

const char *load_problems(void)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;

    ck_assert_int_eq(config_load(&config, ".", &problems), CONFIG_E_INVALID);
    ck_assert_ptr_null(config);
    const char *text = describe(&problems);
    config_problems_deinit(&problems);
    ck_assert_ptr_null(problems.problems);
    return text;
}

struct config_group *load_group(const char *more)
{
    write_group("a", more);
    struct config *config = load();
    ck_assert_uint_eq(config->n_groups, 1);
    return config->groups[0];
}
