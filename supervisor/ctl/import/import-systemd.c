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
#include "supervisor/ctl/import/import-command.h"
#include "supervisor/ctl/import/import.h"
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define SERVICE ".service"
#define TIMER   ".timer"

#define OUTPUT   "output goes to the log; a shell redirects it elsewhere"
#define STOPPING "handle KillSignal= in the program, or with trap in a shell that starts it"

/* The strongest first. */
static const char *const DIRECTORIES[] = {"/etc/systemd/system/", "/run/systemd/system/",
                                          "/usr/local/lib/systemd/system/",
                                          "/usr/lib/systemd/system/"};

/* All that is imported. */
struct operands {
    const char *const *paths;
    size_t n;
};

struct unit {
    struct import_unit base;
    const struct operands *operands;
    const char *path;              /* of the file that is read */
    const char *name, *stem;       /* "web@8080.service", "web@8080" */
    const char *prefix, *instance; /* "web", "8080"; NULL = no instance */
    const char *user;
    struct import_settings settings;
    bool is_job;
    bool found;
};

static struct unit *unit_of(const struct import_unit *base)
{
    return (struct unit *)(uintptr_t)base; /* its first member */
}

/* ---- reading ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int on_section(void *userdata, unsigned line, const char *section)
{
    (void)userdata;
    (void)line;
    return strcmp(section, "Install") == 0 || strncmp(section, "X-", 2) == 0 ? UNITFILE_E_SKIP : 0;
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    struct unit *unit = userdata;

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
    struct unit *unit = userdata;
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
static bool read_file(struct unit *unit, const char *path)
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

static void read_drop_ins(struct unit *unit, const char *directory, const char *name)
{
    const char *path = import_text(unit->base.import, "%s%s.d", directory, name);
    _cleanup_strv_ config_strv names = NULL;

    (void)config_list(path, CONFIG_DROPIN_SUFFIX, &names);
    for (size_t i = 0; names && names[i]; i++)
        (void)read_file(unit, import_text(unit->base.import, "%s/%s", path, names[i]));
}

/* Reads a unit and its drop-ins: from its directory, or if that is one of systemd's, or is not
 * given, from all of these. An instance is read from its template. */
static void read_unit(struct unit *unit, const char *path, const char *suffix)
{
    struct import *import = unit->base.import;
    const char *name = base_of(path), *at = strchr(name, '@');
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
static const char *specifier(const struct unit *unit, char letter)
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

static const char *expand(const struct import_unit *base, const struct import_setting *setting,
                          const char *text)
{
    struct buffer expanded = BUFFER_NULL;

    (void)setting;
    for (; *text != '\0'; text++) {
        const char *value = *text == '%' && text[1] ? specifier(unit_of(base), text[1]) : NULL;

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

/* ---- commands ---- */

/* Adds a word, in which a shell expands variables: "${NAME}", and "$NAME" if that is the word. */
static void add_word(const struct unit *unit, struct import_command *command, const char *word,
                     bool plain)
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
static bool add_command(struct unit *unit, const struct import_setting *setting,
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
        const char *word = expand(&unit->base, setting, words[i]);

        if (!word)
            import_leave(import, unit->base.file, "Group", setting,
                         "ExecStart= without its % specifier");
        word = word ? word : words[i];
        if (i != 1 || !strchr(prefixes, '@'))
            add_word(unit, command, word, strchr(prefixes, ':'));
    }
    return true;
}

static void set_command(struct unit *unit)
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
    if (unit_of(unit)->is_job)
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

    if (unit_of(unit)->is_job) {
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
    const bool is_job = unit_of(unit)->is_job;

    set(unit, setting, is_job ? "BackoffMinSec" : "MinSec", setting->value);
    set(unit, setting, is_job ? "BackoffMaxSec" : "MaxSec",
        import_value(unit->settings, NULL, "RestartMaxDelaySec", setting->value));
}

static void convert_time_limit(struct import_unit *unit, const struct import_setting *setting)
{
    const bool runs = strcmp(setting->key, "RuntimeMaxSec") == 0;

    set(unit, setting,
        unit_of(unit)->is_job ? "TimeoutSec"
        : runs                ? "MaxAgeSec"
                              : "TimeoutStartSec",
        setting->value);
    if (strcmp(setting->key, "TimeoutSec") == 0)
        set(unit, setting, "TimeoutStopSec", setting->value);
}

/* Units that become groups are named in After=; targets have been reached when trouped starts. */
static void convert_dependency(struct import_unit *unit, const struct import_setting *setting)
{
    const struct operands *operands = unit_of(unit)->operands;
    struct buffer groups = BUFFER_NULL;
    bool others = false;
    const char *names, *value = setting->value;
    char name[256];

    for (int n; sscanf(value, " %255s%n", name, &n) == 1; value += n) {
        bool own = false;

        for (size_t i = 0; i < operands->n; i++)
            own = own || strcmp(base_of(operands->paths[i]), name) == 0;
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
    const struct passwd *user = getpwnam(unit_of(unit)->user);
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

static void add_schedule(struct unit *timer, const char *group)
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

static void add_service(struct unit *unit, struct unit *timer)
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
    unit->user = user ? expand(&unit->base, user, user->value) : dynamic ? "nobody" : import->user;
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
static bool is_imported(const struct unit *unit)
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
    struct unit unit = {.base = {.import = import, .expand = expand}, .operands = operands},
                timer = unit;
    const char *stem = import_text(import, "%.*s", (int)(strrchr(path, '.') - path), path);

    read_unit(&timer, import_text(import, "%s" TIMER, stem), TIMER);
    path = import_text(import, "%s" SERVICE, stem);
    if (timer.found)
        path = import_text(import, "%.*s%s", (int)(base_of(path) - path), path,
                           import_value(&timer.settings, NULL, "Unit", base_of(path)));
    if (!config_ends_with(base_of(path), SERVICE)) {
        import_mistake(import, timer.path, 0, "Unit=%s is no service", base_of(path));
        free(timer.settings.items);
        return;
    }
    read_unit(&unit, path, SERVICE);
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
