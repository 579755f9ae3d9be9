/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/import/import-systemd-unit.h"

#include "shared/base/cleanup.h"
#include "shared/base/unitfile.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/syntax/strings.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The strongest first. */
static const char *const DIRECTORIES[] = {"/etc/systemd/system/", "/run/systemd/system/",
                                          "/usr/local/lib/systemd/system/",
                                          "/usr/lib/systemd/system/"};

/* ---- reading ---- */

static int on_section(void *userdata, unsigned line, const char *section)
{
    (void)userdata;
    (void)line;
    return strcmp(section, "Install") == 0 || strncmp(section, "X-", 2) == 0 ? UNITFILE_E_SKIP : 0;
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    struct systemd_unit *unit = userdata;

    import_mistake(unit->base.import, unit->path, line, "%s", text);
    return 0;
}

/* Whether assignments of the key add up. */
static bool is_list(const char *name)
{
    const struct config_key *key = config_schema_find(&CONFIG_GROUP_SCHEMA, name);

    if (import_matches("Type Restart* Timeout* RuntimeMaxSec Standard* DynamicUser", name))
        return false;
    if (!key || strcmp(name, "ExecStart") == 0)
        key = config_schema_find(&CONFIG_SCHEDULE_SCHEMA, name);
    return !key || key->size == sizeof(struct config_strings) ||
           key->size == sizeof(struct config_statuses);
}

/* An empty assignment resets a list, and so does each one of a key that is none. */
static int on_assignment(void *userdata, const struct unitfile_assignment *assignment)
{
    struct systemd_unit *unit = userdata;
    struct import *import = unit->base.import;
    struct import_settings *settings = &unit->settings;
    size_t n = 0;

    for (size_t i = 0; i < settings->n; i++)
        if (strcmp(settings->items[i].key, assignment->key) != 0 ||
            (*assignment->value != '\0' && is_list(assignment->key)))
            settings->items[n++] = settings->items[i];
    settings->n = n;
    if (*assignment->value != '\0' || strcmp(assignment->key, "CapabilityBoundingSet") == 0)
        import_add(import, settings,
                   (struct import_setting){import_text(import, "%s", assignment->section),
                                           import_text(import, "%s", assignment->key),
                                           import_text(import, "%s", assignment->value), unit->path,
                                           assignment->line});
    return import->failed ? -ENOMEM : 0;
}

/* Returns false if there is no such file; another failure is a mistake. */
static bool read_file(struct systemd_unit *unit, const char *path)
{
    const struct unitfile_handlers handlers = {.section = on_section,
                                               .assignment = on_assignment,
                                               .problem = on_problem,
                                               .userdata = unit};
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = unitfile_read(path, &text, &size);

    if (r == -ENOENT)
        return false;
    unit->path = path;
    if (r == 0)
        (void)unitfile_parse(text, size, &handlers);
    else
        import_mistake(unit->base.import, path, 0, "%s",
                       r < 0 ? strerror(-r) : "not a regular file: the unit is masked, or none");
    return true;
}

static void read_drop_ins(struct systemd_unit *unit, const char *directory, const char *name)
{
    const char *path = import_text(unit->base.import, "%s%s.d", directory, name);
    _cleanup_strv_ config_strv names = NULL;

    (void)config_list(path, CONFIG_DROPIN_SUFFIX, &names);
    for (size_t i = 0; names && names[i]; i++)
        (void)read_file(unit, import_text(unit->base.import, "%s/%s", path, names[i]));
}

void systemd_unit_read(struct systemd_unit *unit, const char *path, const char *suffix)
{
    struct import *import = unit->base.import;
    const char *name = basename(path), *at = strchr(name, '@');
    const char *own = import_text(import, "%.*s", (int)(name - path), path);
    const char *names[2] = {name, name}, *directories[ELEMENTS(DIRECTORIES) + 1] = {own};
    size_t n = 1;

    unit->base.settings = &unit->settings;
    unit->name = name;
    unit->stem = import_text(import, "%.*s", (int)(strlen(name) - strlen(suffix)), name);
    unit->prefix = unit->stem;
    if (at && unit->stem[at - name + 1] != '\0') {
        unit->instance = unit->stem + (at - name) + 1;
        unit->prefix = import_text(import, "%.*s", (int)(at - name), name);
        names[1] = import_text(import, "%s@%s", unit->prefix, suffix);
    }
    const bool here = *own != '\0' || access(names[0], F_OK) == 0 || access(names[1], F_OK) == 0;

    for (size_t i = 0; i < ELEMENTS(DIRECTORIES); i++)
        if (!here || strncmp(own, "/etc/systemd/system/", 20) == 0 ||
            strstr(own, "/lib/systemd/system/"))
            directories[n++] = DIRECTORIES[i];
    for (size_t i = 0; !unit->found && i < 2 * n; i++)
        unit->found =
            read_file(unit, import_text(import, "%s%s", directories[i % n], names[i / n]));
    /* The strongest last, and those of an instance. */
    for (size_t i = 2 * n; unit->found && i-- > 0;)
        if (i < n || names[1] != names[0])
            if (i % n > 0 || n == 1)
                read_drop_ins(unit, directories[i % n], names[i / n]);
}

/* ---- specifiers ---- */

/* Returns NULL if the specifier has no fixed value. */
static const char *specifier(const struct systemd_unit *unit, char letter)
{
    static const struct {
        char letter;
        const char *value;
    } FIXED[] = {{'%', "%"},        {'t', "/run"}, {'S', "/var/lib"}, {'C', "/var/cache"},
                 {'L', "/var/log"}, {'E', "/etc"}, {'T', "/tmp"},     {'V', "/var/tmp"},
                 {'h', "/root"},    {'u', "root"}, {'U', "0"},        {'s', "/bin/sh"}};
    char *instance = (char *)(uintptr_t)import_text(unit->base.import, "%s",
                                                    unit->instance ? unit->instance : "");

    for (size_t i = 0; i < ELEMENTS(FIXED); i++)
        if (FIXED[i].letter == letter)
            return FIXED[i].value;
    if (letter == 'n')
        return unit->name;
    if (letter == 'N')
        return unit->stem;
    if (letter == 'p' || letter == 'P')
        return unit->prefix;
    for (char *at = instance; letter != 'i' && *at != '\0'; at++)
        *at = *at == '-' ? '/' : *at;
    if (letter == 'f')
        return import_text(unit->base.import, "/%s", instance);
    return letter == 'i' || letter == 'I' ? instance : NULL;
}

const char *systemd_unit_expand(const struct import_unit *base,
                                const struct import_setting *setting, const char *text)
{
    struct buffer expanded = BUFFER_NULL;

    (void)setting;
    for (; *text != '\0'; text++) {
        const char *value =
            *text == '%' && text[1] ? specifier(systemd_unit_of(base), text[1]) : NULL;

        if (*text == '%' && text[1] && !value) {
            buffer_deinit(&expanded);
            return NULL;
        }
        if (value)
            buffer_add_string(&expanded, value);
        else
            buffer_add_char(&expanded, *text);
        text += value != NULL;
    }
    return import_take(base->import, &expanded);
}
