/* SPDX-License-Identifier: MIT */

/*
 * Translates services of systemd. Keys that a group has under the same name are taken over as they
 * are; the table below has all others.
 */

#include "shared/base/cleanup.h"
#include "shared/base/unitfile.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/ctl/import/import.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SERVICE ".service"
#define TIMER   ".timer"

/* All units that are imported. */
struct operands {
    const char *const *paths;
    size_t n;
};

struct systemd_unit {
    struct import_unit base;
    const struct operands *operands;
    const char *path;              /* of the file that is read */
    const char *name, *stem;       /* "web@8080.service", "web@8080" */
    const char *prefix, *instance; /* "web", "8080"; "" = no instance */
    bool found;
};

static struct systemd_unit *systemd_unit_of(const struct import_unit *base)
{
    return (struct systemd_unit *)(uintptr_t)base; /* its first member */
}

/* ---- reading ---- */

/* Settings whose assignments add up. */
#define LISTS                                                                                      \
    "ExecStart* ExecStop* ExecReload ExecCondition Environment* After Before Wants Requires "      \
    "Requisite BindsTo PartOf Conflicts OnFailure OnSuccess Condition* Assert* OnCalendar "        \
    "*ExitStatus ReadWritePaths ReadOnlyPaths InaccessiblePaths *Directory *Credential "           \
    "RestrictAddressFamilies SystemCallFilter *Capabilities SupplementaryGroups Bind* "            \
    "Temporary* Device* IPAddress* Documentation"

static int on_section(void *userdata, unsigned line, const char *section)
{
    return strcmp(section, "Install") == 0 || strncmp(section, "X-", 2) == 0 ? UNITFILE_E_SKIP : 0;
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    struct systemd_unit *unit = userdata;

    import_mistake(unit->base.import, &(struct import_setting){.path = unit->path, .line = line},
                   "%s", text);
    return 0;
}

/* An empty assignment resets a list. One to a key that is no list replaces the former value. */
static int on_assignment(void *userdata, const struct unitfile_assignment *assignment)
{
    struct systemd_unit *unit = userdata;
    struct import *import = unit->base.import;
    struct import_settings *settings = &unit->base.settings;
    const char *empty = strcmp(assignment->key, "CapabilityBoundingSet") == 0 ? "none" : "";
    const char *value = *assignment->value != '\0' ? assignment->value : empty;
    size_t n = 0;

    for (size_t i = 0; i < settings->n; i++)
        if (strcmp(settings->items[i].key, assignment->key) != 0 ||
            (*value != '\0' && import_matches(LISTS, assignment->key)))
            settings->items[n++] = settings->items[i];
    settings->n = n;
    if (*value != '\0')
        import_add(&unit->base,
                   (struct import_setting){import_text(import, "%s", assignment->section),
                                           import_text(import, "%s", assignment->key),
                                           import_text(import, "%s", value), unit->path,
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
        import_mistake(unit->base.import, &(struct import_setting){.path = path}, "%s",
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

/* Reads a unit and its drop-ins: from the directory of `path`, or if it has none, from the current
 * one and then from those of systemd. An instance is read from its template. */
static void read_unit(struct systemd_unit *unit, const char *path, const char *suffix)
{
    static const char *const DIRECTORIES[] = {"", "/etc/systemd/system/", "/run/systemd/system/",
                                              "/usr/local/lib/systemd/system/",
                                              "/usr/lib/systemd/system/"};
    struct import *import = unit->base.import;
    const char *name = basename(path), *at = strchr(name, '@');
    const char *own = import_text(import, "%.*s", (int)(name - path), path);
    const char *const *directories = name > path ? &own : DIRECTORIES;
    const size_t n = name > path ? 1 : ELEMENTS(DIRECTORIES);
    const char *template = name;

    unit->name = name;
    unit->stem = import_text(import, "%.*s", (int)(strlen(name) - strlen(suffix)), name);
    unit->prefix = unit->stem;
    unit->instance = "";
    if (at && unit->stem[at - name + 1] != '\0') {
        unit->instance = unit->stem + (at - name) + 1;
        unit->prefix = import_text(import, "%.*s", (int)(at - name), name);
        template = import_text(import, "%s@%s", unit->prefix, suffix);
    }
    for (size_t i = 0; i < n && !unit->found; i++)
        unit->found = read_file(unit, import_text(import, "%s%s", directories[i], name));
    for (size_t i = 0; i < n && !unit->found; i++)
        unit->found = read_file(unit, import_text(import, "%s%s", directories[i], template));
    /* Drop-ins that override others come last: those of earlier directories, and of an instance. */
    for (size_t i = n; unit->found && template != name && i-- > 0;)
        read_drop_ins(unit, directories[i], template);
    for (size_t i = n; unit->found && i-- > 0;)
        read_drop_ins(unit, directories[i], name);
}

/* ---- specifiers ---- */

/* Returns NULL if the specifier has no fixed value. */
static const char *specifier(const struct systemd_unit *unit, char letter)
{
    /* clang-format off */
    const struct {
        char letter;
        const char *value;
    } values[] = {
        {'%', "%"}, {'t', "/run"}, {'S', "/var/lib"}, {'C', "/var/cache"}, {'L', "/var/log"},
        {'E', "/etc"}, {'T', "/tmp"}, {'V', "/var/tmp"}, {'h', "/root"}, {'u', "root"}, {'U', "0"},
        {'s', "/bin/sh"}, {'n', unit->name}, {'N', unit->stem}, {'p', unit->prefix},
        {'i', unit->instance}};
    /* clang-format on */

    for (size_t i = 0; i < ELEMENTS(values); i++)
        if (values[i].letter == letter)
            return values[i].value;
    return NULL;
}

static const char *expand(const struct import_unit *base, const struct import_setting *setting,
                          const char *text)
{
    struct buffer expanded = BUFFER_NULL;
    const char *value = "";

    for (; *text != '\0' && value; text++)
        if (*text == '%' && text[1] != '\0')
            buffer_add_string(&expanded,
                              (value = specifier(systemd_unit_of(base), *++text)) ? value : "");
        else
            buffer_add_char(&expanded, *text);
    text = import_take(base->import, &expanded);
    return value ? text : NULL;
}

/* ---- commands ---- */

#define OUTPUT   "output goes to the log; a shell redirects it elsewhere"
#define STOPPING "handle KillSignal= in the program, or with trap in a shell that starts it"

/* Returns a command line with specifiers replaced, for a shell if `shell`. */
static const char *command_of(struct import_unit *base, const struct import_setting *setting,
                              const char *text, bool shell)
{
    struct buffer line = BUFFER_NULL;

    for (; *text != '\0'; text++) {
        const char *value =
            *text == '%' && text[1] != '%' ? specifier(systemd_unit_of(base), text[1]) : NULL;

        if (value) {
            buffer_add_string(&line, value);
            text++;
        } else if (*text == '%') {
            buffer_add_string(&line, "%%");
            if (text[1] == '%')
                text++;
            else
                import_leave(base, setting, "ExecStart= without its % specifier");
        } else if (shell && strncmp(text, "$$", 2) == 0) {
            buffer_add_string(&line, "\\$");
            text++;
        } else {
            buffer_add_char(&line, *text);
        }
    }
    return import_take(base->import, &line);
}

/* Several commands, and variables, need a shell. As with systemd, it splits variables into words,
 * but does not take them for patterns. */
static void set_command(struct systemd_unit *unit)
{
    struct import_unit *base = &unit->base;
    const struct import_setting *setting = NULL, *items = base->settings.items;
    const char *script = "", *command = "";
    bool shell = false;
    unsigned n = 0;

    for (size_t i = 0; i < base->settings.n; i++) {
        if (strcmp(items[i].key, "ExecStart") != 0)
            continue;
        setting = &items[i];
        command = setting->value + strspn(setting->value, "-@+!:|");
        if (strcspn(setting->value, "-@+!|") < (size_t)(command - setting->value))
            import_leave(base, setting,
                         "SuccessExitStatus= for -, User= for + and !, the program once for @");
        if (++n == 2 && !base->is_job)
            import_mistake(base->import, setting,
                           "a second ExecStart=, which only Type=oneshot may have");
        shell = shell || n > 1 || (*setting->value != ':' && strchr(command, '$'));
        command = command_of(base, setting, command, shell);
        script = import_text(base->import, "%s%s%s", script, n > 1 ? " && " : "", command);
    }
    if (n == 0)
        import_mistake(base->import, &(struct import_setting){.path = unit->path},
                       "no ExecStart= in [Service]");
    else
        import_command(base, setting,
                       shell ? import_shell(base->import, "/bin/sh",
                                            import_text(base->import, "set -f; %s%s",
                                                        n == 1 ? "exec " : "", script))
                             : command);
}

/* ---- keys that are not taken over as they are ---- */

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
        import_set(unit, setting, reloads ? "ReloadSignal" : "KillSignal", signal);
    else
        import_leave(unit, setting,
                     reloads ? "troupectl signal with ReloadSignal=, or troupectl restart"
                             : STOPPING);
}

static void convert_restart(struct import_unit *unit, const struct import_setting *setting)
{
    const char *value = setting->value;

    if (unit->is_job) {
        if (strcmp(value, "no") != 0)
            import_leave(unit, setting, "MaxRetries=");
        return;
    }
    if (!import_matches("always no on-failure", value)) {
        import_leave(unit, setting, "Restart= is on-failure, always or no only");
        value = strcmp(value, "on-success") == 0 ? "always" : "on-failure";
    }
    import_set(unit, setting, "Restart", value);
    if (strcmp(value, "on-failure") == 0) /* systemd counts these as success */
        import_set(unit, setting, "SuccessExitStatus", "SIGHUP SIGINT SIGTERM SIGPIPE");
}

/* The pause does not grow, unless the unit says so. */
static void convert_pause(struct import_unit *unit, const struct import_setting *setting)
{
    import_set(unit, setting, unit->is_job ? "BackoffMinSec" : "MinSec", setting->value);
    import_set(unit, setting, unit->is_job ? "BackoffMaxSec" : "MaxSec",
               import_value(unit, NULL, "RestartMaxDelaySec", setting->value));
}

static void convert_directory(struct import_unit *unit, const struct import_setting *setting)
{
    static const struct {
        const char *key, *parent;
    } parents[] = {
        {"RuntimeDirectory", "/run"},       {"StateDirectory", "/var/lib"},
        {"CacheDirectory", "/var/cache"},   {"LogsDirectory", "/var/log"},
        {"ConfigurationDirectory", "/etc"},
    };
    const char *user = import_value(unit, NULL, "User", "root");
    const char *group = import_value(unit, NULL, "Group", user), *value = setting->value;
    char name[256];
    size_t i = 0;

    while (i < ELEMENTS(parents) - 1 && strcmp(parents[i].key, setting->key) != 0)
        i++;
    for (int n; sscanf(value, " %255s%n", name, &n) == 1; value += n)
        import_leave(unit, setting,
                     import_text(unit->import,
                                 "'d %s/%.*s 0755 %s %s' in /etc/tmpfiles.d/%s.conf, then "
                                 "systemd-tmpfiles --create: tmpfiles.d(5)",
                                 parents[i].parent, (int)strcspn(name, ":"), name, user, group,
                                 unit->file ? unit->file->name : "troupe"));
}

/* Whether two names of units are equal but for their suffixes. */
static bool is_same_stem(const char *a, const char *b)
{
    const size_t size = (size_t)(strrchr(a, '.') - a);

    return (size_t)(strrchr(b, '.') - b) == size && strncmp(a, b, size) == 0;
}

/* Services that become groups are named in After=; targets have been reached when trouped starts.
 */
static void convert_dependency(struct import_unit *unit, const struct import_setting *setting)
{
    const struct operands *operands = systemd_unit_of(unit)->operands;
    struct buffer groups = BUFFER_NULL;
    bool others = false;
    const char *names, *value = setting->value;
    char name[256];

    for (int n; sscanf(value, " %255s%n", name, &n) == 1; value += n) {
        const bool is_service = config_ends_with(name, SERVICE);
        bool own = false;

        for (size_t i = 0; is_service && i < operands->n; i++)
            own = own || is_same_stem(basename(operands->paths[i]), name);
        others =
            others || (own ? !import_matches("After Wants", setting->key)
                           : !config_ends_with(name, ".target") || strstr(name, "network-online"));
        if (!own || strcmp(setting->key, "After") != 0)
            continue;
        name[strlen(name) - strlen(SERVICE)] = '\0';
        buffer_add_string(&groups, groups.size > 0 ? " " : "");
        buffer_add_string(&groups, import_name(unit->import, name, CONFIG_GROUP_SUFFIX));
    }
    names = import_take(unit->import, &groups);
    if (*names != '\0')
        import_set(unit, setting, "After", names);
    if (others)
        import_leave(unit, setting,
                     "After= orders groups; trouped.service waits for units by a drop-in");
}

/* clang-format off */
static const struct import_rule RULES[] = {
    /* Read elsewhere, or without effect. */
    {.keys = "ExecStart User RestartMaxDelaySec Persistent Unit Documentation DefaultDependencies X-* "
             "*Accounting NotifyAccess IgnoreOnIsolate StopWhenUnneeded RefuseManual* CollectMode "
             "AccuracySec FixedRandomDelay RemainAfterElapse SourcePath"},
    {.keys = "Type", .fine = "simple exec idle notify* oneshot", .instead = "a program in the foreground, with Type=service or notify"},
    {.keys = "ExecStop ExecReload", .convert = convert_exec},
    {.keys = "Restart", .convert = convert_restart},
    {.keys = "RestartSec", .convert = convert_pause},
    {.keys = "RuntimeMaxSec", .same = "MaxAgeSec", .job = "TimeoutSec"},
    {.keys = "TimeoutStartSec", .same = "TimeoutStartSec", .job = "TimeoutSec"},
    {.keys = "TimeoutSec", .same = "TimeoutStartSec TimeoutStopSec", .job = "TimeoutSec TimeoutStopSec"},
    {.keys = "After Wants Requires Requisite BindsTo PartOf", .convert = convert_dependency},
    {.keys = "StandardInput", .fine = "null", .instead = OUTPUT},
    {.keys = "StandardOutput StandardError", .fine = "journal* syslog* inherit kmsg*", .instead = OUTPUT},
    {.keys = "DynamicUser", .fine = "no false off 0", .instead = "sysusers.d(5) for a user of its own, and User= with its name"},
    {.keys = "StartLimitInterval", .same = "StartLimitIntervalSec"},
    {.keys = "MemoryLimit", .same = "MemoryMax"},
    /* The list in troupe.group(5), COMPARED WITH SYSTEMD. */
    {.keys = "ExecStartPre ExecStartPost ExecCondition", .instead = "ExecStart=/bin/sh -c 'prepare && exec program'"},
    {.keys = "ExecStopPost", .instead = STOPPING},
    {.keys = "SendSIGHUP SendSIGKILL FinalKillSignal RestartKillSignal", .instead = "KillSignal= and then SIGKILL"},
    {.keys = "PIDFile GuessMainPID RemainAfterExit BusName", .instead = "a program in the foreground"},
    {.keys = "RestartSteps", .instead = "MinSec= and MaxSec="},
    {.keys = "RestartForceExitStatus", .instead = "Restart=always with RestartPreventExitStatus="},
    {.keys = "OnFailure OnSuccess", .instead = "troupectl events --follow"},
    {.keys = "Conflicts Before Upholds", .instead = "After= orders starts and stops only"},
    {.keys = "Condition* Assert*", .instead = "a shell in ExecStart="},
    {.keys = "Sockets FileDescriptorStoreMax", .instead = "the program opens its sockets"},
    {.keys = "TTYPath", .instead = OUTPUT},
    {.keys = "Root* CPUScheduling* IOScheduling* Limit*", .instead = "chroot(8), chrt(1), ionice(1), prlimit(1) in ExecStart="},
    {.keys = "RuntimeDirectory StateDirectory CacheDirectory LogsDirectory ConfigurationDirectory", .convert = convert_directory},
    {.keys = "RuntimeDirectory* StateDirectory* CacheDirectory* LogsDirectory* ConfigurationDirectory*", .instead = "tmpfiles.d(5)"},
    {.keys = "LoadCredential* SetCredential*", .instead = "EnvironmentFile=, or a file that only User= may read"},
    {.keys = "SupplementaryGroups", .instead = "the groups that User= has in the user database"},
    {.keys = "On*Sec", .instead = "OnUnitActiveSec=, which counts from when the schedule was added"},
    {.keys = "OnClockChange OnTimezoneChange WakeSystem", .instead = "OnCalendar="},
    {.keys = "Private* Protect* Restrict* Lock* Bind* Temporary* Device* IPAddress* KeyringMode RemoveIPC", .instead = "Profile=basic or Profile=strict"},
};
/* clang-format on */

/* ---- units ---- */

static void add_schedule(struct systemd_unit *timer, const char *group)
{
    struct import_unit *base = &timer->base;
    const struct import_setting place = {"", "", "", base->settings.items[0].path, 0};

    if (!import_begin(base, group, CONFIG_SCHEDULE_SUFFIX, &place))
        return;
    import_convert(base, RULES, ELEMENTS(RULES));
    if (!import_is_true(import_value(base, NULL, "Persistent", "no")))
        import_set(base, &place, "CatchUp", "none");
    if (strcmp(base->file->name, group) != 0)
        import_set(base, &place, "Group", group);
}

static void add_service(struct systemd_unit *unit, struct systemd_unit *timer)
{
    struct import_unit *base = &unit->base;
    const struct import_settings *times = &timer->base.settings;
    const char *type = import_value(base, NULL, "Type", "simple");
    const struct import_setting place = {"Service", "Type", type, base->settings.items[0].path, 0};
    const struct import_setting *user = import_find(base, NULL, "User");
    const bool dynamic = import_is_true(import_value(base, NULL, "DynamicUser", "no"));
    const struct import_setting *untimed =
        times->n > 0 ? &times->items[times->n - 1] : import_find(base, NULL, "Type");

    base->is_job = timer->found || strcmp(type, "oneshot") == 0;
    if (!import_begin(base, unit->stem, CONFIG_GROUP_SUFFIX, &place))
        return;
    if (!base->is_job)
        import_set(base, &place, "Type", import_matches("notify*", type) ? "notify" : "service");
    if (!base->is_job && strcmp(type, "notify-reload") == 0)
        import_set(base, &place, "ReloadSignal", "SIGHUP");
    set_command(unit);
    import_user(base, user ? user : &place,
                user      ? expand(base, user, user->value)
                : dynamic ? "nobody"
                          : NULL);
    import_convert(base, RULES, ELEMENTS(RULES));
    if (import_find(&timer->base, NULL, "OnCalendar") ||
        import_find(&timer->base, NULL, "OnUnitActiveSec") ||
        import_find(&timer->base, NULL, "OnUnitInactiveSec"))
        add_schedule(timer, base->file->name);
    else if (base->is_job)
        import_leave(base, untimed ? untimed : &place,
                     import_text(base->import, "troupectl do %s", base->file->name));
}

/* Whether an operand before this one has imported it: a service, or its timer. */
static bool is_imported(const char *const *paths, size_t i)
{
    size_t n = 0;

    while (n < i && !is_same_stem(paths[n], paths[i]))
        n++;
    return n < i;
}

/* Reads a service and its timer, which may name another service. Returns what is wrong with them,
 * or NULL. */
static const char *read_both(struct systemd_unit *unit, struct systemd_unit *timer,
                             const char *operand)
{
    struct import *import = unit->base.import;
    const char *stem = import_text(import, "%.*s", (int)(strrchr(operand, '.') - operand), operand);
    const char *path = import_text(import, "%s" SERVICE, stem);

    read_unit(timer, import_text(import, "%s" TIMER, stem), TIMER);
    if (timer->found)
        path = import_text(import, "%.*s%s", (int)(basename(path) - path), path,
                           import_value(&timer->base, NULL, "Unit", basename(path)));
    if (!config_ends_with(path, SERVICE))
        return import_text(import, "Unit=%s is no service", basename(path));
    read_unit(unit, path, SERVICE);
    if (config_ends_with(unit->stem, "@"))
        return import_text(import, "a template: name an instance, such as %sNAME%s", stem, SERVICE);
    if (!unit->found)
        return "no such unit";
    return unit->base.settings.n == 0 ? "an empty unit" : NULL;
}

void import_systemd(struct import *import, const char *const *paths, size_t n_paths)
{
    const struct operands operands = {paths, n_paths};

    for (size_t i = 0; i < n_paths; i++) {
        struct systemd_unit unit = {.base = {.import = import, .expand = expand},
                                    .operands = &operands},
                            timer = unit;
        const char *problem = read_both(&unit, &timer, paths[i]);

        if (problem)
            import_mistake(import, &(struct import_setting){.path = paths[i]}, "%s", problem);
        else if (import->n_mistakes == 0 && !is_imported(paths, i))
            add_service(&unit, &timer);
        free(unit.base.settings.items);
        free(timer.base.settings.items);
    }
}
