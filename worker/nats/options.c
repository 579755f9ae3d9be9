/* SPDX-License-Identifier: MIT */
#include "worker/nats/options.h"

#include "shared/base/cleanup.h"
#include "shared/base/quantity.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "troupe-nats [--config=FILE] serve GROUP\n"
    "troupe-nats [--config=FILE] setup GROUP\n"
    "troupe-nats [--config=FILE] create|do [OPTION...] GROUP <PAYLOAD\n"
    "troupe-nats [--config=FILE] wait [--timeout=SPAN] STREAM:SEQUENCE\n"
    "troupe-nats [--config=FILE] cluster\n"
    "troupe-nats [--config=FILE] forget MACHINE\n"
    "\n"
    "Takes jobs for a group from NATS JetStream, and publishes their results.\n"
    "\n"
    "  serve                   run until SIGTERM; usually as a service of trouped\n"
    "  setup                   make the streams, and the consumer of the group, if need be\n"
    "\n"
    "  create                  send a job whose payload comes from standard input\n"
    "  wait                    wait for the end of a job, and write its result\n"
    "  do                      create, then wait\n"
    "  cluster                 show all machines\n"
    "  forget                  remove a machine that is dead or stopped from the list\n"
    "\n"
    "  --config=FILE           the configuration ($TROUPE_NATS_CONFIG, or\n"
    "                          /etc/troupe/nats.conf if it exists)\n"
    "  --id=ID                 of the message: the server drops a second one with it\n"
    "  --key=KEY, --priority=N, --delay=SPAN\n"
    "                          of the job\n"
    "  --timeout=SPAN          of one attempt; of wait: how long it waits\n"
    "  --json, --quiet         print JSON; print no remarks\n"
    "  -h, --help              show this\n"
    "  -V, --version           show the version\n"
    "\n"
    "Servers and credentials are in the configuration or the environment (NATS_URL,\n"
    "NATS_CREDS, …), never on the command line. See troupe-nats(8).\n";

static int usage(const char *problem)
{
    fprintf(stderr, "troupe-nats: %s; see troupe-nats --help\n", problem);
    return OPTIONS_E_USAGE;
}

static const struct verb {
    const char *name;
    enum options_verb verb;
    const char *operand; /* for the error message; NULL = the verb has none */
} verbs[] = {
    {"serve", OPTIONS_SERVE, "the name of a group"},
    {"setup", OPTIONS_SETUP, "the name of a group"},
    {"create", OPTIONS_CREATE, "the name of a group"},
    {"do", OPTIONS_DO, "the name of a group"},
    {"wait", OPTIONS_WAIT, "the id of a job, STREAM:SEQUENCE,"},
    {"cluster", OPTIONS_CLUSTER, NULL},
    {"forget", OPTIONS_FORGET, "the name of a machine"},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ELEMENTS(verbs); i++)
        if (name && strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static int parse_operands(struct options *ret, char *operands[], int n)
{
    const struct verb *verb = find_verb(n > 0 ? operands[0] : NULL);
    char problem[128];

    if (!verb)
        return usage(
            "the first argument must be serve, setup, create, do, wait, cluster or forget");
    if (n != (verb->operand ? 2 : 1)) {
        (void)snprintf(problem, sizeof(problem), "%s%snothing else must follow %s",
                       verb->operand ? verb->operand : "", verb->operand ? " and " : "",
                       verb->name);
        return usage(problem);
    }
    ret->verb = verb->verb;
    if (verb->verb == OPTIONS_WAIT)
        ret->id = operands[1];
    else if (verb->verb == OPTIONS_FORGET)
        ret->machine = operands[1];
    else if (verb->verb == OPTIONS_CREATE || verb->verb == OPTIONS_DO)
        ret->create.group = operands[1];
    else if (verb->operand)
        ret->group = operands[1];
    return 0;
}

/* The time-out of a wait. That of a job is checked with the other headers. */
static int parse_timeout(struct options *ret)
{
    if (ret->verb != OPTIONS_WAIT || !ret->create.timeout)
        return 0;
    if (quantity_parse_time(ret->create.timeout, &ret->timeout) == 0)
        return 0;
    return usage("--timeout: no valid value; allowed: a time such as 500ms, 30s or 5min");
}

int options_parse(struct options *ret, int argc, char *argv[])
{
    static const struct option known[] = {
        {"config", required_argument, NULL, 'c'},
        {"id", required_argument, NULL, 'i'},
        {"key", required_argument, NULL, 'k'},
        {"priority", required_argument, NULL, 'p'},
        {"delay", required_argument, NULL, 'd'},
        {"timeout", required_argument, NULL, 't'},
        {"json", no_argument, NULL, 'j'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int c, r;

    *ret = (struct options){.timeout = USEC_INFINITY};
    while ((c = getopt_long(argc, argv, "hV", known, NULL)) >= 0) {
        const char **text = c == 'c'   ? &ret->config
                            : c == 'i' ? &ret->create.id
                            : c == 'k' ? &ret->create.key
                            : c == 'p' ? &ret->create.priority
                            : c == 'd' ? &ret->create.delay
                            : c == 't' ? &ret->create.timeout
                                       : NULL;

        ret->output.json |= c == 'j';
        ret->output.quiet |= c == 'q';
        if (text) {
            *text = optarg;
        } else if (c == 'h') {
            fputs(help, stdout);
            return OPTIONS_E_DONE;
        } else if (c == 'V') {
            puts("troupe-nats " TROUPE_VERSION);
            return OPTIONS_E_DONE;
        } else if (c == '?') {
            return OPTIONS_E_USAGE;
        }
    }
    r = parse_operands(ret, argv + optind, argc - optind);
    return r == 0 ? parse_timeout(ret) : r;
}
