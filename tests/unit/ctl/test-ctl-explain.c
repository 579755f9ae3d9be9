/* SPDX-License-Identifier: MIT */

/* Every error that the interfaces know is a sentence for people, with what is allowed. */

#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "tests/unit/suite.h"
#include <glob.h>
#include <jansson.h>

/* What explain_error() writes to standard error; the caller's. */
static char *explained(const char *error, const json_t *parameters, int *ret)
{
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    char *text = calloc(1, 8192);

    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    *ret = explain_error(error, parameters);
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    close(saved);
    rewind(file);
    ck_assert_uint_gt(fread(text, 1, 8191, file), 0);
    fclose(file);
    return text;
}

/* "(group: string, nearest: ?string)": a value of each type, the name in its text. */
static json_t *make_parameters(const char *list)
{
    json_t *parameters = json_object();
    char name[64], type[64], value[80];
    int length;

    while (sscanf(list, " %*[(,] %63[a-z_]: %63[]a-z?[]%n", name, type, &length) == 2 ||
           sscanf(list, "%*[(,] %63[a-z_]: %63[]a-z?[]%n", name, type, &length) == 2) {
        snprintf(value, sizeof(value), "the-%s", name);
        if (strcmp(type, "int") == 0)
            json_object_set_new(parameters, name, json_integer(4242));
        else if (strcmp(type, "[]string") == 0)
            json_object_set_new(parameters, name, json_pack("[s]", value));
        else
            json_object_set_new(parameters, name, json_string(value));
        list += length;
    }
    return parameters;
}

static bool is_told(const char *sentence, const json_t *parameters, const char *name)
{
    const json_t *value = json_object_get(parameters, name);

    if (!value)
        return true;
    if (json_is_integer(value))
        return strstr(sentence, "4242") || strstr(sentence, "4,242") || strstr(sentence, "4.1 KiB");
    return strstr(sentence, json_string_value(value)) != NULL;
}

static void check_error(const char *interface, const char *name, const char *list)
{
    static const char *const essential[] = {"target",  "group",   "id",      "option", "allowed",
                                            "needed",  "problem", "reason",  "name",   "minimum",
                                            "maximum", "what",    "message", "state"};
    json_t *parameters = make_parameters(list), *nothing = json_object();
    char full[128], *sentence;
    int status;

    snprintf(full, sizeof(full), "%s.%s", interface, name);
    free(explained(full, nothing, &status));
    sentence = explained(full, parameters, &status);
    ck_assert_int_ne(status, EXIT_OK);
    ck_assert_msg(!strstr(sentence, "the supervisor refused:") && !strchr(sentence, '{') &&
                      !strstr(sentence, name) && !strstr(sentence, interface),
                  "%s has no sentence of its own: %s", full, sentence);
    for (size_t i = 0; i < ELEMENTS(essential); i++)
        ck_assert_msg(is_told(sentence, parameters, essential[i]), "%s does not tell '%s': %s",
                      full, essential[i], sentence);
    free(sentence);
    json_decref(parameters);
    json_decref(nothing);
}

/* A description as it stands beside the methods; the caller's. */
static char *read_description(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 65536);

    ck_assert_msg(file != NULL && text != NULL, "%s", path);
    ck_assert_uint_gt(fread(text, 1, 65535, file), 0);
    ck_assert_int_ne(feof(file), 0);
    fclose(file);
    return text;
}

static unsigned check_errors(const char *path)
{
    char *description = read_description(path), *at = description, interface[64];
    unsigned n = 0;

    at = strstr(at, "\ninterface ");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at, "\ninterface %63s", interface), 1);
    while ((at = strstr(at, "\nerror "))) {
        char name[64];
        int length;

        ck_assert_int_eq(sscanf(at, "\nerror %63[A-Za-z] %n", name, &length), 1);
        at += length;
        check_error(interface, name, at);
        n++;
    }
    free(description);
    return n;
}

/* Tests are run at the top of the tree. */
TEST(every_error_of_the_interfaces_is_a_sentence_that_tells_what_is_allowed)
{
    unsigned n = 0;
    glob_t found = {0};

    (void)glob("supervisor/control/*.varlink", 0, NULL, &found);
    (void)glob("supervisor/*/*.varlink", GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        n += check_errors(found.gl_pathv[i]);
    globfree(&found);
    ck_assert_uint_gt(n, 50);
}

TEST(an_error_of_a_newer_supervisor_is_told_in_words)
{
    json_t *parameters = json_pack("{s:s, s:i, s:[]}", "group", "a", "maximum", 5, "list");
    int status;
    char *sentence = explained("io.troupe.Jobs.QueueTooLong", parameters, &status);

    ck_assert_str_eq(sentence,
                     "troupectl: the supervisor refused: queue too long: group a, maximum 5\n");
    ck_assert_int_eq(status, EXIT_FAILED);
    free(sentence);
    json_decref(parameters);
}

TEST(a_name_that_the_supervisor_suggests_cannot_steer_the_terminal)
{
    json_t *parameters = json_pack("{s:s, s:s}", "group", "g", "nearest", "\033[2J");
    int status;
    char *sentence = explained("io.troupe.Jobs.NoSuchGroup", parameters, &status);

    ck_assert_str_eq(sentence, "troupectl: there is no group 'g'; did you mean '\\x1b[2J'?\n");
    free(sentence);
    json_decref(parameters);
}
