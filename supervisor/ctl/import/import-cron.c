/* SPDX-License-Identifier: MIT */

/* Translates crontabs: each line becomes a group with the command, and a schedule with the times.
 */

#include "shared/base/cleanup.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/ctl/import/import.h"
#include <ctype.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLANK   " \t"
#define NO_MAIL "troupectl deaths, troupectl dead-letters, alerts"

/* Words before the program of a command, and variables that are not for commands. */
#define WRAPPERS                                                                                   \
    "cd test [[] [[][[] . source set export umask if then ! sh bash dash ksh zsh python* perl "    \
    "php "                                                                                         \
    "ruby node env sudo nice ionice nohup time exec chronic run-parts timeout flock -* [0-9]*"
#define FOR_CRON "MAIL* CONTENT_* CRON_TZ RANDOM_DELAY"

struct crontab {
    struct import_unit unit;     /* its settings are the variables so far */
    const char *owner;           /* NULL = each line names a user */
    struct import_setting place; /* of the line; the value is its times */
    const char *comment;         /* in the line before; NULL = none */
};

/* Returns what follows `n` words and the blanks after them. */
static const char *skip_words(const char *text, unsigned n)
{
    text += strspn(text, BLANK);
    for (; n > 0; n--) {
        text += strcspn(text, BLANK);
        text += strspn(text, BLANK);
    }
    return text;
}

static const char *skip_times(const char *line)
{
    return skip_words(line, *line == '@' ? 1 : 5);
}

static const char *word_at(struct import *import, const char *text)
{
    return import_text(import, "%.*s", (int)strcspn(text, BLANK), text);
}

static const char *variable(const struct crontab *tab, const char *name, const char *otherwise)
{
    return import_value(&tab->unit, NULL, name, otherwise);
}

/* Removes blanks around the text, then quotes. */
static const char *unquoted(struct import *import, const char *text, size_t size)
{
    for (; size > 0 && isspace((unsigned char)*text); size--)
        text++;
    while (size > 0 && isspace((unsigned char)text[size - 1]))
        size--;
    if (size > 1 && (*text == '"' || *text == '\'') && text[size - 1] == *text) {
        text++;
        size -= 2;
    }
    return import_text(import, "%.*s", (int)size, text);
}

static void take_variable(struct crontab *tab, const char *line)
{
    struct import *import = tab->unit.import;
    const char *equals = strchr(line, '=');
    struct import_setting *place = &tab->place;

    if (!equals) {
        import_mistake(import, place, "neither NAME=VALUE nor the times of a command");
        return;
    }
    place->key = unquoted(import, line, (size_t)(equals - line));
    place->value = unquoted(import, equals + 1, strlen(equals + 1));
    import_add(&tab->unit, *place);
    tab->unit.file = NULL;
    if (import_matches("MAILTO RANDOM_DELAY", place->key) && *place->value != '\0')
        import_leave(&tab->unit, place, *place->key == 'M' ? NO_MAIL : "RandomizedDelaySec=");
}

/* ---- commands ---- */

/* Names a command after the first word behind the last "&&", and behind a sleep, that is neither a
 * wrapper nor the lock of flock, without directory and suffix. */
static const char *name_of(struct import *import, const char *command)
{
    bool at_lock = false;

    for (const char *and; (and = strstr(command, "&&"));)
        command = and+2;
    if (strncmp(skip_words(command, 0), "sleep ", 6) == 0 && strchr(command, ';'))
        command = strchr(command, ';') + 1;
    for (const char *word = skip_words(command, 0); *word != '\0'; word = skip_words(word, 1)) {
        const char *start = word + strspn(word, "({'\"`$");
        const char *text =
            import_text(import, "%.*s", (int)strcspn(start, " \t;|&()'\"`<>"), start);
        const char *base = basename(text), *dot = strrchr(base, '.');

        if (strcmp(base, "flock") == 0)
            at_lock = true;
        if (*base == '\0' || strchr(text, '=') || import_matches(WRAPPERS, base))
            continue;
        if (at_lock) {
            at_lock = false;
            continue;
        }
        return dot > base && strlen(dot) <= 4 ? import_text(import, "%.*s", (int)(dot - base), base)
                                              : base;
    }
    return "job";
}

/* Splits at "%", which cron replaces by newlines: what follows the first one is input. In both,
 * ExecStart= needs "%" doubled. */
static void split(struct import *import, const char *text, const char **ret_command,
                  const char **ret_input)
{
    struct buffer parts[2] = {BUFFER_NULL, BUFFER_NULL};
    size_t n = 0;

    for (; *text != '\0'; text++)
        if (text[0] == '\\' && text[1] == '%')
            buffer_add_string(&parts[n], (text++, "%%"));
        else if (*text != '%')
            buffer_add_char(&parts[n], *text);
        else if (n == 0)
            n = 1;
        else
            buffer_add_char(&parts[n], '\n');
    *ret_command = import_take(import, &parts[0]);
    *ret_input = import_take(import, &parts[1]);
    if (n == 0)
        *ret_input = NULL;
}

static const char *command_line(const struct crontab *tab, const char *command, const char *input)
{
    struct import *import = tab->unit.import;
    const size_t size = strlen(command);

    if (input) {
        const char *word = "END-OF-INPUT";

        while (*word != '\0' && strstr(input, word)) /* empty: out of memory */
            word = import_text(import, "%s-", word);
        command = import_text(import, "{\n%s\n} <<'%s'\n%s\n%s\n", command, word, input, word);
    } else if (*command == '/' &&
               strspn(command, BLANK "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
                                     "tuvwxyz0123456789_-./:=,@+") == size)
        return command;
    return import_shell(import, variable(tab, "SHELL", "/bin/sh"), command);
}

/* ---- lines ---- */

static bool begin_group(struct crontab *tab, const char *name, const char *user)
{
    struct import_unit *unit = &tab->unit;
    const struct passwd *entry = getpwnam(user);
    const char *home = variable(tab, "HOME", entry ? entry->pw_dir : "");
    const char *mail_to = variable(tab, "MAILTO", "");

    if (!import_begin(unit, name, CONFIG_GROUP_SUFFIX, &tab->place))
        return false;
    if (tab->comment)
        import_set(unit, &tab->place, "Description", tab->comment);
    import_user(unit, &tab->place, user);
    if (access(home, X_OK) == 0)
        import_set(unit, &tab->place, "WorkingDirectory", home);
    if (*mail_to != '\0')
        import_remark(
            unit, import_text(unit->import, "Not imported: MAILTO=%s. Instead: " NO_MAIL, mail_to));
    for (size_t i = 0; i < unit->settings.n; i++) {
        const struct import_setting *set = &unit->settings.items[i];

        if (!import_matches(FOR_CRON, set->key) && import_find(unit, NULL, set->key) == set)
            import_set(unit, set, "Environment",
                       import_quote(unit->import,
                                    import_text(unit->import, "%s=%s", set->key, set->value)));
    }
    return true;
}

static void add_boot(struct crontab *tab, const char *name, const char *user, const char *command)
{
    if (!begin_group(tab, name, user))
        return;
    tab->unit.is_job = false;
    import_set(&tab->unit, &tab->place, "Type", "service");
    import_command(&tab->unit, &tab->place, command);
    import_set(&tab->unit, &tab->place, "Restart", "no");
    import_leave(&tab->unit, &tab->place,
                 "it runs when the supervisor starts, which is not only at boot");
}

static void add_job(struct crontab *tab, const char *name, const char *user, const char *command)
{
    struct import_unit *unit = &tab->unit;

    if (!begin_group(tab, name, user))
        return;
    unit->is_job = true;
    import_command(unit, &tab->place, command);
    if (!import_begin(unit, unit->file->name, CONFIG_SCHEDULE_SUFFIX, &tab->place))
        return;
    import_set(unit, &tab->place, "OnCalendar", tab->place.value);
    import_set(unit, &tab->place, "CatchUp", "none");
}

/* Returns false after reporting that the times are a mistake, or have no counterpart. */
static bool check_times(struct crontab *tab, const char *times)
{
    const char *reason;
    unsigned moments;

    tab->unit.file = NULL;
    if (strchr(times, '~'))
        import_leave(&tab->unit, &tab->place,
                     "choose a time, and RandomizedDelaySec= for a random delay");
    else if (values_calendar(times, &moments, &reason) == 0)
        return true;
    else
        import_mistake(tab->unit.import, &tab->place, "'%s': %s", times, reason);
    return false;
}

static void take_job(struct crontab *tab, const char *line)
{
    struct import *import = tab->unit.import;
    const char *command = skip_times(line), *user = tab->owner, *input, *name;
    const char *times = unquoted(import, line, (size_t)(command - line));
    const char *zone = variable(tab, "CRON_TZ", "");

    if (!user) {
        user = word_at(import, command);
        command = skip_words(command, 1);
    }
    tab->place.key = "";
    tab->place.value = *zone != '\0' ? import_text(import, "%s %s", times, zone) : times;
    if (*command == '\0') {
        import_mistake(import, &tab->place,
                       tab->owner ? "no command follows the times"
                                  : "no user and command follow the times");
        return;
    }
    split(import, command, &command, &input);
    name = import_name(import, name_of(import, command), CONFIG_SCHEDULE_SUFFIX);
    command = command_line(tab, command, input);
    if (import_matches("@reboot", times))
        add_boot(tab, name, user, command);
    else if (check_times(tab, tab->place.value))
        add_job(tab, name, user, command);
}

/* ---- the file ---- */

static bool is_job(const char *line)
{
    return isdigit((unsigned char)*line) || *line == '*' || *line == '@';
}

/* Whether its lines name users: because of its path, or because users follow the times of jobs. */
static bool is_of_system(struct import *import, const char *path, const char *text)
{
    const char *line;
    bool all = strstr(path, "/cron.d/") || strcmp(path, "/etc/crontab") == 0, any = all;

    while (!any && !import->user && (line = import_line(import, &text))) {
        line += strspn(line, BLANK "-");
        if (!is_job(line))
            continue;
        line = skip_times(line);
        all = getpwnam(word_at(import, line)) && *skip_words(line, 1) != '\0';
        any = !all || strncmp(line, "root ", 5) == 0;
    }
    return all;
}

static const char *owner_of(struct import *import, const char *path)
{
    struct stat status = {.st_uid = getuid()};
    const struct passwd *entry;

    (void)stat(path, &status);
    entry = getpwuid(status.st_uid);
    return entry ? import_text(import, "%s", entry->pw_name)
                 : import_text(import, "%u", status.st_uid);
}

void import_cron(struct import *import, const char *path, const char *text)
{
    struct crontab tab = {.unit = {.import = import}, .place = {.path = path}};
    const char *line;

    if (!is_of_system(import, path, text))
        tab.owner = import->user ? import->user : owner_of(import, path);
    while ((line = import_line(import, &text))) {
        tab.place.line++;
        line += strspn(line, BLANK);
        if (is_job(line + (*line == '-'))) /* "-": no line in the system's log */
            take_job(&tab, line + (*line == '-'));
        else if (*line != '\0' && *line != '#')
            take_variable(&tab, line);
        tab.comment = NULL;
        if (*line == '#' && isalpha((unsigned char)line[1 + strspn(line + 1, "# \t")]))
            tab.comment = unquoted(import, line + strspn(line, "# \t"),
                                   strcspn(line + strspn(line, "# \t"), "\\"));
    }
    free(tab.unit.settings.items);
}
