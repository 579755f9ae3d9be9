/* SPDX-License-Identifier: MIT */

/* Translates the programs of supervisord.conf. */

#include "shared/base/cleanup.h"
#include "supervisor/config/config-load.h"
#include "supervisor/ctl/import/import.h"
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#define PROGRAM "program:"

/* ---- reading ---- */

/* Removes a comment behind white space, and white space at the end. */
static const char *without_comment(struct import *import, const char *text)
{
    size_t size = 0;

    while (text[size] != '\0' && !((text[size] == ';' || text[size] == '#') &&
                                   (size == 0 || isblank((unsigned char)text[size - 1]))))
        size++;
    while (size > 0 && isspace((unsigned char)text[size - 1]))
        size--;
    return import_text(import, "%.*s", (int)size, text);
}

/* The head of a section becomes a setting without a name. */
static void take_line(struct import_unit *unit, struct import_setting *place, const char *line)
{
    struct import *import = unit->import;
    const size_t key = strcspn(line, "=:");
    struct import_setting *last =
        unit->settings.n > 0 ? &unit->settings.items[unit->settings.n - 1] : NULL;

    if (isblank((unsigned char)*line) && last && *last->key != '\0') {
        last->value = import_text(import, "%s %s", last->value, line + strspn(line, " \t"));
        return;
    }
    if (*line == '[') {
        place->section = import_text(import, "%.*s", (int)strcspn(line + 1, "]"), line + 1);
        place->key = "";
        place->value = line;
        if (!strchr(line, ']'))
            import_mistake(import, place, "a section is written [name]");
    } else if (line[key] == '\0' || key == 0 || !place->section) {
        import_mistake(import, place, "neither [section], key=value, nor a comment");
        return;
    } else {
        place->key = without_comment(import, import_text(import, "%.*s", (int)key, line));
        place->value = line + key + 1 + strspn(line + key + 1, " \t");
    }
    import_add(unit, *place);
}

static void read_text(struct import_unit *unit, const char *path, const char *text)
{
    struct import_setting place = {.path = path};
    const char *line;

    while ((line = import_line(unit->import, &text)) && !unit->import->failed) {
        place.line++;
        line = *line == '#' ? "" : without_comment(unit->import, line);
        if (line[strspn(line, " \t")] != '\0')
            take_line(unit, &place, line);
    }
}

/* ---- values ---- */

/* Returns what %(name)s stands for; NULL if this is not known before the start. */
static const char *value_of(const struct import_unit *unit, const struct import_setting *setting,
                            const char *name)
{
    const char *slash = strrchr(setting->path, '/'), *colon = strchr(setting->section, ':');
    static char host[256];

    if (strcmp(name, "program_name") == 0 || strcmp(name, "group_name") == 0)
        return colon ? colon + 1 : "";
    if (strcmp(name, "here") == 0) {
        const char *own =
            slash ? import_text(unit->import, "%.*s", (int)(slash - setting->path), setting->path)
                  : ".";
        _cleanup_free_ char *here = realpath(own, NULL);

        return here ? import_text(unit->import, "%s", here) : own;
    }
    if (strcmp(name, "numprocs") == 0)
        return import_value(unit, setting->section, "numprocs", "1");
    if (strcmp(name, "host_node_name") != 0)
        return NULL;
    (void)gethostname(host, sizeof(host) - 1);
    return host;
}

/* Adds an expression for %(name)s that is expanded when the command starts. `width`: of a number.
 */
static bool add_late(const struct import_unit *unit, const struct import_setting *setting,
                     const char *name, unsigned width, struct buffer *text, bool *shell)
{
    const char *start = import_value(unit, setting->section, "numprocs_start", "0");
    const char *number = strcmp(start, "0") == 0 && width == 0
                             ? "%i"
                             : import_text(unit->import, "$((%s + %%i))", start);

    if (strncmp(name, "ENV_", 4) == 0)
        number = import_text(unit->import, "${%s}", name + 4);
    else if (strcmp(name, "process_num") != 0)
        return false;
    else if (width > 0)
        number = import_text(unit->import, "$(printf %%%%0%ud %s)", width, number);
    *shell = *shell || *number == '$';
    buffer_add_string(text, number);
    return true;
}

/* Expands %(…)s. `shell` is for a command: it becomes true if the command needs a shell. Returns
 * NULL if something is unknown. */
static const char *expand_text(const struct import_unit *unit, const struct import_setting *setting,
                               const char *text, bool *shell)
{
    struct buffer expanded = BUFFER_NULL;
    bool known = true;

    for (const char *end; known && *text != '\0'; text = end) {
        char name[64] = "";
        unsigned width = 0;
        const char *value;

        end = *text == '%' ? text + 2 : strchrnul(text, '%');
        value = import_text(unit->import, "%.*s", (int)(end - text), text);
        if (strncmp(text, "%(", 2) == 0) {
            end = strchrnul(text, ')');
            known = *end != '\0' && sscanf(text, "%%(%63[^)])%u", name, &width) >= 1;
            end += known ? 1 + strspn(end + 1, "0123456789") : 0;
            end += *end != '\0'; /* "s" or "d" */
            value = value_of(unit, setting, name);
        } else if (*text == '%') {
            known = text[1] == '%';
            value = shell ? "%%" : "%";
        }
        if (value)
            buffer_add_string(&expanded, value);
        else
            known = known && shell && add_late(unit, setting, name, width, &expanded, shell);
    }
    text = import_take(unit->import, &expanded);
    return known ? text : NULL;
}

static const char *expand(const struct import_unit *unit, const struct import_setting *setting,
                          const char *text)
{
    return expand_text(unit, setting, text, NULL);
}

/* Splits as supervisord does: '…', "…" with backslashes, backslashes. Returns false at the end; or
 * with `*ret` NULL if a quote is not closed. */
static bool next_word(struct import *import, const char **at, const char *separators,
                      const char **ret)
{
    struct buffer word = BUFFER_NULL;
    char quote = '\0';

    *at += strspn(*at, separators);
    if (**at == '\0')
        return false;
    for (; **at != '\0' && (quote || !strchr(separators, **at)); ++*at)
        if (**at == '\\' && quote != '\'' && (*at)[1] != '\0' &&
            (!quote || strchr("\"\\", (*at)[1])))
            buffer_add_char(&word, *++*at);
        else if (quote ? **at == quote : **at == '\'' || **at == '"')
            quote = quote ? '\0' : **at;
        else
            buffer_add_char(&word, **at);
    *ret = import_take(import, &word);
    if (quote)
        *ret = NULL;
    return true;
}

/* ---- programs ---- */

static void set_command(struct import_unit *unit, const struct import_setting *setting)
{
    const char *slash = strchr(setting->value, '/');
    /* A path of a program that is relative to WorkingDirectory= needs a shell. */
    bool shell = !strchr("/%", *setting->value) && slash &&
                 slash < setting->value + strcspn(setting->value, " \t");
    const char *command = expand_text(unit, setting, setting->value, &shell);

    if (!command) {
        import_mistake(unit->import, setting, "an expression with %% is unknown");
        return;
    }
    if (strstr(setting->value, "%(ENV_"))
        import_leave(unit, setting, "Environment= with the variables of supervisord that it needs");
    if (shell && strpbrk(setting->value, "$`;&|<>*?"))
        import_leave(unit, setting, "the same, and '' around what a shell expands");
    if (shell)
        command =
            import_shell(unit->import, "/bin/sh", import_text(unit->import, "exec %s", command));
    import_command(unit, setting, command);
}

/* KEY="value",KEY=value */
static void set_environment(struct import_unit *unit, const struct import_setting *setting)
{
    const char *at = setting->value, *word, *value;

    while (next_word(unit->import, &at, " \t,", &word)) {
        if (!word || !strchr(word, '=')) {
            import_mistake(unit->import, setting,
                           "environment= must be KEY=\"value\",KEY=\"value\"");
            return;
        }
        value = expand(unit, setting, word);
        if (value)
            import_set(unit, setting, "Environment", import_quote(unit->import, value));
        else
            import_leave(unit, setting,
                         import_text(unit->import, "Environment= with the value of %s", word));
    }
}

static void set_restart(struct import_unit *unit, const struct import_setting *setting)
{
    const bool unexpected = import_matches("unexpected", setting->value);

    import_set(unit, setting, "Restart",
               unexpected                       ? "on-failure"
               : import_is_true(setting->value) ? "always"
                                                : "no");
    if (!unexpected && !import_is_true(setting->value))
        import_remark(unit, "Once it has ended, the group is stopped. A program that ends can be a "
                            "job instead: troupe-exec(1), troupectl do.");
}

static void set_exit_codes(struct import_unit *unit, const struct import_setting *setting)
{
    char *codes = (char *)(uintptr_t)import_text(unit->import, "%s", setting->value);

    for (char *comma; (comma = strchr(codes, ','));)
        *comma = ' ';
    import_set(unit, setting, "SuccessExitStatus", codes);
}

/* supervisord gives up after so many failures in a row. The interval has room for the longest
 * pauses. */
static void set_retries(struct import_unit *unit, const struct import_setting *setting)
{
    const unsigned long room =
        36 + strtoul(import_value(unit, setting->section, "startsecs", "1"), NULL, 10);

    import_set(unit, setting, "StartLimitBurst", setting->value);
    import_set(unit, setting, "StartLimitIntervalSec",
               import_text(unit->import, "%lu", (1 + strtoul(setting->value, NULL, 10)) * room));
}

/* clang-format off */
static const struct import_rule RULES[] = {
    {.keys = "user numprocs_start process_name stopasgroup killasgroup redirect_stderr "
             "std???_logfile_maxbytes std???_logfile_backups std???_syslog"},
    {.keys = "command", .convert = set_command},
    {.keys = "environment", .convert = set_environment},
    {.keys = "directory", .same = "WorkingDirectory"},
    {.keys = "umask", .same = "UMask"},
    {.keys = "numprocs", .same = "Size"},
    {.keys = "autostart", .same = "Autostart"},
    {.keys = "autorestart", .convert = set_restart},
    {.keys = "exitcodes", .convert = set_exit_codes},
    {.keys = "startsecs", .same = "ResetAfterSec"},
    {.keys = "startretries", .convert = set_retries},
    {.keys = "stopsignal", .same = "KillSignal"},
    {.keys = "stopwaitsecs", .same = "TimeoutStopSec"},
    {.keys = "priority", .fine = "999", .instead = "After= with the groups that start before"},
    {.keys = "stdout_logfile stderr_logfile", .fine = "AUTO NONE syslog /dev/*", .instead = "troupectl logs, journalctl -t"},
};
/* clang-format on */

static void add_program(struct import_unit *unit, const struct import_setting *place)
{
    const struct import_setting *all = import_find(unit, "supervisord", "environment");
    const char *user = import_value(unit, "supervisord", "user", NULL);

    unit->section = place->section;
    if (!import_begin(unit, place->section + strlen(PROGRAM), CONFIG_GROUP_SUFFIX, place))
        return;
    if (!import_value(unit, place->section, "command", NULL))
        import_mistake(unit->import, place, "[%s] has no command=", place->section);
    import_set(unit, place, "Type", "service");
    import_user(unit, place, import_value(unit, place->section, "user", user));
    if (all)
        set_environment(unit, all);
    import_convert(unit, RULES, ELEMENTS(RULES));
    if (!import_is_true(import_value(unit, place->section, "stopasgroup", "false")))
        import_set(unit, place, "KillMode", "mixed");
}

static void take_section(struct import_unit *unit, const struct import_setting *place)
{
    unit->file = NULL;
    if (strncmp(place->section, PROGRAM, strlen(PROGRAM)) == 0)
        add_program(unit, place);
    else if (import_matches("eventlistener:*", place->section))
        import_leave(unit, place, "troupectl events --follow");
    else if (import_matches("fcgi-program:*", place->section))
        import_leave(unit, place, "the program opens its sockets");
    else if (import_matches("group:*", place->section))
        import_leave(unit, place, "the names of its programs, as in troupectl restart x y");
}

/* ---- the file ---- */

static void include(struct import_unit *unit, struct import_setting files)
{
    const char *slash = strrchr(files.path, '/'), *at = files.value, *word;

    while (next_word(unit->import, &at, " \t", &word)) {
        glob_t found = {0};

        word = word ? expand(unit, &files, word) : NULL;
        if (word && *word != '/' && slash)
            word =
                import_text(unit->import, "%.*s/%s", (int)(slash - files.path), files.path, word);
        if (word && glob(word, 0, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc; i++) {
                const char *path = import_text(unit->import, "%s", found.gl_pathv[i]);
                const char *text = import_read(unit->import, path);

                if (text)
                    read_text(unit, path, text);
            }
        globfree(&found);
    }
}

void import_supervisord(struct import *import, const char *path, const char *text)
{
    struct import_unit unit = {.import = import, .expand = expand};
    const struct import_setting *files, *items;

    read_text(&unit, path, text);
    files = import_find(&unit, "include", "files");
    if (files)
        include(&unit, *files);
    items = unit.settings.items;
    const bool valid = import->n_mistakes == 0;
    for (size_t i = 0; i < unit.settings.n && valid; i++)
        if (*items[i].key == '\0' && import_find(&unit, items[i].section, "") == &items[i])
            take_section(&unit, &items[i]);
    free(unit.settings.items);
}
