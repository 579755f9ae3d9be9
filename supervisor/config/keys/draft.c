/* SPDX-License-Identifier: MIT */
#include "supervisor/config/keys/draft.h"

#include "shared/base/cleanup.h"
#include "shared/base/unitfile.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/config/syntax/suggest.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64 /* sections of a schema, or keys of a section */

struct config_draft *config_draft_new(const struct config_schema *schema, void *object,
                                      struct config_problems *problems)
{
    struct config_draft *draft = malloc(sizeof(*draft));

    if (!draft)
        return NULL;
    *draft = (struct config_draft){.schema = schema, .object = object, .problems = problems};
    draft->origins = calloc(schema->n_keys, sizeof(*draft->origins));
    return draft->origins ? draft : config_draft_free(draft);
}

struct config_draft *config_draft_free(struct config_draft *draft)
{
    if (!draft)
        return NULL;
    free(draft->origins);
    buffer_deinit(&draft->text);
    strv_free(draft->paths);
    free(draft);
    return NULL;
}

/* The file being read. */
static const char *path_of(const struct config_draft *draft)
{
    return draft->paths[strv_length(draft->paths) - 1];
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

/* An unknown key of a section or, with `section` NULL, an unknown section. `what` says which. */
static int unknown_word(struct config_draft *draft, unsigned line, const char *word,
                        const char *section, const char *what)
{
    const char *words[WORDS_MAX + 1], *nearest, *open = section ? "" : "[",
                                                *close = section ? "" : "]";
    char allowed[768] = "";
    size_t used = 0;

    collect(draft->schema, section, words);
    nearest = suggest_nearest(word, words);
    if (nearest)
        return config_problem_add(draft->problems, path_of(draft), line, "%s; did you mean %s%s%s?",
                                  what, section ? "'" : open, nearest, section ? "'" : close);
    for (size_t i = 0; words[i] && used < sizeof(allowed); i++)
        used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s%s%s",
                                 i > 0 ? ", " : "", open, words[i], close);
    return config_problem_add(draft->problems, path_of(draft), line, "%s; allowed: %s", what,
                              allowed);
}

static int on_section(void *userdata, unsigned line, const char *section)
{
    struct config_draft *draft = userdata;
    char what[128];
    int r;

    for (size_t i = 0; i < draft->schema->n_keys; i++)
        if (strcmp(draft->schema->keys[i].section, section) == 0)
            return 0;
    (void)snprintf(what, sizeof(what), "unknown section [%.80s]", section);
    r = unknown_word(draft, line, section, NULL, what);
    return r < 0 ? r : UNITFILE_E_SKIP;
}

static int unknown_key(struct config_draft *draft, const struct unitfile_assignment *assignment,
                       const struct config_key *elsewhere)
{
    char what[192];

    (void)snprintf(what, sizeof(what), "unknown key '%.80s' in [%.80s]", assignment->key,
                   assignment->section);
    if (!elsewhere)
        return unknown_word(draft, assignment->line, assignment->key, assignment->section, what);
    return config_problem_add(draft->problems, path_of(draft), assignment->line,
                              "%s; it belongs in [%s]", what, elsewhere->section);
}

/* Returns 0 or -ENOMEM. */
static int note_assignment(struct config_draft *draft, const struct unitfile_assignment *assignment)
{
    const char *const parts[] = {"[", assignment->section, "]\n", assignment->key,
                                 "=", assignment->value,   "\n"};

    for (size_t i = 0; i < ELEMENTS(parts); i++)
        buffer_add_string(&draft->text, parts[i]);
    return draft->text.failed ? -ENOMEM : 0;
}

static int on_assignment(void *userdata, const struct unitfile_assignment *assignment)
{
    struct config_draft *draft = userdata;
    const struct config_key *key = config_schema_find(draft->schema, assignment->key);
    const char *path = path_of(draft), *reason = "no valid value";
    int r;

    if (!key || strcmp(key->section, assignment->section) != 0)
        return unknown_key(draft, assignment, key);
    /* A wrong key counts as given: no second problem says that it is missing. */
    draft->origins[key - draft->schema->keys] = *assignment->value
                                                    ? (struct config_origin){path, assignment->line}
                                                    : (struct config_origin){0};
    r = note_assignment(draft, assignment);
    if (r == 0)
        r = config_key_assign(key, draft->object, assignment->value, &reason);
    if (r != CONFIG_KEY_E_INVALID)
        return r;
    return config_problem_add(draft->problems, path, assignment->line, "%s=%.80s: %s; allowed: %s",
                              key->name, assignment->value, reason, key->allowed);
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    struct config_draft *draft = userdata;

    return config_problem_add(draft->problems, path_of(draft), line, "%s", text);
}

int config_draft_parse(struct config_draft *draft, const char *path, const char *text, size_t size)
{
    const struct unitfile_handlers handlers = {
        .section = on_section,
        .assignment = on_assignment,
        .problem = on_problem,
        .userdata = draft,
    };
    int r = strv_append(&draft->paths, path);

    return r < 0 ? r : unitfile_parse(text, size, &handlers);
}

int config_draft_read(struct config_draft *draft, const char *path)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = unitfile_read(path, &text, &size);

    if (r == 0)
        return config_draft_parse(draft, path, text, size);
    if (r == UNITFILE_E_TOO_LARGE)
        return config_problem_add(draft->problems, path, 0, "too large; allowed: up to %zu KiB",
                                  UNITFILE_SIZE_MAX / 1024);
    if (r == UNITFILE_E_NOT_REGULAR)
        return config_problem_add(draft->problems, path, 0, "not a regular file");
    if (r == -ENOMEM || r == -ENOENT || r == -EMFILE || r == -ENFILE)
        return r;
    return config_problem_add(draft->problems, path, 0, "cannot be read: %s", strerror(-r));
}

static const struct config_origin *origin_of(const struct config_draft *draft, const char *key)
{
    return &draft->origins[config_schema_find(draft->schema, key) - draft->schema->keys];
}

bool config_draft_given(const struct config_draft *draft, const char *key)
{
    return origin_of(draft, key)->path != NULL;
}

int config_draft_problem(struct config_draft *draft, const char *key, const char *format, ...)
{
    const struct config_origin *origin = origin_of(draft, key);
    va_list arguments;
    int r;

    va_start(arguments, format);
    r = config_problem_add_list(draft->problems, origin->path ? origin->path : draft->paths[0],
                                origin->line, format, arguments);
    va_end(arguments);
    return r;
}
