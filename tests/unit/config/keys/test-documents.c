/* SPDX-License-Identifier: MIT */
#include "shared/base/unitfile.h"
#include "supervisor/config/keys/keys.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/event/event-id.h"
#include "tests/unit/config-directory.h"
#include "tests/unit/suite.h"

TEST(fields_have_the_size_of_their_type)
{
    const struct config_schema *schemas[] = {&CONFIG_GROUP_SCHEMA, &CONFIG_DAEMON_SCHEMA,
                                             &CONFIG_EXCHANGE_SCHEMA, &CONFIG_SCHEDULE_SCHEMA,
                                             &CONFIG_LIMIT_SCHEMA};

    for (size_t i = 0; i < ELEMENTS(schemas); i++)
        for (size_t j = 0; j < schemas[i]->n_keys; j++) {
            const struct config_key *key = &schemas[i]->keys[j];

            ck_assert_msg(key->size == key->type->size, "%s", key->name);
            ck_assert_msg(key->allowed, "%s", key->name);
        }
}

static char *read_source(const char *name, size_t *ret_size)
{
    char path[2 * PATH_MAX], *text;

    snprintf(path, sizeof(path), "%s/%s", config_test_source_directory, name);
    int r = unitfile_read(path, &text, ret_size);
    ck_assert_msg(r == 0, "%s: %d (tests are run from the top of the tree)", path, r);
    text = realloc(text, *ret_size + 1);
    ck_assert_ptr_nonnull(text);
    text[*ret_size] = '\0';
    return text;
}

/* "#Key=default" (or "#Key=" where nothing is the default) stands in the section. */
static void assert_in_example(const char *example, const struct config_key *key)
{
    char section[64], line[128];

    snprintf(section, sizeof(section), "\n[%s]\n", key->section);
    const char *begin = strstr(example, section);
    ck_assert_msg(begin, "[%s]", key->section);
    const char *end = strstr(begin + 1, "\n[");
    snprintf(line, sizeof(line), "\n#%s=%s\n", key->name, key->fallback ? key->fallback : "");
    const char *found = strstr(begin, line);
    ck_assert_msg(found && (!end || found < end), "[%s]%s", key->section, line);
}

TEST(the_examples_show_every_key_with_its_default)
{
    size_t size;
    char *text = read_source("units/example.group.example", &size);

    for (size_t i = 0; i < CONFIG_GROUP_SCHEMA.n_keys; i++)
        if (strcmp(CONFIG_GROUP_SCHEMA.keys[i].name, "ExecStart") != 0)
            assert_in_example(text, &CONFIG_GROUP_SCHEMA.keys[i]);
    free(text);
    text = read_source("units/troupe.conf.example", &size);
    for (size_t i = 0; i < CONFIG_DAEMON_SCHEMA.n_keys; i++)
        assert_in_example(text, &CONFIG_DAEMON_SCHEMA.keys[i]);
    free(text);
    text = read_source("units/example.exchange.example", &size);
    for (size_t i = 0; i < CONFIG_EXCHANGE_SCHEMA.n_keys; i++)
        assert_in_example(text, &CONFIG_EXCHANGE_SCHEMA.keys[i]);
    free(text);
    text = read_source("units/example.limit.example", &size);
    for (size_t i = 0; i < CONFIG_LIMIT_SCHEMA.n_keys; i++)
        assert_in_example(text, &CONFIG_LIMIT_SCHEMA.keys[i]);
    free(text);
    text = read_source("units/example.schedule.example", &size);
    for (size_t i = 0; i < CONFIG_SCHEDULE_SCHEMA.n_keys; i++)
        if (strcmp(CONFIG_SCHEDULE_SCHEMA.keys[i].name, "OnCalendar") != 0)
            assert_in_example(text, &CONFIG_SCHEDULE_SCHEMA.keys[i]);
    free(text);
}

/* The examples with every "#Key=" taken at its word. */
static void uncomment(char *text)
{
    char *to = text;
    bool line_begins = true;

    for (char *at = text; *at; at++) {
        if (line_begins && *at == '#' && at[1] >= 'A' && at[1] <= 'Z' && strchr(at, '=') &&
            strcspn(at, " =\n") == strcspn(at, "="))
            at++;
        line_begins = *at == '\n';
        *to++ = *at;
    }
    *to = '\0';
}

/* The one line that is no default. Not every machine has that user. */
static void drop_user(char *text)
{
    char *line = strstr(text, "\nUser=troupe\n");

    ck_assert_ptr_nonnull(line);
    memset(line, '\n', strlen("\nUser=troupe\n"));
}

TEST(the_uncommented_examples_are_valid_and_change_nothing)
{
    size_t size;
    char *text = read_source("units/example.group.example", &size);
    struct config_group *defaults;

    uncomment(text);
    drop_user(text);
    write_file("example.group", text);
    free(text);
    text = read_source("units/troupe.conf.example", &size);
    uncomment(text);
    write_file("troupe.conf", text);
    free(text);
    text = read_source("units/example.exchange.example", &size);
    uncomment(text);
    write_file("events.exchange", text);
    free(text);
    text = read_source("units/example.schedule.example", &size);
    uncomment(text);
    write_file("example.schedule", text);
    free(text);
    struct config *config = load();
    ck_assert_uint_eq(config->files[CONFIG_EXCHANGE].n, 1);
    struct config_exchange *exchange = config->files[CONFIG_EXCHANGE].all[0];
    ck_assert_int_eq(exchange->type, EXCHANGE_TYPED_MULTI);
    ck_assert_uint_eq(config->files[CONFIG_SCHEDULE].n, 1);
    ck_assert_int_eq(config_defaults(&defaults, "example"), 0);
    ck_assert_int_eq(strv_append(&defaults->exec_start, config->groups[0]->exec_start[0]), 0);
    for (char **word = config->groups[0]->exec_start + 1; *word; word++)
        ck_assert_int_eq(strv_append(&defaults->exec_start, *word), 0);
    ck_assert(config_group_equal(config->groups[0], defaults));
    config_group_free(defaults);
}

static void assert_in_manual(const char *manual, const struct config_schema *schema)
{
    size_t size;
    char *text = read_source(manual, &size);

    for (size_t i = 0; i < schema->n_keys; i++) {
        char item[128];

        snprintf(item, sizeof(item), "\n.It Ic %s Ns = Ns ", schema->keys[i].name);
        ck_assert_msg(strstr(text, item), "%s lacks%s", manual, item);
    }
    free(text);
}

TEST(the_manuals_tell_of_every_key)
{
    assert_in_manual("supervisor/config/troupe.group.5", &CONFIG_GROUP_SCHEMA);
    assert_in_manual("supervisor/config/troupe.conf.5", &CONFIG_DAEMON_SCHEMA);
    assert_in_manual("supervisor/config/troupe.exchange.5", &CONFIG_EXCHANGE_SCHEMA);
    assert_in_manual("supervisor/config/troupe.schedule.5", &CONFIG_SCHEDULE_SCHEMA);
    assert_in_manual("supervisor/config/troupe.limit.5", &CONFIG_LIMIT_SCHEMA);
}

TEST(the_catalog_explains_every_message_id)
{
    static const char *const ids[] = {
        EVENT_ID_WORKER_DIED,    EVENT_ID_WORKER_RESTARTED, EVENT_ID_WORKER_FAILED,
        EVENT_ID_WORKER_FAILING, EVENT_ID_VIOLATION,        EVENT_ID_JOB_DEAD,
        EVENT_ID_SLOT_LOST,      EVENT_ID_BAD_CONFIG,       EVENT_ID_READY,
        EVENT_ID_STOPPING,       EVENT_ID_NOT_RECYCLED,     EVENT_ID_STORE,
        EVENT_ID_ROLL_STOPPED,   EVENT_ID_STALLED,          EVENT_ID_COMMAND_DIED,
        EVENT_ID_SAFE_MODE,      EVENT_ID_HISTORY,
    };
    size_t size, n = 0;
    char *text = read_source("units/troupe.catalog", &size);

    for (size_t i = 0; i < ELEMENTS(ids); i++) {
        char entry[128];

        snprintf(entry, sizeof(entry), "\n-- %s\nSubject: ", ids[i]);
        ck_assert_msg(strstr(text, entry), "%s", ids[i]);
    }
    for (const char *at = text; (at = strstr(at, "\n-- ")); at++)
        n++;
    ck_assert_uint_eq(n, ELEMENTS(ids));
    free(text);
}

const struct suite suite = {.setup = config_test_enter, .teardown = config_test_leave};
