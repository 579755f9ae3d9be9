/* SPDX-License-Identifier: MIT */

/*
 * Translates services of systemd. Keys that a group has under the same name are taken over as they
 * are; the table below has all others.
 */

#include "shared/base/cleanup.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/config/syntax/words.h"
#include "supervisor/ctl/import/import-command.h"
#include "supervisor/ctl/import/import-systemd-unit.h"
#include "supervisor/ctl/import/import.h"
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define OUTPUT   "output goes to the log; a shell redirects it elsewhere"
#define STOPPING "handle KillSignal= in the program, or with trap in a shell that starts it"

/* ---- commands ---- */

/* Adds a word, in which a shell expands variables: "${NAME}", and "$NAME" if that is the word. */
static void add_word(const struct systemd_unit *unit, struct import_command *command,
                     const char *word, bool plain)
{
    struct import *import = unit->base.import;
    const size_t name = *word == '$' ? strspn(word + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                        "abcdefghijklmnopqrstuvwxyz_0123456789")
                                     : 0;

    if (!plain && name > 0 && word[1 + name] == '\0') {
        import_command_shell(command, word);
        word += strlen(word);
    }
    while (*word != '\0') {
        const char *end = word + strcspn(word, "$");
        const char *close = !plain && strncmp(end, "${", 2) == 0 ? strchr(end, '}') : NULL;
        const bool doubled = !plain && strncmp(end, "$$", 2) == 0;

        if (!close && *end == '$')
            end++;
        import_command_text(command, word, (size_t)(end - word));
        if (close)
            import_command_shell(command,
                                 import_text(import, "\"%.*s\"", (int)(close + 1 - end), end));
        word = close ? close + 1 : end + doubled;
    }
    import_command_end_word(command);
}

/* Translates one command line, which is added to `command`. Returns false if it cannot be. */
static bool add_command(struct systemd_unit *unit, const struct import_setting *setting,
                        struct import_command *command)
{
    struct import *import = unit->base.import;
    const char *line = setting->value + strspn(setting->value, "-@+!:|"), *reason;
    _cleanup_strv_ config_strv words = NULL;
    const char *prefixes =
        import_text(import, "%.*s", (int)(line - setting->value), setting->value);
    int r = words_split(line, true, &words, &reason);

    if (r < 0)
        import->failed = true;
    if (r == WORDS_E_INVALID)
        import_mistake(import, setting->path, setting->line, "%s: %s", setting->key, reason);
    if (r != 0 || !words)
        return false;
    if (strpbrk(prefixes, "-@+!|"))
        import_leave(
            import, unit->base.file, "Group", setting,
            "SuccessExitStatus= for -, User= for + and !, sh -c 'exec -a NAME' in bash for @");
    for (size_t i = 0; words[i]; i++) {
        const char *word = systemd_unit_expand(&unit->base, setting, words[i]);

        if (!word)
            import_leave(import, unit->base.file, "Group", setting,
                         "ExecStart= without its % specifier");
        word = word ? word : words[i];
        if (i != 1 || !strchr(prefixes, '@'))
            add_word(unit, command, word, strchr(prefixes, ':'));
    }
    return true;
}

static void set_command(struct systemd_unit *unit)
{
    struct import *import = unit->base.import;
    const struct import_setting *setting = NULL;
    struct import_command command = {0};
    bool valid = true;
    unsigned n = 0;
    const char *line;

    for (size_t i = 0; i < unit->settings.n; i++) {
        if (strcmp(unit->settings.items[i].key, "ExecStart") != 0)
            continue;
        setting = &unit->settings.items[i];
        if (n++ > 0) {
            import_command_shell(&command, "&&");
            import_command_end_word(&command);
        }
        valid = add_command(unit, setting, &command) && valid;
        if (n == 2 && !unit->is_job)
            import_mistake(import, setting->path, setting->line,
                           "a second ExecStart=, which only Type=oneshot may have");
    }
    line = import_command_take(import, &command, n == 1);
    if (n == 0)
        import_mistake(import, unit->path, 0, "no ExecStart= in [Service]");
    else if (valid && unit->is_job)
        import_job(import, unit->base.file, setting, line);
    else if (valid)
        import_set(import, unit->base.file, setting, "ExecStart", line);
}

/* ---- keys that are not taken over as they are ---- */

static void set(struct import_unit *unit, const struct import_setting *setting, const char *key,
                const char *value)
{
    import_set(unit->import, unit->file, setting, key, value);
}

static void leave(struct import_unit *unit, const struct import_setting *setting,
                  const char *section, const char *instead)
{
    import_leave(unit->import, unit->file, section, setting, instead);
}

static void convert_type(struct import_unit *unit, const struct import_setting *setting)
{
    if (systemd_unit_of(unit)->is_job)
        return;
    if (strcmp(setting->value, "notify-reload") == 0)
        set(unit, setting, "ReloadSignal", "SIGHUP");
    else if (!import_matches("simple exec idle notify", setting->value))
        leave(unit, setting, "Group", "a program in the foreground, with Type=service or notify");
}

/* The signal of "/bin/kill -HUP $MAINPID", or NULL. */
static const char *signal_of(struct import *import, const char *command)
{
    const char *kill = strstr(command, "kill -");
    char name[16] = "", target[16] = "";
    int signal;

    if (!kill || (sscanf(kill, "kill -s %15s %15s", name, target) < 2 &&
                  sscanf(kill, "kill -%15s %15s", name, target) < 2))
        return NULL;
    return import_matches("$MAINPID ${MAINPID}", target) && values_signal(name, &signal) == 0
               ? import_text(import, "%s", name)
               : NULL;
}

static void convert_exec(struct import_unit *unit, const struct import_setting *setting)
{
    const bool reloads = strcmp(setting->key, "ExecReload") == 0;
    const char *signal = signal_of(unit->import, setting->value);

    if (signal)
        set(unit, setting, reloads ? "ReloadSignal" : "KillSignal", signal);
    else
        leave(unit, setting, "Worker",
              reloads ? "troupectl signal with ReloadSignal=, or troupectl restart" : STOPPING);
}

static void convert_restart(struct import_unit *unit, const struct import_setting *setting)
{
    const char *value = setting->value;

    if (systemd_unit_of(unit)->is_job) {
        if (strcmp(value, "no") != 0)
            leave(unit, setting, "Jobs", "MaxRetries=");
        return;
    }
    if (!import_matches("always no on-failure", value)) {
        leave(unit, setting, "Restart", "Restart= is on-failure, always or no only");
        value = strcmp(value, "on-success") == 0 ? "always" : "on-failure";
    }
    set(unit, setting, "Restart", value);
    if (strcmp(value, "on-failure") == 0) /* ends that are successes for systemd */
        set(unit, setting, "SuccessExitStatus", "SIGHUP SIGINT SIGTERM SIGPIPE");
}

/* The pause does not grow, unless the unit says so. */
static void convert_pause(struct import_unit *unit, const struct import_setting *setting)
{
    const bool is_job = systemd_unit_of(unit)->is_job;

    set(unit, setting, is_job ? "BackoffMinSec" : "MinSec", setting->value);
    set(unit, setting, is_job ? "BackoffMaxSec" : "MaxSec",
        import_value(unit->settings, NULL, "RestartMaxDelaySec", setting->value));
}

static void convert_time_limit(struct import_unit *unit, const struct import_setting *setting)
{
    const bool runs = strcmp(setting->key, "RuntimeMaxSec") == 0;

    set(unit, setting,
        systemd_unit_of(unit)->is_job ? "TimeoutSec"
        : runs                        ? "MaxAgeSec"
                                      : "TimeoutStartSec",
        setting->value);
    if (strcmp(setting->key, "TimeoutSec") == 0)
        set(unit, setting, "TimeoutStopSec", setting->value);
}

/* Units that become groups are named in After=; targets have been reached when trouped starts. */
static void convert_dependency(struct import_unit *unit, const struct import_setting *setting)
{
    const struct operands *operands = systemd_unit_of(unit)->operands;
    struct buffer groups = BUFFER_NULL;
    bool others = false;
    const char *names, *value = setting->value;
    char name[256];

    for (int n; sscanf(value, " %255s%n", name, &n) == 1; value += n) {
        bool own = false;

        for (size_t i = 0; i < operands->n; i++)
            own = own || strcmp(basename(operands->paths[i]), name) == 0;
        others = others ||
                 (!own && (!config_ends_with(name, ".target") || strstr(name, "network-online")));
        if (!own)
            continue;
        name[strlen(name) - strlen(SERVICE)] = '\0';
        buffer_add_string(&groups, groups.size > 0 ? " " : "");
        buffer_add_string(&groups, import_name(unit->import, name, CONFIG_GROUP_SUFFIX));
    }
    names = import_take(unit->import, &groups);
    if (*names != '\0' && strcmp(setting->key, "After") == 0)
        set(unit, setting, "After", names);
    if (others)
        leave(unit, setting, "Group", "the same in a drop-in of trouped.service");
    else if (*names != '\0' && !import_matches("After Wants", setting->key))
        leave(unit, setting, "Group", "After= orders starts and stops only");
}

static void convert_output(struct import_unit *unit, const struct import_setting *setting)
{
    if (!import_matches(
            strcmp(setting->key, "StandardInput") == 0 ? "null" : "journal* syslog* inherit kmsg*",
            setting->value))
        leave(unit, setting, "Worker", OUTPUT);
}

static void convert_directory(struct import_unit *unit, const struct import_setting *setting)
{
    const struct passwd *user = getpwnam(systemd_unit_of(unit)->user);
    struct import_setting path = *setting;

    path.value += *path.value == '-';
    if (strcmp(path.value, "~") == 0 && user && access(user->pw_dir, F_OK) == 0)
        path.value = user->pw_dir;
    import_set_same(unit, &path, "WorkingDirectory");
}

static void convert_file(struct import_unit *unit, const struct import_setting *setting)
{
    if (strpbrk(setting->value, "*?["))
        leave(unit, setting, "Group", "EnvironmentFile= for each file");
    else
        import_set_same(unit, setting, "EnvironmentFile");
}

static void convert_capabilities(struct import_unit *unit, const struct import_setting *setting)
{
    set(unit, setting, "CapabilityBoundingSet", *setting->value != '\0' ? setting->value : "none");
}

static void convert_dynamic_user(struct import_unit *unit, const struct import_setting *setting)
{
    if (import_is_true(setting->value))
        leave(unit, setting, "Group",
              "sysusers.d(5) for a user of its own, and User= with its name");
}

/* clang-format off */
#define LEAVE(section_, instead_) .section = (section_), .instead = (instead_)
static const struct import_rule RULES[] = {
    /* Read elsewhere, or without effect. */
    {.keys = "ExecStart User RestartMaxDelaySec Persistent Unit Documentation DefaultDependencies X-* "
             "*Accounting NotifyAccess IgnoreOnIsolate StopWhenUnneeded RefuseManual* CollectMode "
             "AccuracySec FixedRandomDelay RemainAfterElapse SourcePath"},
    {.keys = "Type", .convert = convert_type},
    {.keys = "ExecStop ExecReload", .convert = convert_exec},
    {.keys = "Restart", .convert = convert_restart},
    {.keys = "RestartSec", .convert = convert_pause},
    {.keys = "TimeoutSec TimeoutStartSec RuntimeMaxSec", .convert = convert_time_limit},
    {.keys = "After Wants Requires Requisite BindsTo PartOf", .convert = convert_dependency},
    {.keys = "StandardInput StandardOutput StandardError", .convert = convert_output},
    {.keys = "WorkingDirectory", .convert = convert_directory},
    {.keys = "EnvironmentFile", .convert = convert_file},
    {.keys = "CapabilityBoundingSet", .convert = convert_capabilities},
    {.keys = "DynamicUser", .convert = convert_dynamic_user},
    {.keys = "StartLimitInterval", .same = "StartLimitIntervalSec"},
    {.keys = "MemoryLimit", .same = "MemoryMax"},
    /* The list in troupe.group(5), COMPARED WITH SYSTEMD. */
    {.keys = "ExecStartPre ExecStartPost ExecCondition", LEAVE("Group", "ExecStart=/bin/sh -c 'prepare && exec program'")},
    {.keys = "ExecStopPost", LEAVE("Worker", STOPPING)},
    {.keys = "SendSIGHUP SendSIGKILL FinalKillSignal RestartKillSignal", LEAVE("Worker", "KillSignal= and then SIGKILL")},
    {.keys = "PIDFile GuessMainPID RemainAfterExit BusName", LEAVE("Group", "a program in the foreground")},
    {.keys = "RestartSteps", LEAVE("Restart", "MinSec= and MaxSec=")},
    {.keys = "RestartForceExitStatus", LEAVE("Restart", "Restart=always with RestartPreventExitStatus=")},
    {.keys = "OnFailure OnSuccess", LEAVE("Group", "troupectl events --follow")},
    {.keys = "Conflicts Before Upholds", LEAVE("Group", "After= orders starts and stops only")},
    {.keys = "Condition* Assert*", LEAVE("Group", "a shell in ExecStart=")},
    {.keys = "Sockets FileDescriptorStoreMax", LEAVE("Group", "the program opens its sockets")},
    {.keys = "TTYPath", LEAVE("Worker", OUTPUT)},
    {.keys = "Root* CPUScheduling* IOScheduling* Limit*", LEAVE("Resources", "chroot(8), chrt(1), ionice(1), prlimit(1) in ExecStart=")},
    {.keys = "RuntimeDirectory* StateDirectory* CacheDirectory* LogsDirectory* ConfigurationDirectory*", LEAVE("Group", "tmpfiles.d(5)")},
    {.keys = "LoadCredential* SetCredential*", LEAVE("Group", "EnvironmentFile=, or a file that only User= may read")},
    {.keys = "SupplementaryGroups", LEAVE("Group", "the groups that User= has in the user database")},
    {.keys = "On*Sec", LEAVE("Schedule", "OnUnitActiveSec=, which counts from when the schedule was added")},
    {.keys = "OnClockChange OnTimezoneChange WakeSystem", LEAVE("Schedule", "OnCalendar=")},
    {.keys = "Private* Protect* Restrict* Lock* Bind* Temporary* Device* IPAddress* KeyringMode RemoveIPC", LEAVE("Sandbox", "Profile=basic or Profile=strict")},
};
/* clang-format on */

/* ---- units ---- */

static void add_schedule(struct systemd_unit *timer, const char *group)
{
    struct import *import = timer->base.import;
    const struct import_setting place = {"", "", "", timer->settings.items[0].path, 0};

    timer->base.file = import_file(import, group, CONFIG_SCHEDULE_SUFFIX, &place);
    if (!timer->base.file)
        return;
    import_convert(&timer->base, RULES, ELEMENTS(RULES));
    if (!import_is_true(import_value(&timer->settings, NULL, "Persistent", "no")))
        import_set(import, timer->base.file, &place, "CatchUp", "none");
    if (strcmp(timer->base.file->name, group) != 0)
        import_set(import, timer->base.file, &place, "Group", group);
}

static void add_service(struct systemd_unit *unit, struct systemd_unit *timer)
{
    struct import *import = unit->base.import;
    const char *type = import_value(&unit->settings, NULL, "Type", "simple");
    const struct import_setting place = {"Service", "Type", type, unit->settings.items[0].path, 0};
    const struct import_setting *user = import_find(&unit->settings, NULL, "User");
    const bool dynamic = import_is_true(import_value(&unit->settings, NULL, "DynamicUser", "no"));
    const bool has_times = import_find(&timer->settings, NULL, "OnCalendar") ||
                           import_find(&timer->settings, NULL, "OnUnitActiveSec") ||
                           import_find(&timer->settings, NULL, "OnUnitInactiveSec");

    const struct import_setting *untimed = timer->settings.n > 0
                                               ? &timer->settings.items[timer->settings.n - 1]
                                               : import_find(&unit->settings, NULL, "Type");

    unit->is_job = timer->found || strcmp(type, "oneshot") == 0;
    unit->base.file = import_file(import, unit->stem, CONFIG_GROUP_SUFFIX, &place);
    if (!unit->base.file)
        return;
    if (!unit->is_job)
        set(&unit->base, &place, "Type", strncmp(type, "notify", 6) == 0 ? "notify" : "service");
    set_command(unit);
    unit->user = user      ? systemd_unit_expand(&unit->base, user, user->value)
                 : dynamic ? "nobody"
                           : import->user;
    import_user(import, unit->base.file, user ? user : &place, unit->user);
    unit->user = unit->user ? unit->user : "root";
    import_convert(&unit->base, RULES, ELEMENTS(RULES));
    if (has_times)
        add_schedule(timer, unit->base.file->name);
    else if (unit->is_job)
        leave(&unit->base, untimed ? untimed : &place, "Group",
              import_text(import, "troupectl do %s", unit->base.file->name));
}

/* A service may be named twice: by itself, and by its timer. */
static bool is_imported(const struct systemd_unit *unit)
{
    const char *name = import_name(unit->base.import, unit->stem, CONFIG_GROUP_SUFFIX);
    const struct import_file *file = unit->base.import->files;

    while (file &&
           (strcmp(file->name, name) != 0 || strcmp(file->from, unit->settings.items[0].path) != 0))
        file = file->next;
    return file;
}

/* `path` is that of a service, or of a timer, which may name another service. */
static void import_unit(struct import *import, const struct operands *operands, const char *path)
{
    struct systemd_unit unit = {.base = {.import = import, .expand = systemd_unit_expand},
                                .operands = operands},
                        timer = unit;
    const char *stem = import_text(import, "%.*s", (int)(strrchr(path, '.') - path), path);

    systemd_unit_read(&timer, import_text(import, "%s" TIMER, stem), TIMER);
    path = import_text(import, "%s" SERVICE, stem);
    if (timer.found)
        path = import_text(import, "%.*s%s", (int)(basename(path) - path), path,
                           import_value(&timer.settings, NULL, "Unit", basename(path)));
    if (!config_ends_with(basename(path), SERVICE)) {
        import_mistake(import, timer.path, 0, "Unit=%s is no service", basename(path));
        free(timer.settings.items);
        return;
    }
    systemd_unit_read(&unit, path, SERVICE);
    if (unit.stem[strlen(unit.stem) - 1] == '@')
        import_mistake(import, path, 0, "a template: name an instance, such as %sNAME%s", stem,
                       SERVICE);
    else if (!unit.found)
        import_mistake(import, path, 0, "no such unit");
    else if (unit.settings.n == 0 && import->n_mistakes == 0)
        import_mistake(import, path, 0, "an empty unit");
    else if (import->n_mistakes == 0 && !is_imported(&unit))
        add_service(&unit, &timer);
    free(unit.settings.items);
    free(timer.settings.items);
}

void import_systemd(struct import *import, const char *const *paths, size_t n_paths)
{
    const struct operands operands = {paths, n_paths};

    if (n_paths > 0)
        import->moves |= IMPORT_FROM_SYSTEMD;
    for (size_t i = 0; i < n_paths; i++)
        import_unit(import, &operands, paths[i]);
}
