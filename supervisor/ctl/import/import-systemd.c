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
#include "supervisor/config/syntax/words.h"
#include "supervisor/ctl/import/import.h"
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define SERVICE ".service"
#define TIMER   ".timer"

/* All that is imported. */
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
    const char *user;
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
    (void)userdata;
    (void)line;
    return strcmp(section, "Install") == 0 || strncmp(section, "X-", 2) == 0 ? UNITFILE_E_SKIP : 0;
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    struct systemd_unit *unit = userdata;

    import_mistake(unit->base.import, &(struct import_setting){.path = unit->path, .line = line},
                   "%s", text);
    return 0;
}

/* An empty assignment resets a list, and so does each one of a key that is none. */
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

/* Reads a unit and its drop-ins: from the directory of `path`, or if that names none, from the
 * present one and then from those of systemd. An instance is read from its template. */
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
    /* The strongest last, and those of an instance. */
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

    (void)setting;
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

/* Adds a word, in which a shell expands variables: "${NAME}", and "$NAME" if that is the word. */
static void add_word(struct import *import, struct import_script *script, const char *word,
                     bool plain)
{
    const size_t name = *word == '$' ? strspn(word + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                        "abcdefghijklmnopqrstuvwxyz_0123456789")
                                     : 0;

    import_script_word(script);
    if (!plain && name > 0 && word[1 + name] == '\0') {
        import_script_shell(script, word);
        return;
    }
    do {
        const char *end = word + strcspn(word, "$");
        const char *close = !plain && strncmp(end, "${", 2) == 0 ? strchr(end, '}') : NULL;
        const bool doubled = !plain && strncmp(end, "$$", 2) == 0;

        if (!close && *end == '$')
            end++;
        if (end > word || *word == '\0')
            import_script_text(script, word, (size_t)(end - word));
        if (close)
            import_script_shell(script,
                                import_text(import, "\"%.*s\"", (int)(close + 1 - end), end));
        word = close ? close + 1 : end + doubled;
    } while (*word != '\0');
}

/* Translates one command line, which is added to `script`. Returns false if it cannot be. */
static bool add_command(struct import_unit *base, const struct import_setting *setting,
                        struct import_script *script)
{
    struct import *import = base->import;
    const char *line = setting->value + strspn(setting->value, "-@+!:|"), *reason;
    const char *prefixes =
        import_text(import, "%.*s", (int)(line - setting->value), setting->value);
    _cleanup_strv_ config_strv words = NULL;
    int r = words_split(line, true, &words, &reason);

    if (r < 0)
        import->failed = true;
    if (r == WORDS_E_INVALID)
        import_mistake(import, setting, "%s: %s", setting->key, reason);
    if (r != 0 || !words)
        return false;
    if (strpbrk(prefixes, "-@+!|"))
        import_leave(
            base, setting,
            "SuccessExitStatus= for -, User= for + and !, sh -c 'exec -a NAME' in bash for @");
    for (size_t i = 0; words[i]; i++) {
        const char *word = expand(base, setting, words[i]);

        if (!word)
            import_leave(base, setting, "ExecStart= without its % specifier");
        if (i != 1 || !strchr(prefixes, '@'))
            add_word(import, script, word ? word : words[i], strchr(prefixes, ':'));
    }
    return true;
}

static void set_command(struct systemd_unit *unit)
{
    struct import_unit *base = &unit->base;
    const struct import_setting *setting = NULL;
    struct import_script script = {0};
    bool valid = true;
    unsigned n = 0;
    const char *line;

    for (size_t i = 0; i < base->settings.n; i++) {
        if (strcmp(base->settings.items[i].key, "ExecStart") != 0)
            continue;
        setting = &base->settings.items[i];
        if (n++ > 0)
            import_script_shell(&script, " &&");
        valid = add_command(base, setting, &script) && valid;
        if (n == 2 && !base->is_job)
            import_mistake(base->import, setting,
                           "a second ExecStart=, which only Type=oneshot may have");
    }
    line = import_script_take(base->import, &script, n == 1);
    if (n == 0)
        import_mistake(base->import, &(struct import_setting){.path = unit->path},
                       "no ExecStart= in [Service]");
    else if (valid)
        import_command(base, setting, line);
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
        import_leave(unit, setting, "MaxRetries=");
        return;
    }
    if (!import_matches("always on-failure", value)) {
        import_leave(unit, setting, "Restart= is on-failure, always or no only");
        value = strcmp(value, "on-success") == 0 ? "always" : "on-failure";
    }
    import_set(unit, setting, "Restart", value);
    if (strcmp(value, "on-failure") == 0) /* ends that are successes for systemd */
        import_set(unit, setting, "SuccessExitStatus", "SIGHUP SIGINT SIGTERM SIGPIPE");
}

/* The pause does not grow, unless the unit says so. */
static void convert_pause(struct import_unit *unit, const struct import_setting *setting)
{
    import_set(unit, setting, unit->is_job ? "BackoffMinSec" : "MinSec", setting->value);
    import_set(unit, setting, unit->is_job ? "BackoffMaxSec" : "MaxSec",
               import_value(unit, NULL, "RestartMaxDelaySec", setting->value));
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
        import_leave(unit, setting, "EnvironmentFile= for each file");
    else
        import_set_same(unit, setting, "EnvironmentFile");
}

/* clang-format off */
static const struct import_rule RULES[] = {
    /* Read elsewhere, or without effect. */
    {.keys = "ExecStart User RestartMaxDelaySec Persistent Unit Documentation DefaultDependencies X-* "
             "*Accounting NotifyAccess IgnoreOnIsolate StopWhenUnneeded RefuseManual* CollectMode "
             "AccuracySec FixedRandomDelay RemainAfterElapse SourcePath"},
    {.keys = "Type", .fine = "simple exec idle notify* oneshot", .instead = "a program in the foreground, with Type=service or notify"},
    {.keys = "ExecStop ExecReload", .convert = convert_exec},
    {.keys = "Restart", .fine = "no", .convert = convert_restart},
    {.keys = "RestartSec", .convert = convert_pause},
    {.keys = "RuntimeMaxSec", .same = "MaxAgeSec", .job = "TimeoutSec"},
    {.keys = "TimeoutStartSec", .same = "TimeoutStartSec", .job = "TimeoutSec"},
    {.keys = "TimeoutSec", .same = "TimeoutStartSec TimeoutStopSec", .job = "TimeoutSec TimeoutStopSec"},
    {.keys = "After Wants Requires Requisite BindsTo PartOf", .convert = convert_dependency},
    {.keys = "StandardInput", .fine = "null", .instead = OUTPUT},
    {.keys = "StandardOutput StandardError", .fine = "journal* syslog* inherit kmsg*", .instead = OUTPUT},
    {.keys = "WorkingDirectory", .convert = convert_directory},
    {.keys = "EnvironmentFile", .convert = convert_file},
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
    if (strcmp(type, "notify-reload") == 0)
        import_set(base, &place, "ReloadSignal", "SIGHUP");
    set_command(unit);
    unit->user = user ? expand(base, user, user->value) : dynamic ? "nobody" : base->import->user;
    import_user(base, user ? user : &place, unit->user);
    unit->user = unit->user ? unit->user : "root";
    import_convert(base, RULES, ELEMENTS(RULES));
    if (import_find(&timer->base, NULL, "OnCalendar") ||
        import_find(&timer->base, NULL, "OnUnitActiveSec") ||
        import_find(&timer->base, NULL, "OnUnitInactiveSec"))
        add_schedule(timer, base->file->name);
    else if (base->is_job)
        import_leave(base, untimed ? untimed : &place,
                     import_text(base->import, "troupectl do %s", base->file->name));
}

/* A service may be named twice: by itself, and by its timer. */
static bool is_imported(const struct systemd_unit *unit)
{
    const char *name = import_name(unit->base.import, unit->stem, CONFIG_GROUP_SUFFIX);
    const char *from = unit->base.settings.items[0].path;
    const struct import_file *file = unit->base.import->files;

    while (file && (strcmp(file->name, name) != 0 || strcmp(file->from, from) != 0))
        file = file->next;
    return file;
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
        else if (import->n_mistakes == 0 && !is_imported(&unit))
            add_service(&unit, &timer);
        free(unit.base.settings.items);
        free(timer.base.settings.items);
    }
}
