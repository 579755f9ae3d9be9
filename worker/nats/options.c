/* SPDX-License-Identifier: MIT */
#include "worker/nats/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "troupe-nats [--config=FILE] serve GROUP\n"
    "troupe-nats [--config=FILE] setup GROUP\n"
    "\n"
    "Takes jobs for a group from NATS JetStream, and publishes their results.\n"
    "\n"
    "  serve                   run until SIGTERM; usually as a service of trouped\n"
    "  setup                   make the streams, and the consumer of the group, if need be\n"
    "\n"
    "  --config=FILE           the configuration (/etc/troupe/nats.conf, if it exists)\n"
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

static int parse_verb(struct options *ret, const char *verb)
{
    if (strcmp(verb, "serve") == 0)
        ret->verb = OPTIONS_SERVE;
    else if (strcmp(verb, "setup") == 0)
        ret->verb = OPTIONS_SETUP;
    else
        return usage("the first argument must be serve or setup");
    return 0;
}

int options_parse(struct options *ret, int argc, char *argv[])
{
    static const struct option known[] = {{"config", required_argument, NULL, 'c'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
    int c;

    *ret = (struct options){.config = NULL};
    while ((c = getopt_long(argc, argv, "hV", known, NULL)) >= 0) {
        if (c == 'c') {
            ret->config = optarg;
        } else if (c == 'h') {
            fputs(help, stdout);
            return OPTIONS_E_DONE;
        } else if (c == 'V') {
            puts("troupe-nats " TROUPE_VERSION);
            return OPTIONS_E_DONE;
        } else {
            return OPTIONS_E_USAGE;
        }
    }
    if (argc - optind != 2)
        return usage("serve or setup, and the name of a group, are needed");
    ret->group = argv[optind + 1];
    return parse_verb(ret, argv[optind]);
}
