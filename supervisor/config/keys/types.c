/* SPDX-License-Identifier: MIT */
#include "supervisor/config/keys/types-private.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include "supervisor/config/syntax/envfile.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/config/syntax/words.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATHS_MAX 100 /* in one key of [Sandbox] */

int config_type_invalid(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return CONFIG_KEY_E_INVALID;
}

int config_type_check(int result, const char **ret_reason)
{
    if (result == 0)
        return 0;
    return config_type_invalid(ret_reason,
                               result == VALUES_E_RANGE ? "out of range" : "no valid value");
}

static void clear_text(void *field)
{
    free(*(char **)field);
    *(char **)field = NULL;
}

static bool equal_text(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;

    return left && right ? strcmp(left, right) == 0 : left == right;
}

static uint64_t digest_text(uint64_t digest, const void *field)
{
    const char *text = *(char *const *)field;

    return text ? digest_bytes(digest, text, strlen(text) + 1) : digest;
}

static uint64_t digest_strings(uint64_t digest, char *const *strings)
{
    for (; strings && *strings; strings++)
        digest = digest_bytes(digest, *strings, strlen(*strings) + 1);
    return digest;
}

static int parse_text(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    char *copy = strdup(value);

    if (!copy)
        return -ENOMEM;
    clear_text(field);
    *(char **)field = copy;
    return 0;
}

static int parse_cpus(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    int r = values_cpus(value, field);

    return r < 0 ? r : config_type_check(r, ret_reason);
}

/* Returns why the path is not absolute, or NULL if it is. */
static const char *find_fault_in_path(const char *path)
{
    if (*path != '/')
        return "not an absolute path";
    return strlen(path) >= PATH_MAX ? "too long" : NULL;
}

static int parse_path(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    const char *fault = find_fault_in_path(value);

    return fault ? config_type_invalid(ret_reason, fault)
                 : parse_text(key, value, field, ret_reason);
}

static void clear_strv(void *field)
{
    *(config_strv *)field = strv_free(*(config_strv *)field);
}

static bool equal_strv(const void *a, const void *b)
{
    return strv_equal(*(char *const *const *)a, *(char *const *const *)b);
}

static uint64_t digest_strv(uint64_t digest, const void *field)
{
    return digest_strings(digest, *(char *const *const *)field);
}

static void clear_list(void *field)
{
    strings_clear(field);
}

static bool equal_list(const void *a, const void *b)
{
    return strv_equal(((const struct config_strings *)a)->strings,
                      ((const struct config_strings *)b)->strings);
}

static uint64_t digest_list(uint64_t digest, const void *field)
{
    return digest_strings(digest, ((const struct config_strings *)field)->strings);
}

int config_type_split(const char *value, bool command, config_strv *ret, const char **ret_reason)
{
    int r = words_split(value, command, ret, ret_reason);

    return r > 0 ? CONFIG_KEY_E_INVALID : r;
}

/* Refuses the prefixes of systemd (such as "-" and "@"), which have no meaning here. */
static const char *find_fault_in_program(const char *program)
{
    if (*program == '\0')
        return "the program is missing";
    if (strchr("-@+!:|", *program))
        return "the prefixes - @ + ! : | of systemd are not supported";
    if (strchr(program, '%'))
        return "the program itself cannot have specifiers";
    if (*program != '/' && strchr(program, '/'))
        return "the path of the program is not absolute";
    if (strlen(program) >= PATH_MAX)
        return "the path of the program is too long";
    return NULL;
}

static const char *find_fault_in_command(const config_strv words)
{
    const char *fault = words ? find_fault_in_program(words[0]) : "the program is missing";

    for (size_t i = 0; !fault && words[i]; i++)
        if (words_bad_specifier(words[i]))
            fault = "an unknown specifier (a per cent sign itself is written %%)";
    return fault;
}

static int parse_command(const struct config_key *key, const char *value, void *field,
                         const char **ret_reason)
{
    _cleanup_strv_ config_strv words = NULL;
    const char *fault;
    int r = config_type_split(value, true, &words, ret_reason);

    if (r != 0)
        return r;
    fault = find_fault_in_command(words);
    if (fault)
        return config_type_invalid(ret_reason, fault);
    clear_strv(field);
    *(config_strv *)field = TAKE_PTR(words);
    return 0;
}

static int add(struct config_strings *list, const char *text,
               int (*append)(struct config_strings *, const char *), const char **ret_reason)
{
    if (list->n >= STRINGS_MAX)
        return config_type_invalid(ret_reason, "more than 4096 in all");
    return append(list, text);
}

static int add_variable(struct config_strings *list, const char *word, const char **ret_reason)
{
    const size_t name_size = strcspn(word, "=");

    if (word[name_size] != '=')
        return config_type_invalid(ret_reason, "'=' is missing (quote a value that has spaces)");
    if (!envfile_name_valid(word, name_size))
        return config_type_invalid(ret_reason, "not the name of a variable");
    return add(list, word, strings_set, ret_reason);
}

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

bool config_name_valid(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= CONFIG_GROUP_NAME_MAX && strspn(name, LETTERS_AND_DIGITS) > 0 &&
           strspn(name, LETTERS_AND_DIGITS "_.@-") == length;
}

static int add_group(struct config_strings *list, const char *word, const char **ret_reason)
{
    if (!config_name_valid(word))
        return config_type_invalid(ret_reason, "not the name of a group");
    return strings_has(list, word) ? 0 : add(list, word, strings_set, ret_reason);
}

static int add_known(struct config_strings *list, const char *word, bool known, const char *fault,
                     const char **ret_reason)
{
    if (!known && strcmp(word, "~") != 0)
        return config_type_invalid(ret_reason, fault);
    return add(list, word, strings_append, ret_reason);
}

static int add_capability(struct config_strings *list, const char *word, const char **ret_reason)
{
    const bool known = strcmp(word, "none") == 0 || sandbox_capability(sandbox_word(word)) >= 0;

    return add_known(list, word, known, "unknown capability", ret_reason);
}

static int add_family(struct config_strings *list, const char *word, const char **ret_reason)
{
    const bool known = strcmp(word, "none") == 0 || sandbox_family(sandbox_word(word)) >= 0;

    return add_known(list, word, known, "unknown address family", ret_reason);
}

static int add_namespace(struct config_strings *list, const char *word, const char **ret_reason)
{
    const bool known =
        words_find("no, yes", word) >= 0 || sandbox_namespace(sandbox_word(word)) >= 0;

    return add_known(list, word, known, "unknown kind of namespaces", ret_reason);
}

static int add_architecture(struct config_strings *list, const char *word, const char **ret_reason)
{
    if (strcmp(word, "native") != 0)
        return config_type_invalid(ret_reason, "unknown");
    return add(list, word, strings_append, ret_reason);
}

static int add_syscall(struct config_strings *list, const char *word, const char **ret_reason)
{
    return add_known(list, word, sandbox_is_syscall(word),
                     "unknown system call, group or error, or an error in a line without ~",
                     ret_reason);
}

/* Gives each word of a line the "~" that the line begins with. */
static int parse_marked(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    const bool marked = *value == '~';
    _cleanup_strv_ config_strv words = NULL;
    int r = config_type_split(value + marked, false, &words, ret_reason);

    if (r == 0 && marked && !words)
        r = key->type->add(field, "~", ret_reason);
    for (size_t i = 0; r == 0 && words && words[i]; i++) {
        _cleanup_free_ char *word = NULL;

        if (asprintf(&word, "%s%s", marked ? "~" : "", words[i]) < 0)
            return -ENOMEM;
        r = key->type->add(field, word, ret_reason);
    }
    return r;
}

static int parse_words(const struct config_key *key, const char *value, void *field,
                       const char **ret_reason)
{
    _cleanup_strv_ config_strv words = NULL;
    int r = config_type_split(value, false, &words, ret_reason);

    for (size_t i = 0; r == 0 && words && words[i]; i++)
        r = key->type->add(field, words[i], ret_reason);
    return r;
}

static int add_path(struct config_strings *list, const char *word, const char **ret_reason)
{
    const char *fault;
    _cleanup_free_ char *path = strdup(word);

    if (!path)
        return -ENOMEM;
    path_simplify(path + (*path == '-'));
    fault = find_fault_in_path(path + (*path == '-'));
    if (!fault && path_has_dots(path + (*path == '-')))
        fault = "a path with . or ..";
    if (!fault && list->n >= PATHS_MAX)
        fault = "more than 100 in all";
    return fault ? config_type_invalid(ret_reason, fault) : strings_append(list, path);
}

static int parse_file(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    const char *fault = find_fault_in_path(*value == '-' ? value + 1 : value);

    return fault ? config_type_invalid(ret_reason, fault)
                 : add(field, value, strings_append, ret_reason);
}

static int parse_calendar(const struct config_key *key, const char *value, void *field,
                          const char **ret_reason)
{
    unsigned n_moments = 0;
    int r = values_calendar(value, &n_moments, ret_reason);

    if (r > 0)
        return CONFIG_KEY_E_INVALID;
    if (r == 0 && n_moments == 0)
        return config_type_invalid(ret_reason, "never comes");
    return r < 0 ? r : add(field, value, strings_append, ret_reason);
}

static int parse_moment(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    unsigned n_moments = 0;
    int r = values_calendar(value, &n_moments, ret_reason);

    if (r > 0)
        return CONFIG_KEY_E_INVALID;
    if (r == 0 && n_moments != 1)
        return config_type_invalid(ret_reason,
                                   n_moments == 0 ? "never comes" : "comes more than once");
    return r < 0 ? r : parse_text(key, value, field, ret_reason);
}

/* clang-format off */
#define OWNED(type_, function, what, ...)                                                          \
    {.size = sizeof(type_), .parse = (function), .clear = clear_##what, .equal = equal_##what,      \
     .digest = digest_##what, __VA_ARGS__}

const struct config_type CONFIG_TYPE_TEXT = OWNED(char *, parse_text, text);
const struct config_type CONFIG_TYPE_PATH = OWNED(char *, parse_path, text);
const struct config_type CONFIG_TYPE_CPUS = OWNED(char *, parse_cpus, text);
const struct config_type CONFIG_TYPE_COMMAND = OWNED(config_strv, parse_command, strv);
const struct config_type CONFIG_TYPE_FILES = OWNED(struct config_strings, parse_file, list);
const struct config_type CONFIG_TYPE_CALENDAR = OWNED(struct config_strings, parse_calendar, list);
const struct config_type CONFIG_TYPE_MOMENT = OWNED(char *, parse_moment, text);
const struct config_type CONFIG_TYPE_ENVIRONMENT = OWNED(struct config_strings, parse_words, list, .add = add_variable);
const struct config_type CONFIG_TYPE_PATHS = OWNED(struct config_strings, parse_words, list, .add = add_path);
const struct config_type CONFIG_TYPE_GROUPS = OWNED(struct config_strings, parse_words, list, .add = add_group);
#define MARKED(what) OWNED(struct config_strings, parse_marked, list, .add = add_##what)
const struct config_type CONFIG_TYPE_CAPABILITIES = MARKED(capability);
const struct config_type CONFIG_TYPE_FAMILIES = MARKED(family);
const struct config_type CONFIG_TYPE_NAMESPACES = MARKED(namespace);
const struct config_type CONFIG_TYPE_ARCHITECTURES = MARKED(architecture);
const struct config_type CONFIG_TYPE_SYSCALLS = MARKED(syscall);
/* clang-format on */
