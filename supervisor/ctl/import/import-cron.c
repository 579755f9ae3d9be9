/* SPDX-License-Identifier: MIT */

/* Translates crontabs: each line becomes a group with the command, and a schedule with the times.
 */

#include "shared/base/cleanup.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-group.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/ctl/import/import-command.h"
#include "supervisor/ctl/import/import.h"
#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BLANK   " \t"
#define NO_MAIL "troupectl deaths, troupectl dead-letters, alerts"

struct crontab {
    struct import *import;
    const char *owner;                /* NULL = each line names a user */
    struct import_settings variables; /* so far */
    struct import_setting place;      /* of the line */
    const char *comment;              /* in the line before; NULL = none */
};

/* Behind `n` words and the blanks after them. */
static const char *behind_words(const char *text, unsigned n)
{
    text += strspn(text, BLANK);
    for (; n > 0; n--) {
        text += strcspn(text, BLANK);
        text += strspn(text, BLANK);
    }
    return text;
}

static const char *word_at(struct import *import, const char *text)
{
    return import_text(import, "%.*s", (int)strcspn(text, BLANK), text);
}

/* How many words the times are. */
static unsigned count_times(const char *line)
{
    return *line == '@' ? 1 : 5;
}

/* ---- variables ---- */

static const char *variable(const struct crontab *tab, const char *name, const char *otherwise)
{
    for (size_t i = tab->variables.n; i-- > 0;)
        if (strcmp(tab->variables.items[i].key, name) == 0)
            return tab->variables.items[i].value;
    return otherwise;
}

/* Without blanks around it, and without quotes. */
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
    const char *equals = strchr(line, '=');
    struct import_setting *place = &tab->place;

    if (!equals) {
        import_mistake(tab->import, place->path, place->line,
                       "neither NAME=VALUE nor the times of a command");
        return;
    }
    place->key = unquoted(tab->import, line, (size_t)(equals - line));
    place->value = unquoted(tab->import, equals + 1, strlen(equals + 1));
    import_add(tab->import, &tab->variables, *place);
    if (strcmp(place->key, "MAILTO") == 0 && *place->value != '\0')
        import_leave(tab->import, NULL, NULL, place, NO_MAIL);
}

/* Variables of cron itself, which the commands need not have. */
static bool is_for_cron(const char *name)
{
    return strncmp(name, "MAIL", 4) == 0 || strncmp(name, "CONTENT_", 8) == 0 ||
           strcmp(name, "CRON_TZ") == 0 || strcmp(name, "RANDOM_DELAY") == 0;
}

static void set_variables(struct crontab *tab, struct import_file *group)
{
    for (size_t i = 0; i < tab->variables.n; i++) {
        const struct import_setting *set = &tab->variables.items[i];
        struct buffer word = BUFFER_NULL;

        if (is_for_cron(set->key) || variable(tab, set->key, "") != set->value)
            continue;
        import_quote(&word, import_text(tab->import, "%s=%s", set->key, set->value));
        import_set(tab->import, group, set, "Environment", import_take(tab->import, &word));
    }
}

/* ---- commands ---- */

static bool is_one_of(const char *words, const char *word, size_t size)
{
    char padded[32];

    return snprintf(padded, sizeof(padded), " %.*s ", (int)size, word) < (int)sizeof(padded) &&
           strstr(words, padded);
}

/* Names a command after its first word that says what it does, without directory and suffix. */
static const char *name_of(struct import *import, const char *command)
{
    bool prepares = false, skips = false;

    for (const char *word = behind_words(command, 0); *word != '\0'; word = behind_words(word, 1)) {
        const char *base = word + strspn(word, "({'\"`$");
        size_t size = strcspn(base, " \t;|&()'\"`<>");
        const char *slash = memrchr(base, '/', size > 0 ? size - 1 : 0), *dot;

        if (slash) {
            size -= (size_t)(slash + 1 - base);
            base = slash + 1;
        }
        dot = memrchr(base, '.', size);
        if (*word == '-') {
            skips = skips || strncmp(word, "-u ", 3) == 0;
            prepares = prepares || strncmp(word, "-e ", 3) == 0 || strncmp(word, "-r ", 3) == 0;
        } else if (prepares || skips || size == 0 || isdigit((unsigned char)*base) ||
                   memchr(base, '=', size)) {
            skips = false;
        } else if (is_one_of(" cd test [ [[ . source set export umask if ! ", base, size)) {
            prepares = true;
        } else if (is_one_of(
                       " sh bash dash ksh zsh python python2 python3 perl php ruby node env sudo "
                       "nice ionice nohup time exec chronic run-parts timeout flock then ",
                       base, size)) {
            skips = is_one_of(" flock ", base, size);
        } else {
            if (dot > base && base + size - dot <= 4)
                size = (size_t)(dot - base);
            return import_text(import, "%.*s", (int)size, base);
        }
        if (strchr(";|&", word[strcspn(word, BLANK) - 1]))
            prepares = false;
    }
    return "job";
}

/* Splits at "%", which cron replaces by newlines: what follows the first one is input. */
static void split(struct import *import, const char *text, const char **ret_command,
                  const char **ret_input)
{
    struct buffer parts[2] = {BUFFER_NULL, BUFFER_NULL};
    size_t n = 0;

    for (; *text != '\0'; text++)
        if (text[0] == '\\' && text[1] == '%')
            buffer_add_char(&parts[n], *++text);
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

static const char *command_line(struct crontab *tab, const char *command, const char *input)
{
    const size_t size = strlen(command);

    if (input)
        command = import_text(tab->import, "{\n%s\n} <<'END-OF-INPUT'\n%s\nEND-OF-INPUT\n", command,
                              input);
    else if (*command == '/' &&
             strspn(command, BLANK "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
                                   "tuvwxyz0123456789_-./:=,@+") == size)
        return command;
    return import_command_of_script(tab->import, variable(tab, "SHELL", "/bin/sh"), command);
}

/* ---- lines ---- */

/* What both kinds of groups have. */
static struct import_file *begin_group(struct crontab *tab, const char *name, const char *user)
{
    struct import *import = tab->import;
    struct import_file *group = import_file(import, name, CONFIG_GROUP_SUFFIX, &tab->place);
    const struct passwd *entry = getpwnam(user);
    const char *home = variable(tab, "HOME", entry ? entry->pw_dir : "");
    const char *mail_to = variable(tab, "MAILTO", "");

    if (!group)
        return NULL;
    if (tab->comment)
        import_set(import, group, &tab->place, "Description", tab->comment);
    import_user(import, group, &tab->place, user);
    if (access(home, X_OK) == 0)
        import_set(import, group, &tab->place, "WorkingDirectory", home);
    set_variables(tab, group);
    if (*mail_to != '\0')
        import_remark(import, group, "Group",
                      import_text(import, "Not imported: MAILTO=%s. Instead: " NO_MAIL, mail_to));
    return group;
}

static void add_boot(struct crontab *tab, const char *name, const char *user, const char *command)
{
    struct import_file *group = begin_group(tab, name, user);

    if (!group)
        return;
    import_set(tab->import, group, &tab->place, "Type", "service");
    import_set(tab->import, group, &tab->place, "ExecStart", command);
    import_set(tab->import, group, &tab->place, "Restart", "no");
    import_leave(tab->import, group, "Group", &tab->place,
                 "it runs when the supervisor starts, which is not only at boot");
}

static void add_job(struct crontab *tab, const char *name, const char *user, const char *command)
{
    struct import_file *group = begin_group(tab, name, user), *schedule;
    const char *delay = variable(tab, "RANDOM_DELAY", "");

    schedule =
        group ? import_file(tab->import, group->name, CONFIG_SCHEDULE_SUFFIX, &tab->place) : NULL;
    if (!schedule)
        return;
    import_job(tab->import, group, &tab->place, command);
    import_set(tab->import, schedule, &tab->place, "OnCalendar", tab->place.value);
    if (*delay != '\0')
        import_set(tab->import, schedule, &tab->place, "RandomizedDelaySec",
                   import_text(tab->import, "%smin", delay));
    import_set(tab->import, schedule, &tab->place, "CatchUp", "none");
}

/* Returns false if the times are a mistake, or have no counterpart; has told of that then. */
static bool check_times(struct crontab *tab, const char *times)
{
    const char *reason;
    unsigned moments;

    if (strchr(times, '~')) {
        import_leave(tab->import, NULL, NULL, &tab->place,
                     "choose a time, and RandomizedDelaySec= for a random delay");
        return false;
    }
    if (values_calendar(times, &moments, &reason) == 0)
        return true;
    import_mistake(tab->import, tab->place.path, tab->place.line, "'%s': %s", times, reason);
    return false;
}

static void take_job(struct crontab *tab, const char *line)
{
    struct import *import = tab->import;
    const char *command = behind_words(line, count_times(line)), *user = tab->owner, *input;
    const char *zone = variable(tab, "CRON_TZ", "");
    struct buffer times = BUFFER_NULL;

    for (unsigned i = 0; i < count_times(line); i++) {
        const char *word = behind_words(line, i);

        buffer_add_string(&times, i > 0 ? " " : "");
        buffer_add(&times, word, strcspn(word, BLANK));
    }
    if (*zone != '\0')
        buffer_add_string(&times, import_text(import, " %s", zone));
    if (!user) {
        user = word_at(import, command);
        command = behind_words(command, 1);
    }
    tab->place.key = "";
    tab->place.value = import_take(import, &times);
    if (*command == '\0') {
        import_mistake(import, tab->place.path, tab->place.line,
                       tab->owner ? "no command follows the times"
                                  : "no user and command follow the times");
        return;
    }
    split(import, command, &command, &input);
    const char *name = name_of(import, command), *execute = command_line(tab, command, input);

    name = import_name(import, name, CONFIG_SCHEDULE_SUFFIX);
    if (strncmp(tab->place.value, "@reboot", strlen("@reboot")) == 0)
        add_boot(tab, name, user, execute);
    else if (check_times(tab, tab->place.value))
        add_job(tab, name, user, execute);
}

/* ---- the file ---- */

static bool is_job(const char *line)
{
    return isdigit((unsigned char)*line) || *line == '*' || *line == '@';
}

/* Whether its lines name users: because of its place, or since a user is where one must be. A
 * user's crontab has no place. */
static bool is_of_system(struct import *import, const char *path, const char *text)
{
    const char *line;
    bool all = strstr(path, "/cron.d/") || strcmp(path, "/etc/crontab") == 0, any = all;

    while (!any && !import->user && (line = import_line(import, &text))) {
        line += strspn(line, BLANK "-");
        if (!is_job(line))
            continue;
        line = behind_words(line, count_times(line));
        all = getpwnam(word_at(import, line)) && *behind_words(line, 1) != '\0';
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
    struct crontab tab = {.import = import, .place = {.path = path}};
    const char *line;

    import->moves |= IMPORT_FROM_CRON;
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
    free(tab.variables.items);
}
