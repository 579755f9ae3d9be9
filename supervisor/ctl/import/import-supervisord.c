/* SPDX-License-Identifier: MIT */

/* Translates the programs of supervisord.conf. */

#include "shared/base/cleanup.h"
#include "supervisor/config/config-load.h"
#include "supervisor/ctl/import/import-command.h"
#include "supervisor/ctl/import/import.h"
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#define PROGRAM "program:"

struct supervisord {
    struct import_unit unit;         /* the program that is translated */
    struct import_settings settings; /* of all files */
    struct import_settings programs; /* where each begins */
};

static void take_section(struct supervisord *super, const struct import_setting *place);

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

static void take_line(struct supervisord *super, struct import_setting *place, const char *line)
{
    struct import *import = super->unit.import;
    const size_t key = strcspn(line, "=:");
    struct import_setting *last =
        super->settings.n > 0 ? &super->settings.items[super->settings.n - 1] : NULL;

    if (isblank((unsigned char)*line) && place->key) {
        last->value = import_text(import, "%s %s", last->value, line + strspn(line, " \t"));
    } else if (*line == '[') {
        place->section = import_text(import, "%.*s", (int)strcspn(line + 1, "]"), line + 1);
        place->key = "";
        if (!strchr(line, ']'))
            import_mistake(import, place->path, place->line, "a section is written [name]");
        place->value = import_text(import, "[%s]", place->section);
        take_section(super, place);
        place->key = NULL;
    } else if (line[key] == '\0' || key == 0 || !place->section) {
        import_mistake(import, place->path, place->line,
                       "neither [section], key=value, nor a comment");
    } else {
        place->key = without_comment(import, import_text(import, "%.*s", (int)key, line));
        place->value = import_text(import, "%s", line + key + 1 + strspn(line + key + 1, " \t"));
        import_add(import, &super->settings, *place);
    }
}

static void read_text(struct supervisord *super, const char *path, const char *text)
{
    struct import_setting place = {.path = path};
    const char *line;

    while ((line = import_line(super->unit.import, &text)) && !super->unit.import->failed) {
        place.line++;
        line = *line == '#' ? "" : without_comment(super->unit.import, line);
        if (line[strspn(line, " \t")] != '\0')
            take_line(super, &place, line);
    }
}

/* ---- values ---- */

static struct supervisord *super_of(const struct import_unit *unit)
{
    return (struct supervisord *)(uintptr_t)unit; /* its first member */
}

/* What %(name)s stands for; NULL: nothing that is known before the start. */
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
        return import_value(unit->settings, setting->section, "numprocs", "1");
    if (strcmp(name, "host_node_name") != 0)
        return NULL;
    (void)gethostname(host, sizeof(host) - 1);
    return host;
}

/* What expands %(name)s in a command when that is started. `width`: of a number. */
static bool add_late(const struct import_unit *unit, const struct import_setting *setting,
                     const char *name, unsigned width, struct import_command *command)
{
    const char *start = import_value(unit->settings, setting->section, "numprocs_start", "0");

    if (strncmp(name, "ENV_", 4) == 0)
        import_command_shell(command, import_text(unit->import, "\"${%s}\"", name + 4));
    else if (strcmp(name, "process_num") != 0)
        return false;
    else if (width == 0 && strcmp(start, "0") == 0)
        import_command_specifier(command, "%i");
    else
        import_command_shell(
            command, import_text(unit->import, "\"$(printf %%%%0%ud %s)\"", width > 0 ? width : 1,
                                 strcmp(start, "0") == 0
                                     ? "%i"
                                     : import_text(unit->import, "$((%s + %%i))", start)));
    return true;
}

/* Adds a word with %(…)s expanded. Returns false if something in it is unknown. */
static bool add_word(const struct import_unit *unit, const struct import_setting *setting,
                     const char *text, struct import_command *command, struct buffer *plain)
{
    for (const char *end; *text != '\0'; text = end) {
        char name[64] = "";
        unsigned width = 0;
        const char *value;

        end = *text == '%' ? text + 2 : strchrnul(text, '%');
        value = *text == '%' ? "%" : import_text(unit->import, "%.*s", (int)(end - text), text);
        if (strncmp(text, "%(", 2) == 0) {
            end = strchr(text, ')');
            if (!end || sscanf(text, "%%(%63[^)])%u", name, &width) < 1)
                return false;
            end += 1 + strspn(end + 1, "0123456789");
            end += *end != '\0'; /* "s" or "d" */
            value = value_of(unit, setting, name);
        } else if (*text == '%' && text[1] != '%') {
            return false;
        }
        if (value)
            import_command_text(command, value, strlen(value));
        if (value)
            buffer_add_string(plain, value);
        else if (!add_late(unit, setting, name, width, command))
            return false;
    }
    return true;
}

/* Expands what is not part of a command. */
static const char *expand(const struct import_unit *unit, const struct import_setting *setting,
                          const char *text)
{
    struct import_command command = {0};
    struct buffer plain = BUFFER_NULL;
    bool known = add_word(unit, setting, text, &command, &plain);

    known = known && !command.needs_shell && !strstr(text, "%(process_num)");
    import_command_end_word(&command);
    (void)import_command_take(unit->import, &command, false);
    text = import_take(unit->import, &plain);
    return known ? text : NULL;
}

/* Splits as supervisord does: '…', "…" with backslashes, backslashes. Returns false at the end; or
 * with `*ret` NULL if a quote is not closed. */
static bool next_word(struct import *import, const char **at, const char **ret)
{
    struct buffer word = BUFFER_NULL;
    char quote = '\0';

    *at += strspn(*at, " \t");
    if (**at == '\0')
        return false;
    for (; **at != '\0' && (quote || !isblank((unsigned char)**at)); ++*at)
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
    struct import_command command = {0};
    const char *at = setting->value, *word;
    struct buffer plain = BUFFER_NULL;
    bool valid = true;

    while (valid && next_word(unit->import, &at, &word)) {
        valid = word && add_word(unit, setting, word, &command, &plain);
        import_command_end_word(&command);
        /* A shell finds a program by a path that begins at WorkingDirectory=. */
        command.needs_shell |= command.line.size == plain.size && plain.size > 0 &&
                               *plain.bytes != '/' && memchr(plain.bytes, '/', plain.size);
    }
    buffer_deinit(&plain);
    if (strstr(setting->value, "%(ENV_"))
        import_leave(unit->import, unit->file, "Group", setting,
                     "Environment= with the variables of supervisord that it needs");
    word = import_command_take(unit->import, &command, true);
    if (valid)
        import_set(unit->import, unit->file, setting, "ExecStart", word);
    else
        import_mistake(unit->import, setting->path, setting->line,
                       "a quote is not closed, or an expression with %% is unknown");
}

/* KEY="value",KEY=value */
static void set_environment(struct import_unit *unit, const struct import_setting *setting)
{
    const char *at = setting->value, *end;

    for (at += strspn(at, " \t,"); *at != '\0'; at = end + strspn(end, " \t,'\"")) {
        const char *value = strchrnul(at, '='), *name = at;
        const bool quoted = *value != '\0' && (value[1] == '"' || value[1] == '\'');
        struct buffer word = BUFFER_NULL;

        end = *value == '\0' ? NULL : quoted ? strchr(value + 2, value[1]) : strchrnul(value, ',');
        if (!end) {
            import_mistake(unit->import, setting->path, setting->line,
                           "environment= must be KEY=\"value\",KEY=\"value\"");
            return;
        }
        at = import_text(unit->import, "%.*s=%.*s", (int)(value - name), name,
                         (int)(end - value) - 1 - quoted, value + 1 + quoted);
        value = expand(unit, setting, at);
        if (value) {
            import_quote(&word, value);
            import_set(unit->import, unit->file, setting, "Environment",
                       import_take(unit->import, &word));
        } else {
            import_leave(unit->import, unit->file, "Group", setting,
                         import_text(unit->import, "Environment= with the value of %s", at));
        }
    }
}

static void set_restart(struct import_unit *unit, const struct import_setting *setting)
{
    const bool unexpected = strcasecmp(setting->value, "unexpected") == 0;

    import_set(unit->import, unit->file, setting, "Restart",
               unexpected                       ? "on-failure"
               : import_is_true(setting->value) ? "always"
                                                : "no");
    if (!unexpected && !import_is_true(setting->value))
        import_remark(
            unit->import, unit->file, "Restart",
            "Once it has ended, the group is stopped. A program that ends can be a job instead: "
            "troupe-exec(1), troupectl do.");
}

static void set_exit_codes(struct import_unit *unit, const struct import_setting *setting)
{
    char *codes = (char *)(uintptr_t)import_text(unit->import, "%s", setting->value);

    for (char *comma; (comma = strchr(codes, ','));)
        *comma = ' ';
    import_set(unit->import, unit->file, setting, "SuccessExitStatus", codes);
}

/* supervisord gives up after so many failures in a row. The interval has room for the longest
 * pauses. */
static void set_retries(struct import_unit *unit, const struct import_setting *setting)
{
    const int room = 36 + atoi(import_value(unit->settings, setting->section, "startsecs", "1"));

    import_set(unit->import, unit->file, setting, "StartLimitBurst", setting->value);
    import_set(unit->import, unit->file, setting, "StartLimitIntervalSec",
               import_text(unit->import, "%d", (1 + atoi(setting->value)) * room));
}

static void leave_log(struct import_unit *unit, const struct import_setting *setting)
{
    if (!import_matches("AUTO NONE syslog /dev/*", setting->value))
        import_leave(unit->import, unit->file, "Worker", setting,
                     import_text(unit->import, "troupectl logs %s, journalctl -t %s",
                                 unit->file->name, unit->file->name));
}

static int priority_of(const struct import_unit *unit, const char *section)
{
    return atoi(import_value(unit->settings, section, "priority", "999"));
}

/* Programs of a lower priority start before: those with the next lower one are named. */
static void set_order(struct import_unit *unit, const struct import_setting *place)
{
    const struct import_settings *programs = &super_of(unit)->programs;
    int before = -1;
    struct buffer names = BUFFER_NULL;

    for (size_t i = 0; i < programs->n; i++) {
        const int other = priority_of(unit, programs->items[i].section);

        if (other < priority_of(unit, place->section) && other > before)
            before = other;
    }
    for (size_t i = 0; before >= 0 && i < programs->n; i++)
        if (priority_of(unit, programs->items[i].section) == before) {
            buffer_add_string(&names, names.size > 0 ? " " : "");
            buffer_add_string(&names, import_name(unit->import,
                                                  programs->items[i].section + strlen(PROGRAM),
                                                  CONFIG_GROUP_SUFFIX));
        }
    if (names.size > 0)
        import_set(unit->import, unit->file, place, "After", import_take(unit->import, &names));
}

/* clang-format off */
static const struct import_rule RULES[] = {
    {.keys = "user numprocs_start process_name priority stopasgroup killasgroup redirect_stderr "
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
    {.keys = "stdout_logfile stderr_logfile", .convert = leave_log},
};
/* clang-format on */

static void add_program(struct supervisord *super, const struct import_setting *place)
{
    struct import_unit *unit = &super->unit;
    const struct import_setting *all = import_find(unit->settings, "supervisord", "environment");
    const char *user = import_value(unit->settings, "supervisord", "user", NULL);

    unit->section = place->section;
    unit->file =
        import_file(unit->import, place->section + strlen(PROGRAM), CONFIG_GROUP_SUFFIX, place);
    if (!unit->file)
        return;
    if (!import_value(unit->settings, place->section, "command", NULL))
        import_mistake(unit->import, place->path, place->line,
                       "[%s] has no command=", place->section);
    import_set(unit->import, unit->file, place, "Type", "service");
    import_user(unit->import, unit->file, place,
                import_value(unit->settings, place->section, "user", user));
    set_order(unit, place);
    if (all)
        set_environment(unit, all);
    import_convert(unit, RULES, ELEMENTS(RULES));
    if (!import_is_true(import_value(unit->settings, place->section, "stopasgroup", "false")))
        import_set(unit->import, unit->file, place, "KillMode", "mixed");
}

/* Says in the files of its programs what takes the place of a group. */
static void add_group(struct import *import, const struct import_setting *setting)
{
    char *names = (char *)(uintptr_t)import_text(import, " %s ", setting->value);

    for (char *comma; (comma = strchr(names, ','));)
        *comma = ' ';
    for (struct import_file *file = import->files; file; file = file->next)
        if (strstr(names, import_text(import, " %s ", file->name)))
            import_remark(import, file, "Group",
                          import_text(import,
                                      "Instead of supervisorctl restart %s:*, troupectl restart%s",
                                      strchr(setting->section, ':') + 1, names));
}

/* ---- the file ---- */

static void read_file(struct supervisord *super, const char *path)
{
    const char *text = import_read(super->unit.import, path);

    if (text)
        read_text(super, import_text(super->unit.import, "%s", path), text);
}

static void include(struct supervisord *super, struct import_setting files)
{
    const char *slash = strrchr(files.path, '/'), *at = files.value, *word;

    while (next_word(super->unit.import, &at, &word)) {
        glob_t found = {0};

        word = word ? expand(&super->unit, &files, word) : NULL;
        if (word && *word != '/' && slash)
            word = import_text(super->unit.import, "%.*s/%s", (int)(slash - files.path), files.path,
                               word);
        if (word && glob(word, 0, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc; i++)
                read_file(super, found.gl_pathv[i]);
        globfree(&found);
    }
}

/* Notes a program when its section begins, and leaves out sections that have no counterpart. */
static void take_section(struct supervisord *super, const struct import_setting *place)
{
    const char *section = place->section;

    for (size_t i = 0; i < super->programs.n; i++)
        if (strcmp(super->programs.items[i].section, section) == 0)
            return;
    if (strncmp(section, PROGRAM, strlen(PROGRAM)) == 0)
        import_add(super->unit.import, &super->programs, *place);
    else if (import_matches("eventlistener:* fcgi-program:*", section))
        import_leave(super->unit.import, NULL, NULL, place,
                     *section == 'e' ? "troupectl events --follow"
                                     : "the program opens its sockets");
}

void import_supervisord(struct import *import, const char *path, const char *text)
{
    struct supervisord super = {
        .unit = {.import = import, .settings = &super.settings, .expand = expand}};
    const struct import_setting *files;

    import->moves |= IMPORT_FROM_SUPERVISORD;
    read_text(&super, path, text);
    files = import_find(&super.settings, "include", "files");
    if (files)
        include(&super, *files);
    const bool valid = import->n_mistakes == 0;
    for (size_t i = 0; i < super.programs.n && valid; i++)
        add_program(&super, &super.programs.items[i]);
    for (size_t i = 0; i < super.settings.n; i++)
        if (import_matches("group:*", super.settings.items[i].section) &&
            strcasecmp(super.settings.items[i].key, "programs") == 0)
            add_group(import, &super.settings.items[i]);
    free(super.settings.items);
    free(super.programs.items);
}
