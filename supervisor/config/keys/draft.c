/* SPDX-License-Identifier: MIT */
#include "supervisor/config/keys/draft.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/syntax/strv.h"
#include "supervisor/config/syntax/suggest.h"
#include "supervisor/config/syntax/unitfile.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64 /* sections of a schema, or keys of a section */

/* One file being read. */
struct reading {
    struct config_draft *draft;
    const char *path;
};

int config_draft_init(struct config_draft *draft, const struct config_schema *schema, void *object,
                      struct config_problems *problems)
{
    *draft = (struct config_draft){.schema = schema, .object = object, .problems = problems};
    draft->origins = calloc(schema->n_keys, sizeof(*draft->origins));
    return draft->origins ? 0 : -ENOMEM;
}

void config_draft_deinit(struct config_draft *draft)
{
    free(draft->origins);
    strv_free(draft->paths);
    *draft = (struct config_draft)CONFIG_DRAFT_NULL;
}

struct config_draft *config_draft_keep(struct config_draft *draft)
{
    struct config_draft *kept = malloc(sizeof(*kept));

    if (!kept)
        return NULL;
    *kept = *draft;
    kept->problems = NULL;
    *draft = (struct config_draft)CONFIG_DRAFT_NULL;
    return kept;
}

struct config_draft *config_draft_free(struct config_draft *draft)
{
    if (draft)
        config_draft_deinit(draft);
    free(draft);
    return NULL;
}

/* The names of all sections, or of all keys of one section, once each and NULL-terminated. */
static void collect(const struct config_schema *schema, const char *section, const char **words)
{
    size_t n = 0;

    for (size_t i = 0; i < schema->n_keys && n < WORDS_MAX; i++) {
        const struct config_key *key = &schema->keys[i];

        if (section && strcmp(key->section, section) == 0)
            words[n++] = key->name;
        else if (!section && (n == 0 || strcmp(words[n - 1], key->section) != 0))
            words[n++] = key->section;
    }
    words[n] = NULL;
}

/* "Size, MaxJobs"; with brackets for sections. */
static void join(char *text, size_t size, const char *const *words, bool brackets)
{
    size_t used = 0;

    *text = '\0';
    for (size_t i = 0; words[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", i > 0 ? ", " : "",
                                 brackets ? "[" : "", words[i], brackets ? "]" : "");
}

static int on_section(void *userdata, unsigned line, const char *section)
{
    struct reading *reading = userdata;
    struct config_draft *draft = reading->draft;
    const char *words[WORDS_MAX + 1], *nearest;
    char allowed[512];
    int r;

    if (config_schema_has_section(draft->schema, section))
        return 0;
    collect(draft->schema, NULL, words);
    nearest = suggest_nearest(section, words);
    join(allowed, sizeof(allowed), words, true);
    if (nearest)
        r = config_problem_add(draft->problems, reading->path, line,
                               "unknown section [%.80s]; did you mean [%s]?", section, nearest);
    else
        r = config_problem_add(draft->problems, reading->path, line,
                               "unknown section [%.80s]; allowed: %s", section, allowed);
    return r < 0 ? r : UNITFILE_E_SKIP;
}

/* A key of that name in any section, or NULL. */
static const struct config_key *find_anywhere(const struct config_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->n_keys; i++)
        if (strcmp(schema->keys[i].name, name) == 0)
            return &schema->keys[i];
    return NULL;
}

static int unknown_key(struct reading *reading, const struct unitfile_assignment *assignment)
{
    struct config_draft *draft = reading->draft;
    const struct config_key *elsewhere;
    const char *words[WORDS_MAX + 1], *nearest;
    const char *key = assignment->key, *section = assignment->section;
    char allowed[768];

    elsewhere = find_anywhere(draft->schema, key);
    if (elsewhere)
        return config_problem_add(draft->problems, reading->path, assignment->line,
                                  "unknown key '%.80s' in [%s]; it belongs in [%s]", key, section,
                                  elsewhere->section);
    collect(draft->schema, section, words);
    nearest = suggest_nearest(key, words);
    if (nearest)
        return config_problem_add(draft->problems, reading->path, assignment->line,
                                  "unknown key '%.80s' in [%s]; did you mean '%s'?", key, section,
                                  nearest);
    join(allowed, sizeof(allowed), words, false);
    return config_problem_add(draft->problems, reading->path, assignment->line,
                              "unknown key '%.80s' in [%s]; allowed: %s", key, section, allowed);
}

static int on_assignment(void *userdata, const struct unitfile_assignment *assignment)
{
    struct reading *reading = userdata;
    struct config_draft *draft = reading->draft;
    const struct config_key *key;
    struct config_origin *origin;
    const char *reason = "no valid value";
    int r;

    key = config_schema_find(draft->schema, assignment->section, assignment->key);
    if (!key)
        return unknown_key(reading, assignment);
    /* A wrong key counts as given: no second problem says that it is missing. */
    origin = &draft->origins[key - draft->schema->keys];
    *origin = *assignment->value
                  ? (struct config_origin){.path = reading->path, .line = assignment->line}
                  : (struct config_origin){0};
    r = config_key_assign(key, draft->object, assignment->value, &reason);
    if (r != CONFIG_KEY_E_INVALID)
        return r;
    return config_problem_add(draft->problems, reading->path, assignment->line,
                              "%s=%.80s: %s; allowed: %s", key->name, assignment->value, reason,
                              key->allowed);
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    struct reading *reading = userdata;

    return config_problem_add(reading->draft->problems, reading->path, line, "%s", text);
}

/* Reads `size` bytes of a file; `path` is for messages. Returns 0 or -ENOMEM. */
static int parse(struct config_draft *draft, const char *path, const char *text, size_t size)
{
    struct reading reading = {.draft = draft};
    const struct unitfile_handlers handlers = {
        .section = on_section,
        .assignment = on_assignment,
        .problem = on_problem,
        .userdata = &reading,
    };
    int r = strv_append(&draft->paths, path);

    if (r < 0)
        return r;
    reading.path = draft->paths[strv_length((const char *const *)draft->paths) - 1];
    return unitfile_parse(text, size, &handlers);
}

int config_draft_read(struct config_draft *draft, const char *path)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = unitfile_read(path, &text, &size);

    if (r == 0)
        return parse(draft, path, text, size);
    if (r == UNITFILE_E_TOO_LARGE)
        return config_problem_add(draft->problems, path, 0, "too large; allowed: up to %zu KiB",
                                  UNITFILE_SIZE_MAX / 1024);
    if (r == UNITFILE_E_NOT_REGULAR)
        return config_problem_add(draft->problems, path, 0, "not a regular file");
    if (r == -ENOMEM || r == -ENOENT || r == -EMFILE || r == -ENFILE)
        return r;
    return config_problem_add(draft->problems, path, 0, "cannot be read: %s", strerror(-r));
}

static const struct config_origin *origin_of(const struct config_draft *draft, const char *section,
                                             const char *name)
{
    const struct config_key *key = config_schema_find(draft->schema, section, name);
    static const struct config_origin none;

    return key ? &draft->origins[key - draft->schema->keys] : &none;
}

bool config_draft_given(const struct config_draft *draft, const char *section, const char *name)
{
    return origin_of(draft, section, name)->path != NULL;
}

int config_draft_problem(struct config_draft *draft, const char *section, const char *name,
                         const char *format, ...)
{
    const struct config_origin *origin = origin_of(draft, section, name);
    char text[1024];
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (size < 0)
        return -errno;
    return config_problem_add(draft->problems, origin->path ? origin->path : draft->paths[0],
                              origin->line, "%s", text);
}
