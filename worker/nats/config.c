/* SPDX-License-Identifier: MIT */
#include "worker/nats/config.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/quantity.h"
#include "shared/base/unitfile.h"
#include "shared/protocol/job-id.h"
#include "worker/nats/message.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* "STREAM:SEQUENCE:TRY" must fit into the id of a job, TROUPE_ID_MAX. */
#define STREAM_MAX  32u
#define MACHINE_MAX 64u
#define NKEY_LENGTH 56u
#define PORT_DIGITS 5u

/* ---- values ---- */

size_t config_split_urls(char *text, const char *urls[static CONFIG_URLS_MAX])
{
    size_t n = 0;

    for (char *url; (url = strsep(&text, ", "));) {
        if (*url == '\0')
            continue;
        if (n < CONFIG_URLS_MAX)
            urls[n] = url;
        n++;
    }
    return n;
}

static bool has_scheme(const char *url, const char *scheme)
{
    return strncasecmp(url, scheme, strlen(scheme)) == 0 && url[strlen(scheme)] != '\0';
}

/* Returns the part after the last `c`; all if there is none. libnats does the same. */
static const char *after_last(const char *text, char c)
{
    const char *last = strrchr(text, c);

    return last ? last + 1 : text;
}

/* libnats ignores a scheme that it does not know, and would show an invalid port, which may be part
 * of a password with a comma. */
static bool is_url(const char *url)
{
    const char *scheme = strstr(url, "://"), *port;

    if (scheme && !has_scheme(url, "nats://") && !has_scheme(url, "tls://"))
        return false;
    port = strrchr(after_last(after_last(scheme ? scheme + strlen("://") : url, '@'), ']'), ':');
    if (!port++)
        return true;
    return *port != '\0' && port[strspn(port, "0123456789")] == '\0' && strlen(port) <= PORT_DIGITS;
}

static bool are_urls(const char *value)
{
    _cleanup_free_ char *text = strdup(value);
    const char *urls[CONFIG_URLS_MAX];
    const size_t n = text ? config_split_urls(text, urls) : 0;

    for (size_t i = 0; i < n && n <= CONFIG_URLS_MAX; i++)
        if (!is_url(urls[i]))
            return false;
    return n > 0 && n <= CONFIG_URLS_MAX;
}

static bool is_path(const char *value)
{
    return *value == '/';
}

static bool is_nkey(const char *value)
{
    return *value == 'U' && strlen(value) == NKEY_LENGTH &&
           strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == NKEY_LENGTH;
}

/* Names of groups and consumers are parts of subjects. */
static bool is_name(const char *value)
{
    return protocol_name_valid(value, strlen(value)) && !strpbrk(value, ".:@");
}

static bool is_stream(const char *value)
{
    return strlen(value) <= STREAM_MAX && is_name(value);
}

/* A key of a bucket may have dots in it. */
static bool is_machine(const char *value)
{
    const size_t length = strlen(value);

    return length >= 1 && length <= MACHINE_MAX && value[0] != '.' && value[length - 1] != '.' &&
           !strstr(value, "..") && protocol_name_valid(value, length) && !strpbrk(value, ":@");
}

/* Whether it is "jobs.", a group, and parts that may be "*", and the last ">". */
static bool is_filter(const char *value)
{
    const char *end = value + strlen(value), *part = strchr(value, '.');

    if (!part || strpbrk(value, " \t") ||
        strncmp(value, MESSAGE_SUBJECT, strlen(MESSAGE_SUBJECT)) != 0 || !strchr(part + 1, '.'))
        return false;
    for (part++; part <= end; part += strcspn(part, ".") + 1) {
        const size_t size = strcspn(part, ".");

        if (size == 0 || (size > 1 && strcspn(part, "*>") < size) ||
            (*part == '>' && part[size] != '\0'))
            return false;
    }
    return true;
}

/* Whether the subjects are of this group; NULL = of any. */
static bool is_of_group(const char *filter, const char *group)
{
    const char *part = filter + strlen(MESSAGE_SUBJECT);

    return !group || (strncmp(part, group, strlen(group)) == 0 && part[strlen(group)] == '.');
}

static int parse_number(const char *value, uint64_t *ret)
{
    const char *end;
    int r = quantity_parse_number(value, ret, &end);

    return r < 0 || *end != '\0' ? -EINVAL : 0;
}

static int parse_results(const char *value, uint64_t *ret)
{
    static const char *const words[] = {
        [CONFIG_RESULTS_ALL] = "all",
        [CONFIG_RESULTS_ERRORS] = "errors",
        [CONFIG_RESULTS_NONE] = "none",
    };

    for (size_t i = 0; i < ELEMENTS(words); i++) {
        *ret = i;
        if (strcmp(words[i], value) == 0)
            return 0;
    }
    return -EINVAL;
}

/* ---- keys ---- */

struct key {
    const char *name;
    size_t offset;
    bool (*valid)(const char *value); /* of a text */
    int (*parse)(const char *value, uint64_t *ret);
    uint64_t min, max;
    bool secret;          /* a file that not everybody may read */
    const char *variable; /* of the environment; NULL = none */
    const char *fallback;
    const char *allowed;
};

#define MACHINE_ALLOWED                                                                            \
    "1 to 64 characters of A-Z a-z 0-9 _ - and dots between them (default: the host name)"

#define KEY(key_name, member) .name = (key_name), .offset = offsetof(struct config, member)
#define TEXT(is_valid, texts) .valid = (is_valid), .allowed = (texts)
#define FILE_OF(name_of_variable)                                                                  \
    TEXT(is_path, "the absolute path of a file"), .variable = (name_of_variable)
#define NUMBER(parse_it, least, most, default_value, numbers)                                      \
    .parse = (parse_it), .min = (least), .max = (most), .fallback = (default_value),               \
    .allowed = (numbers)

/* The variables are those of NATS's own command line program. */
static const struct key keys[] = {
    {KEY("URL", url),
     TEXT(are_urls, "1 to 16 servers with commas: nats://HOST:PORT or tls://HOST:PORT"),
     .variable = "NATS_URL", .fallback = "nats://127.0.0.1:4222"},
    {KEY("Credentials", credentials), FILE_OF("NATS_CREDS"), .secret = true},
    {KEY("CAFile", ca_file), FILE_OF("NATS_CA")},
    {KEY("CertificateFile", certificate_file), FILE_OF("NATS_CERT")},
    {KEY("KeyFile", key_file), FILE_OF("NATS_KEY"), .secret = true},
    {KEY("NKey", nkey),
     TEXT(is_nkey, "the public key of a user, 56 letters and digits that begin with U")},
    {KEY("NKeyFile", nkey_file), FILE_OF("NATS_NKEY"), .secret = true},
    {KEY("Stream", stream),
     TEXT(is_stream, "1 to 32 characters of A-Z a-z 0-9 _ -, not beginning with -"),
     .fallback = "JOBS"},
    {KEY("Consumer", consumer), TEXT(is_name, "a name of A-Z a-z 0-9 _ -, not beginning with -")},
    {KEY("Filter", filter),
     TEXT(is_filter, "jobs.GROUP.KEY with the group of the command, where parts of KEY may be * "
                     "and the last part >")},
    {KEY("Machine", machine), TEXT(is_machine, MACHINE_ALLOWED)},
    {KEY("StateSec", state), NUMBER(quantity_parse_time, USEC_PER_SEC, 3600 * USEC_PER_SEC, "10s",
                                    "a time from 1s to 60min")},
    {KEY("InFlight", in_flight),
     NUMBER(parse_number, 1, CONFIG_IN_FLIGHT_MAX, "64", "a number from 1 to 65536")},
    {KEY("Results", results),
     NUMBER(parse_results, 0, CONFIG_RESULTS_NONE, "all", "all, errors, none")},
    {KEY("Replicas", replicas), NUMBER(parse_number, 1, 5, "1", "a number from 1 to 5")},
    {KEY("AckWaitSec", ack_wait), NUMBER(quantity_parse_time, USEC_PER_SEC, 3600 * USEC_PER_SEC,
                                         "30s", "a time from 1s to 60min")},
};

static char **text_of(const struct config *config, const struct key *key)
{
    return (char **)((char *)config + key->offset);
}

static int set_text(struct config *config, const struct key *key, const char *value)
{
    char *copy;

    if (!key->valid(value) || (key->valid == is_filter && !is_of_group(value, config->group)))
        return -EINVAL;
    copy = strdup(value);
    if (!copy)
        return -ENOMEM;
    free(*text_of(config, key));
    *text_of(config, key) = copy;
    return 0;
}

/* Returns 0 or -errno, and logs why. A value may be a secret, so it is not shown. */
static int set(struct config *config, const struct key *key, const char *value, const char *where)
{
    uint64_t number;
    int r = key->valid ? set_text(config, key, value) : key->parse(value, &number);

    if (r == 0 && key->parse && (number < key->min || number > key->max))
        r = -EINVAL;
    if (r == 0 && key->parse)
        *(uint64_t *)((char *)config + key->offset) = number;
    if (r == -EINVAL)
        log_error("%s: %s=: no valid value; allowed: %s", where, key->name, key->allowed);
    else if (r < 0)
        log_error("%s: %s", where, strerror(-r));
    return r;
}

/* Combines the results of two steps that were both taken. */
static int first_error(int r, int later)
{
    return r < 0 ? r : later;
}

/* ---- the file ---- */

struct loading {
    struct config *config;
    const char *path;
    int result;
};

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
    /* Anything but a word may be part of a URL with a password, and is not shown. */
    if (name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")] != '\0') {
        log_error("%s: no name of a key before the \"=\"", where);
        return -EINVAL;
    }
    for (size_t i = 0; i < ELEMENTS(keys); i++)
        if (strcmp(keys[i].name, name) == 0)
            return set(config, &keys[i], value, where);
    return unknown_key(where, name);
}

static int on_assignment(void *userdata, const struct unitfile_assignment *assignment)
{
    struct loading *loading = userdata;
    char where[512];

    (void)snprintf(where, sizeof(where), "%s:%u", loading->path, assignment->line);
    loading->result = first_error(
        loading->result, assign(loading->config, where, assignment->key, assignment->value));
    return 0;
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    struct loading *loading = userdata;

    log_error("%s:%u: %s", loading->path, line, text);
    loading->result = -EINVAL;
    return 0;
}

/* `path` NULL = the default, which need not be there. */
static int load_file(struct config *config, const char *path)
{
    struct loading loading = {.config = config, .path = path ? path : CONFIG_FILE};
    const struct unitfile_handlers handlers = {.section = on_section,
                                               .assignment = on_assignment,
                                               .problem = on_problem,
                                               .userdata = &loading};
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = unitfile_read(loading.path, &text, &size);

    if (r == 0) {
        r = unitfile_parse(text, size, &handlers);
        return first_error(r, loading.result);
    }
    if (r == -ENOENT && !path)
        return 0;
    log_error("%s: %s", loading.path, r < 0 ? strerror(-r) : "not a regular file, or too large");
    return r < 0 ? r : -EINVAL;
}

/* ---- all ---- */

/* Defaults come before the file, and the environment after it. */
static int set_all(struct config *config, bool environment)
{
    int result = 0;

    for (size_t i = 0; i < ELEMENTS(keys); i++) {
        const char *variable = keys[i].variable;
        const char *value = !environment ? keys[i].fallback : variable ? getenv(variable) : NULL;

        if (value)
            result = first_error(result, set(config, &keys[i], value, variable));
    }
    return result;
}

/* The default of Machine= is the host name. */
static int set_machine(struct config *config)
{
    char name[HOST_NAME_MAX + 1] = "";

    if (config->machine)
        return 0;
    (void)gethostname(name, sizeof(name) - 1);
    if (!is_machine(name)) {
        log_error("Machine=: the host name %s is no valid value; allowed: " MACHINE_ALLOWED, name);
        return -EINVAL;
    }
    config->machine = strdup(name);
    return config->machine ? 0 : -ENOMEM;
}

/* Warns of a secret that everybody on this machine can read. */
static void warn_if_open(const char *path, const char *what)
{
    struct stat status;

    if (stat(path, &status) == 0 && (status.st_mode & S_IROTH) != 0)
        log_warning("%s: everybody can read %s; leave it to the user of serve: "
                    "chown root:troupe-nats %s && chmod 640 %s",
                    path, what, path, path);
}

/* libnats would say that there is no server, or that it refuses the connection. */
static int check_files(const struct config *config)
{
    int r = 0;

    for (size_t i = 0; i < ELEMENTS(keys); i++) {
        const char *path = keys[i].valid == is_path ? *text_of(config, &keys[i]) : NULL;

        if (path && keys[i].secret)
            warn_if_open(path, "a secret");
        if (!path || access(path, R_OK) == 0)
            continue;
        r = -errno;
        log_error("%s=%s: %s", keys[i].name, path, strerror(errno));
    }
    return r;
}

/* Returns -EINVAL, after logging the problem, if there is one. */
static int check(bool wrong, const char *problem)
{
    if (wrong)
        log_error("%s", problem);
    return wrong ? -EINVAL : 0;
}

static int check_identity(const struct config *config)
{
    int r = check(!config->certificate_file != !config->key_file,
                  "CertificateFile= and KeyFile= need each other");

    r = first_error(
        r, check(!config->nkey != !config->nkey_file, "NKey= and NKeyFile= need each other"));
    return first_error(r, check(config->nkey && config->credentials,
                                "Credentials= and NKeyFile= exclude each other"));
}

static int check_group(const char *group)
{
    if (!group || is_name(group))
        return 0;
    log_error("group %s: the name cannot be part of a subject; allowed: A-Z a-z 0-9 _ -, not "
              "beginning with -",
              group);
    return -EINVAL;
}

int config_load(struct config *config, const char *path, const char *group)
{
    int r;

    *config = (struct config){.group = group};
    r = set_all(config, false);
    if (r < 0)
        return r;
    if (!path || *path != '\0')
        r = load_file(config, path);
    if (strchr(config->url, '@'))
        warn_if_open(path ? path : CONFIG_FILE, "a password");
    r = first_error(r, set_all(config, true));
    r = first_error(r, set_machine(config));
    r = first_error(r, check_group(group));
    r = first_error(r, check_identity(config));
    return first_error(r, check_files(config));
}

void config_deinit(struct config *config)
{
    for (size_t i = 0; i < ELEMENTS(keys); i++)
        if (keys[i].valid)
            free(*text_of(config, &keys[i]));
    *config = (struct config)CONFIG_NULL;
}
