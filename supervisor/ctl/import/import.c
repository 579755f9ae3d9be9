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

void import_mistake(struct import *import, const struct import_setting *place, const char *format,
                    ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    import->n_mistakes++;
    if (place->line > 0)
        complain("%s:%u: %s", place->path, place->line, text);
    else
        complain("%s: %s", place->path, text);
}

const char *import_read(struct import *import, const char *path)
{
    const struct import_setting place = {.path = path};
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct buffer buffer = BUFFER_NULL;
    int r = fd < 0 ? -errno : buffer_read(&buffer, fd);

    if (r < 0)
        import_mistake(import, &place, "%s", strerror(-r));
    else if (buffer.size > INPUT_MAX)
        import_mistake(import, &place, "too large; allowed: up to 1 MiB");
    else if (!utf8_is_text(buffer.bytes, buffer.size))
        import_mistake(import, &place, "not valid UTF-8, or with a NUL byte");
    else
        return import_take(import, &buffer);
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

bool import_begin(struct import_unit *unit, const char *name, const char *suffix,
                  const struct import_setting *place)
{
    struct import *import = unit->import;
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
        return false;
    }
    *(import->last ? &import->last->next : &import->files) = file;
    import->last = unit->file = file;
    return true;
}

/* Adds a line to the text of the key's section, in which control characters are spaces. */
static void add_line(const struct import_unit *unit, const struct config_key *key, const char *text)
{
    const struct config_key *first = unit->file->schema->keys;
    struct buffer *buffer = unit->file->texts;

    for (; key > first; key--)
        buffer += strcmp(key->section, key[-1].section) != 0;
    for (; *text != '\0'; text++)
        buffer_add_char(buffer, iscntrl((unsigned char)*text) ? ' ' : *text);
    buffer_add_char(buffer, '\n');
    unit->import->failed = unit->import->failed || buffer->failed;
}

void import_remark(struct import_unit *unit, const char *text)
{
    add_line(unit, unit->file->schema->keys, import_text(unit->import, "# %s", text));
}

void import_leave(struct import_unit *unit, const struct import_setting *setting,
                  const char *instead)
{
    struct import *import = unit->import;
    const char *text =
        import_text(import, "%s%s%s", setting->key, *setting->key ? "=" : "", setting->value);

    import->n_left++;
    if (!import->quiet)
        complain("%s:%u: not imported: %.200s; instead: %s", setting->path, setting->line, text,
                 instead);
    if (!unit->file)
        return;
    import_remark(
        unit, import_text(import, "Not imported (%s:%u): %s", setting->path, setting->line, text));
    import_remark(unit, import_text(import, "  Instead: %s", instead));
}

void import_set(struct import_unit *unit, const struct import_setting *setting, const char *key,
                const char *value)
{
    struct import_file *file = unit->file;
    const struct config_key *known = config_schema_find(file->schema, key);
    const char *reason = "";
    int r = known ? config_key_assign(known, &file->object, value, &reason) : CONFIG_KEY_E_INVALID;

    unit->import->failed = unit->import->failed || r < 0;
    if (!known)
        import_leave(unit, setting, "no counterpart");
    else if (r == CONFIG_KEY_E_INVALID &&
             import_matches("ExecStart On*", key)) /* the file needs it */
        import_mistake(unit->import, setting, "%s: %s", setting->key, reason);
    else if (r == CONFIG_KEY_E_INVALID)
        import_leave(
            unit, setting,
            import_text(unit->import, "%s=, %s; allowed: %s", key, reason, known->allowed));
    else
        add_line(unit, known, import_text(unit->import, "%s=%s", key, value));
}

void import_user(struct import_unit *unit, const struct import_setting *setting, const char *user)
{
    if (!user)
        user = unit->import->user ? unit->import->user : "root";
    if (strcmp(user, "root") == 0 || strcmp(user, "0") == 0) {
        import_remark(unit, "As before, this runs as root.");
        if (!unit->import->quiet)
            complain("%s%s runs as root, as before", unit->file->name, unit->file->suffix);
    }
    import_set(unit, setting, "User", user);
}

void import_command(struct import_unit *unit, const struct import_setting *setting,
                    const char *command)
{
    if (unit->is_job) {
        command =
            import_text(unit->import, TROUPE_LIBEXECDIR "/troupe-exec --literal -- %s", command);
        import_set(unit, setting, "MaxRetries", "0");
    }
    import_set(unit, setting, "ExecStart", command);
}

/* ---- command lines ---- */

const char *import_quote(struct import *import, const char *word)
{
    struct buffer buffer = BUFFER_NULL;
    const char quote = strpbrk(word, "'\n") ? '"' : '\'';
    bool plain = *word != '\0';
    char escape[8];

    for (const char *at = word; *at != '\0'; at++)
        plain = plain && !strchr(" '\"\\", *at) && !iscntrl((unsigned char)*at);
    if (plain)
        return word;
    buffer_add_char(&buffer, quote);
    for (const char *at = word; *at != '\0'; at++) {
        (void)snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*at);
        if (*at == '\n')
            buffer_add_string(&buffer, "\\n");
        else if (iscntrl((unsigned char)*at) && isascii(*at))
            buffer_add_string(&buffer, escape);
        else if (*at == '\\' || *at == quote)
            buffer_add(&buffer, (const char[]){'\\', *at}, 2);
        else
            buffer_add_char(&buffer, *at);
    }
    buffer_add_char(&buffer, quote);
    return import_take(import, &buffer);
}

const char *import_shell(struct import *import, const char *shell, const char *script)
{
    return import_text(import, "%s -c %s", import_quote(import, shell),
                       import_quote(import, script));
}

/* ---- settings ---- */

void import_add(struct import_unit *unit, struct import_setting setting)
{
    struct import_settings *settings = &unit->settings;
    struct import_setting *items = reallocarray(settings->items, settings->n + 1, sizeof(*items));

    unit->import->failed = unit->import->failed || !items;
    if (!items)
        return;
    items[settings->n++] = setting;
    settings->items = items;
}

const struct import_setting *import_find(const struct import_unit *unit, const char *section,
                                         const char *key)
{
    const struct import_setting *items = unit->settings.items;

    for (size_t i = unit->settings.n; i-- > 0;)
        if ((!section || strcmp(items[i].section, section) == 0) &&
            strcasecmp(items[i].key, key) == 0)
            return &items[i];
    return NULL;
}

const char *import_value(const struct import_unit *unit, const char *section, const char *key,
                         const char *otherwise)
{
    const struct import_setting *found = import_find(unit, section, key);

    return found && *found->value != '\0' ? found->value : otherwise;
}

bool import_matches(const char *patterns, const char *key)
{
    char pattern[64];
    int n;

    for (; sscanf(patterns, " %63s%n", pattern, &n) == 1; patterns += n)
        if (fnmatch(pattern, key, FNM_CASEFOLD) == 0)
            return true;
    return false;
}

bool import_is_true(const char *value)
{
    return import_matches("yes true on 1", value);
}

/* Writes the keys, with a value that is expanded and in which "true" is "yes". */
static void set_same(struct import_unit *unit, const struct import_setting *setting,
                     const char *keys)
{
    const char *value = unit->expand(unit, setting, setting->value);
    char key[64];
    int n;

    for (; sscanf(keys, " %63s%n", key, &n) == 1; keys += n) {
        const struct config_key *known = config_schema_find(unit->file->schema, key);
        const bool is_switch = known && strstr(known->allowed, "yes");

        if (!value || !known)
            import_leave(unit, setting,
                         import_text(unit->import, "%s= with the value itself", key));
        else if (is_switch && import_is_true(value))
            import_set(unit, setting, key, "yes");
        else
            import_set(unit, setting, key,
                       is_switch && import_matches("no false off 0", value) ? "no" : value);
    }
}

static void convert(struct import_unit *unit, const struct import_setting *setting,
                    const struct import_rule *rule, const struct import_rule *end)
{
    const bool known = config_schema_find(unit->file->schema, setting->key);

    /* A rule that leaves settings out does not apply to a key that the file also has. */
    while (rule < end &&
           (!import_matches(rule->keys, setting->key) || (known && rule->instead && !rule->fine)))
        rule++;
    if (rule == end && known)
        set_same(unit, setting, setting->key);
    else if (rule == end)
        import_leave(unit, setting, "no counterpart");
    else if (rule->fine && import_matches(rule->fine, setting->value))
        return;
    else if (rule->convert)
        rule->convert(unit, setting);
    else if (rule->same)
        set_same(unit, setting, unit->is_job && rule->job ? rule->job : rule->same);
    else if (rule->instead)
        import_leave(unit, setting, rule->instead);
}

void import_convert(struct import_unit *unit, const struct import_rule *rules, size_t n_rules)
{
    const struct import_setting *items = unit->settings.items;

    for (size_t i = 0; i < unit->settings.n; i++)
        if (*items[i].key != '\0' &&
            (!unit->section || strcmp(items[i].section, unit->section) == 0))
            convert(unit, &items[i], rules, rules + n_rules);
}
