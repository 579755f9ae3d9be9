/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/import/import.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/ctl/text/terminal.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define INPUT_MAX ((size_t)1 << 20)

void import_deinit(struct import *import)
{
    while (import->files) {
        struct import_file *file = import->files;

        import->files = file->next;
        config_schema_clear(file->schema, &file->object);
        for (size_t i = 0; i < ELEMENTS(file->texts); i++)
            buffer_deinit(&file->texts[i]);
        free(file);
    }
    while (import->n_texts > 0)
        free(import->texts[--import->n_texts]);
    free(import->texts);
    *import = (struct import)IMPORT_NULL;
}

/* Takes ownership of `text`; NULL = out of memory. */
static const char *keep(struct import *import, char *text)
{
    char **texts = reallocarray(import->texts, import->n_texts + 1, sizeof(*texts));

    if (texts)
        import->texts = texts;
    if (!texts || !text) {
        free(text);
        import->failed = true;
        return "";
    }
    texts[import->n_texts++] = text;
    return text;
}

const char *import_text(struct import *import, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return keep(import, text);
}

const char *import_take(struct import *import, struct buffer *buffer)
{
    return keep(import, buffer_take(buffer, NULL));
}

void import_add(struct import *import, struct import_settings *settings,
                struct import_setting setting)
{
    struct import_setting *items = reallocarray(settings->items, settings->n + 1, sizeof(*items));

    import->failed = import->failed || !items;
    if (!items)
        return;
    items[settings->n++] = setting;
    settings->items = items;
}

/* ---- files ---- */

const char *import_name(struct import *import, const char *name, const char *suffix)
{
    const bool job = strcmp(suffix, CONFIG_SCHEDULE_SUFFIX) == 0;
    const int max = (job ? CONFIG_SCHEDULE_NAME_MAX : CONFIG_GROUP_NAME_MAX) - 4; /* for "-999" */
    char *made;

    while (*name != '\0' && !isalnum((unsigned char)*name))
        name++;
    made = (char *)(uintptr_t)import_text(import, "%.*s", max, *name != '\0' ? name : "unnamed");
    for (char *at = made; *at != '\0'; at++)
        if (!isascii(*at) || (!isalnum(*at) && !strchr(job ? "_.-" : "_.@-", *at)))
            *at = '-';
    return made;
}

static bool is_taken(const struct import *import, const char *name, const char *suffix)
{
    for (const struct import_file *file = import->files; file; file = file->next)
        if (strcmp(file->name, name) == 0 && strcmp(file->suffix, suffix) == 0)
            return true;
    return false;
}

struct import_file *import_file(struct import *import, const char *name, const char *suffix,
                                const struct import_setting *place)
{
    struct import_file *file = calloc(1, sizeof(*file));
    const char *base = import_name(import, name, suffix);

    if (file) {
        file->schema = strcmp(suffix, CONFIG_GROUP_SUFFIX) == 0 ? &CONFIG_GROUP_SCHEMA
                                                                : &CONFIG_SCHEDULE_SCHEMA;
        file->suffix = suffix;
        file->name = base;
        for (unsigned i = 2; is_taken(import, file->name, suffix) && !import->failed; i++)
            file->name = import_text(import, "%s-%u", base, i);
        file->from =
            import_text(import, place->line > 0 ? "%s:%u" : "%s", place->path, place->line);
    }
    if (!file || config_schema_defaults(file->schema, &file->object) < 0) {
        free(file);
        import->failed = true;
        return NULL;
    }
    *(import->last ? &import->last->next : &import->files) = file;
    return import->last = file;
}

/* The text of a section; of the first one, if this kind of file has no such section. */
static struct buffer *text_of(struct import_file *file, const char *section)
{
    const struct config_key *key = file->schema->keys, *end = key + file->schema->n_keys;

    for (size_t n = 0; key < end; key++) {
        n += key > file->schema->keys && strcmp(key->section, key[-1].section) != 0;
        if (strcmp(key->section, section) == 0)
            return &file->texts[n];
    }
    return &file->texts[0];
}

/* Adds a line, in which control characters are spaces. */
static void add_line(struct import *import, struct import_file *file, const char *section,
                     const char *text)
{
    struct buffer *buffer = text_of(file, section);

    for (; *text != '\0'; text++)
        buffer_add_char(buffer, iscntrl((unsigned char)*text) ? ' ' : *text);
    buffer_add_char(buffer, '\n');
    import->failed = import->failed || buffer->failed;
}

void import_remark(struct import *import, struct import_file *file, const char *section,
                   const char *text)
{
    add_line(import, file, section, import_text(import, "# %s", text));
}

void import_leave(struct import *import, struct import_file *file, const char *section,
                  const struct import_setting *setting, const char *instead)
{
    const char *text =
        import_text(import, "%s%s%s", setting->key, *setting->key ? "=" : "", setting->value);

    import->n_left++;
    if (!import->quiet)
        complain("%s:%u: not imported: %.200s; instead: %s", setting->path, setting->line, text,
                 instead);
    if (!file)
        return;
    add_line(import, file, section,
             import_text(import, "# Not imported (%s:%u): %s", setting->path, setting->line, text));
    add_line(import, file, section, import_text(import, "#   Instead: %s", instead));
}

void import_set(struct import *import, struct import_file *file,
                const struct import_setting *setting, const char *key, const char *value)
{
    const struct config_key *known = config_schema_find(file->schema, key);
    const char *reason = "";
    int r = known ? config_key_assign(known, &file->object, value, &reason) : CONFIG_KEY_E_INVALID;

    import->failed = import->failed || r < 0;
    if (!known)
        import_leave(import, file, "", setting, "no counterpart");
    else if (r == CONFIG_KEY_E_INVALID &&
             import_matches("ExecStart On*", key)) /* the file needs it */
        import_mistake(import, setting->path, setting->line, "%s: %s", setting->key, reason);
    else if (r == CONFIG_KEY_E_INVALID)
        import_leave(import, file, known->section, setting,
                     import_text(import, "%s=, %s; allowed: %s", key, reason, known->allowed));
    else
        add_line(import, file, known->section, import_text(import, "%s=%s", key, value));
}

void import_mistake(struct import *import, const char *path, unsigned line, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    import->n_mistakes++;
    if (line > 0)
        complain("%s:%u: %s", path, line, text);
    else
        complain("%s: %s", path, text);
}

/* ---- input ---- */

const char *import_read(struct import *import, const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct buffer buffer = BUFFER_NULL;
    int r = fd < 0 ? -errno : buffer_read(&buffer, fd);
    unsigned line = 1;

    if (r < 0) {
        import_mistake(import, path, 0, "%s", strerror(-r));
    } else if (buffer.size > INPUT_MAX) {
        import_mistake(import, path, 0, "too large; allowed: up to 1 MiB");
    } else if (!utf8_is_text(buffer.bytes, buffer.size)) {
        for (size_t i = 0, n;
             i < buffer.size && (n = utf8_character(&buffer.bytes[i], buffer.size - i)) > 0 &&
             buffer.bytes[i];
             i += n)
            line += buffer.bytes[i] == '\n';
        import_mistake(import, path, line, "not valid UTF-8, or with a NUL byte");
    } else {
        return import_take(import, &buffer);
    }
    buffer_deinit(&buffer);
    return NULL;
}

const char *import_line(struct import *import, const char **at)
{
    size_t size = strcspn(*at, "\n");
    const char *text = *at;

    if (*text == '\0')
        return NULL;
    *at += size + (text[size] == '\n');
    size -= size > 0 && text[size - 1] == '\r';
    return import_text(import, "%.*s", (int)size, text);
}

void import_user(struct import *import, struct import_file *file,
                 const struct import_setting *setting, const char *user)
{
    if (!user)
        user = import->user ? import->user : "root";
    if (strcmp(user, "root") == 0 || strcmp(user, "0") == 0) {
        import_remark(import, file, "Group", "As before, this runs as root.");
        if (!import->quiet)
            complain("%s%s runs as root, as before", file->name, file->suffix);
    }
    import_set(import, file, setting, "User", user);
}

void import_job(struct import *import, struct import_file *file,
                const struct import_setting *setting, const char *command)
{
    import_set(import, file, setting, "ExecStart",
               import_text(import, TROUPE_LIBEXECDIR "/troupe-exec --literal -- %s", command));
    import_set(import, file, setting, "MaxRetries", "0");
}

/* ---- programs that have settings with names ---- */

const struct import_setting *import_find(const struct import_settings *settings,
                                         const char *section, const char *key)
{
    for (size_t i = settings->n; i-- > 0;)
        if ((!section || strcmp(settings->items[i].section, section) == 0) &&
            strcasecmp(settings->items[i].key, key) == 0)
            return &settings->items[i];
    return NULL;
}

const char *import_value(const struct import_settings *settings, const char *section,
                         const char *key, const char *otherwise)
{
    const struct import_setting *found = import_find(settings, section, key);

    return found && *found->value != '\0' ? found->value : otherwise;
}

static bool is_one_of(const char *value, const char *const words[4])
{
    return strcasecmp(value, words[0]) == 0 || strcasecmp(value, words[1]) == 0 ||
           strcasecmp(value, words[2]) == 0 || strcmp(value, words[3]) == 0;
}

bool import_is_true(const char *value)
{
    return is_one_of(value, (const char *const[]){"yes", "true", "on", "1"});
}

bool import_matches(const char *patterns, const char *key)
{
    char pattern[64];
    int n;

    for (; sscanf(patterns, " %63s%n", pattern, &n) == 1; patterns += n)
        if (fnmatch(pattern, key, 0) == 0)
            return true;
    return false;
}

void import_set_same(struct import_unit *unit, const struct import_setting *setting,
                     const char *key)
{
    const struct config_key *known = config_schema_find(unit->file->schema, key);
    const char *value = unit->expand(unit, setting, setting->value);

    if (!value || !known) {
        import_leave(unit->import, unit->file, known ? known->section : "", setting,
                     import_text(unit->import, "%s= with the value itself", key));
        return;
    }
    if (strstr(known->allowed, "yes") && import_is_true(value))
        value = "yes";
    if (strstr(known->allowed, "yes") &&
        is_one_of(value, (const char *const[]){"no", "false", "off", "0"}))
        value = "no";
    import_set(unit->import, unit->file, setting, key, value);
}

static void convert(struct import_unit *unit, const struct import_setting *setting,
                    const struct import_rule *rule, const struct import_rule *end)
{
    const bool known = config_schema_find(unit->file->schema, setting->key);

    /* A pattern does not stand for a key that is the same here. */
    while (rule < end && (!import_matches(rule->keys, setting->key) || (known && rule->instead)))
        rule++;
    if (rule == end && known)
        import_set_same(unit, setting, setting->key);
    else if (rule == end)
        import_leave(unit->import, unit->file, "", setting, "no counterpart");
    else if (rule->convert)
        rule->convert(unit, setting);
    else if (rule->same)
        import_set_same(unit, setting, rule->same);
    else if (rule->instead)
        import_leave(unit->import, unit->file, rule->section, setting, rule->instead);
}

void import_convert(struct import_unit *unit, const struct import_rule *rules, size_t n_rules)
{
    for (size_t i = 0; i < unit->settings->n; i++)
        if (!unit->section || strcmp(unit->settings->items[i].section, unit->section) == 0)
            convert(unit, &unit->settings->items[i], rules, rules + n_rules);
}
