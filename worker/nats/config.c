/* SPDX-License-Identifier: MIT */
#include "worker/nats/config.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/quantity.h"
#include "shared/base/unitfile.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPLICAS_MAX 5u

enum kind {
    KIND_TEXT,
    KIND_FILE,
    KIND_NUMBER,
    KIND_TIME,
    KIND_WORD, /* stored as a number */
};

struct key {
    const char *name;
    const char *variable; /* of the environment; NULL = none */
    size_t offset;
    enum kind kind;
    config_valid_fn valid; /* of KIND_TEXT */
    uint64_t min, max;
    const char *const *words; /* what the numbers from 0 to `max` are called */
    const char *fallback;
    const char *allowed;
};

static const char *const result_words[] = {
    [CONFIG_RESULTS_ALL] = "all",
    [CONFIG_RESULTS_ERRORS] = "errors",
    [CONFIG_RESULTS_NONE] = "none",
};

#define MACHINE_ALLOWED                                                                            \
    "1 to 64 characters of A-Z a-z 0-9 _ - and dots between them (default: the host name)"

#define KEY(key_name, member, value_kind)                                                          \
    .name = (key_name), .offset = offsetof(struct config, member), .kind = (value_kind)
#define TEXT_KEY(key_name, member, is_valid, default_value, texts)                                 \
    {                                                                                              \
        KEY(key_name, member, KIND_TEXT), .valid = (is_valid), .fallback = (default_value),        \
                                          .allowed = (texts)                                       \
    }
#define FILE_KEY(key_name, environment, member)                                                    \
    {                                                                                              \
        KEY(key_name, member, KIND_FILE), .variable = (environment),                               \
                                          .allowed = "the absolute path of a file"                 \
    }
#define NUMBER_KEY(key_name, value_kind, member, least, most, default_value, numbers)              \
    {                                                                                              \
        KEY(key_name, member, value_kind), .min = (least), .max = (most),                          \
                                           .fallback = (default_value), .allowed = (numbers)       \
    }

/* The variables are those of NATS's own command line program. */
static const struct key keys[] = {
    {KEY("URL", url, KIND_TEXT), .variable = "NATS_URL", .valid = config_valid_urls,
     .fallback = "nats://127.0.0.1:4222",
     .allowed = "1 to 16 servers with commas: nats://HOST:PORT or tls://HOST:PORT"},
    FILE_KEY("Credentials", "NATS_CREDS", credentials),
    FILE_KEY("CAFile", "NATS_CA", ca_file),
    FILE_KEY("CertificateFile", "NATS_CERT", certificate_file),
    FILE_KEY("KeyFile", "NATS_KEY", key_file),
    TEXT_KEY("NKey", nkey, config_valid_nkey, NULL,
             "the public key of a user, 56 letters and digits that begin with U"),
    FILE_KEY("NKeyFile", "NATS_NKEY", nkey_file),
    TEXT_KEY("Stream", stream, config_valid_stream, "JOBS",
             "1 to 32 characters of A-Z a-z 0-9 _ -, not beginning with -"),
    TEXT_KEY("Consumer", consumer, config_valid_name, NULL,
             "a name of A-Z a-z 0-9 _ -, not beginning with -"),
    TEXT_KEY("Filter", filter, config_valid_filter, NULL,
             "jobs.GROUP.KEY with the group of the command, where parts of KEY may be * and the "
             "last part >"),
    TEXT_KEY("Machine", machine, config_valid_machine, NULL, MACHINE_ALLOWED),
    NUMBER_KEY("StateSec", KIND_TIME, state, USEC_PER_SEC, 3600 * USEC_PER_SEC, "10s",
               "a time from 1s to 60min"),
    NUMBER_KEY("InFlight", KIND_NUMBER, in_flight, 1, CONFIG_IN_FLIGHT_MAX, "64",
               "a number from 1 to 65536"),
    {KEY("Results", results, KIND_WORD), .max = CONFIG_RESULTS_NONE, .words = result_words,
     .fallback = "all", .allowed = "all, errors, none"},
    NUMBER_KEY("Replicas", KIND_NUMBER, replicas, 1, REPLICAS_MAX, "1", "a number from 1 to 5"),
    NUMBER_KEY("AckWaitSec", KIND_TIME, ack_wait, USEC_PER_SEC, 3600 * USEC_PER_SEC, "30s",
               "a time from 1s to 60min"),
};

static char **text_of(struct config *config, const struct key *key)
{
    return (char **)((char *)config + key->offset);
}

static uint64_t *number_of(struct config *config, const struct key *key)
{
    return (uint64_t *)((char *)config + key->offset);
}

static int set_text(struct config *config, const struct key *key, const char *value)
{
    char *copy;

    if (*value == '\0' || (key->kind == KIND_FILE && *value != '/') ||
        (key->valid && !key->valid(value, config->group)))
        return -EINVAL;
    copy = strdup(value);
    if (!copy)
        return -ENOMEM;
    free(*text_of(config, key));
    *text_of(config, key) = copy;
    return 0;
}

static int set_number(struct config *config, const struct key *key, const char *value)
{
    uint64_t number;
    const char *end = "";
    int r = key->kind == KIND_TIME ? quantity_parse_time(value, &number)
                                   : quantity_parse_number(value, &number, &end);

    if (r < 0 || *end != '\0' || number < key->min || number > key->max)
        return -EINVAL;
    *number_of(config, key) = number;
    return 0;
}

static int set_word(struct config *config, const struct key *key, const char *value)
{
    for (uint64_t i = 0; i <= key->max; i++)
        if (strcmp(key->words[i], value) == 0) {
            *number_of(config, key) = i;
            return 0;
        }
    return -EINVAL;
}

static int set(struct config *config, const struct key *key, const char *value)
{
    if (key->kind == KIND_WORD)
        return set_word(config, key, value);
    return key->kind == KIND_TEXT || key->kind == KIND_FILE ? set_text(config, key, value)
                                                            : set_number(config, key, value);
}

/* A value may be a secret, so it is not shown. */
static int report_value(const char *where, const struct key *key, int r)
{
    if (r == -EINVAL)
        log_error("%s: %s=: no valid value; allowed: %s", where, key->name, key->allowed);
    else if (r < 0)
        log_error("%s: %s", where, strerror(-r));
    return r;
}

static int unknown_key(const char *where, const char *name)
{
    char names[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < ELEMENTS(keys); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "",
                                 keys[i].name);
    log_error("%s: unknown key \"%s\"; allowed: %s", where, name, names);
    return -EINVAL;
}

/* Anything else may be part of a URL with a password, and is not shown. */
static bool is_word(const char *name)
{
    return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")] == '\0';
}

struct loading {
    struct config *config;
    const char *path;
    int result;
};

static int on_section(void *userdata, unsigned line, const char *section)
{
    struct loading *loading = userdata;

    if (strcmp(section, "Nats") == 0)
        return 0;
    log_error("%s:%u: unknown section; allowed: [Nats]", loading->path, line);
    loading->result = -EINVAL;
    return UNITFILE_E_SKIP;
}

static int assign(struct config *config, const char *where, const char *name, const char *value)
{
    if (!is_word(name)) {
        log_error("%s: no name of a key before the \"=\"", where);
        return -EINVAL;
    }
    for (size_t i = 0; i < ELEMENTS(keys); i++)
        if (strcmp(keys[i].name, name) == 0)
            return report_value(where, &keys[i], set(config, &keys[i], value));
    return unknown_key(where, name);
}

static int on_assignment(void *userdata, const struct unitfile_assignment *assignment)
{
    struct loading *loading = userdata;
    char where[512];
    int r;

    (void)snprintf(where, sizeof(where), "%s:%u", loading->path, assignment->line);
    r = assign(loading->config, where, assignment->key, assignment->value);
    if (r < 0)
        loading->result = r;
    return 0;
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    struct loading *loading = userdata;

    log_error("%s:%u: %s", loading->path, line, text);
    loading->result = -EINVAL;
    return 0;
}

static int parse(struct config *config, const char *path, const char *text, size_t size)
{
    struct loading loading = {.config = config, .path = path};
    const struct unitfile_handlers handlers = {.section = on_section,
                                               .assignment = on_assignment,
                                               .problem = on_problem,
                                               .userdata = &loading};
    int r = unitfile_parse(text, size, &handlers);

    return r < 0 ? r : loading.result;
}

/* `path` NULL = the default, which need not be there. */
static int load_file(struct config *config, const char *path)
{
    const char *file = path ? path : CONFIG_FILE;
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = unitfile_read(file, &text, &size);

    if (r == 0)
        return parse(config, file, text, size);
    if (r == -ENOENT && !path)
        return 0;
    if (r < 0)
        log_error("%s: %s", file, strerror(-r));
    else
        log_error("%s: not a regular file, or too large", file);
    return r < 0 ? r : -EINVAL;
}

static int load_environment(struct config *config)
{
    int result = 0;

    for (size_t i = 0; i < ELEMENTS(keys); i++) {
        const char *value = keys[i].variable ? getenv(keys[i].variable) : NULL;
        int r = value ? report_value(keys[i].variable, &keys[i], set(config, &keys[i], value)) : 0;

        if (r < 0)
            result = r;
    }
    return result;
}

static int set_defaults(struct config *config)
{
    for (size_t i = 0; i < ELEMENTS(keys); i++) {
        int r = keys[i].fallback ? set(config, &keys[i], keys[i].fallback) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- files ---- */

/* Warns of a secret that everybody on this machine can read. NULL = no file. */
static void warn_if_open(const char *path, const char *what)
{
    struct stat status;

    if (path && stat(path, &status) == 0 && (status.st_mode & S_IROTH) != 0)
        log_warning("%s: everybody can read %s; leave it to the user of serve: "
                    "chown root:troupe-nats %s && chmod 640 %s",
                    path, what, path, path);
}

/* libnats would say that there is no server, or that it refuses the connection. */
static int check_files(const struct config *config)
{
    const struct {
        const char *key, *path;
    } files[] = {{"Credentials", config->credentials},
                 {"CAFile", config->ca_file},
                 {"CertificateFile", config->certificate_file},
                 {"KeyFile", config->key_file},
                 {"NKeyFile", config->nkey_file}};
    int r = 0;

    for (size_t i = 0; i < ELEMENTS(files); i++) {
        if (!files[i].path || access(files[i].path, R_OK) == 0)
            continue;
        r = -errno;
        log_error("%s=%s: %s", files[i].key, files[i].path, strerror(errno));
    }
    return r;
}

/* ---- all ---- */

/* The default of Machine= is the host name. */
static int set_machine(struct config *config)
{
    char name[HOST_NAME_MAX + 1] = "";

    if (config->machine)
        return 0;
    (void)gethostname(name, sizeof(name) - 1);
    if (!config_valid_machine(name, NULL)) {
        log_error("Machine=: the host name %s is no valid value; allowed: " MACHINE_ALLOWED, name);
        return -EINVAL;
    }
    config->machine = strdup(name);
    return config->machine ? 0 : -ENOMEM;
}

static int check_identity(const struct config *config)
{
    int r = 0;

    if (!config->certificate_file != !config->key_file) {
        log_error("CertificateFile= and KeyFile= need each other");
        r = -EINVAL;
    }
    if (!config->nkey != !config->nkey_file) {
        log_error("NKey= and NKeyFile= need each other");
        r = -EINVAL;
    }
    if (config->nkey && config->credentials) {
        log_error("Credentials= and NKeyFile= exclude each other");
        r = -EINVAL;
    }
    return r;
}

/* Combines the results of two steps that were both taken. */
static int first_error(int r, int later)
{
    return r < 0 ? r : later;
}

static int check(const struct config *config)
{
    int r = config->group ? config_check_group(config->group) : 0;

    r = first_error(r, check_identity(config));
    return first_error(r, check_files(config));
}

int config_load(struct config *config, const char *path, const char *group)
{
    int r;

    *config = (struct config)CONFIG_NULL;
    config->group = group;
    r = set_defaults(config);
    if (r < 0)
        return r;
    if (!path || *path != '\0')
        r = load_file(config, path);
    if (strchr(config->url, '@'))
        warn_if_open(path ? path : CONFIG_FILE, "a password");
    r = first_error(r, load_environment(config));
    warn_if_open(config->credentials, "a secret");
    warn_if_open(config->nkey_file, "a secret");
    warn_if_open(config->key_file, "a secret");
    r = first_error(r, set_machine(config));
    return first_error(r, check(config));
}

void config_deinit(struct config *config)
{
    for (size_t i = 0; i < ELEMENTS(keys); i++)
        if (keys[i].kind == KIND_TEXT || keys[i].kind == KIND_FILE)
            free(*text_of(config, &keys[i]));
    *config = (struct config)CONFIG_NULL;
}
