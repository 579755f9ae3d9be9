/* SPDX-License-Identifier: MIT */
#include "supervisor/web/options.h"

#include "shared/base/cleanup.h"
#include "supervisor/web/guard.h"
#include <getopt.h>
#include <stdio.h>

static const char help[] =
    "troupe-web [OPTIONS]\n"
    "\n"
    "Shows the state of trouped on a web page: http://127.0.0.1:7670/\n"
    "\n"
    "  --socket=PATH         socket of the supervisor (" OPTIONS_SOCKET ")\n"
    "  --listen=ADDRESS:PORT serve there (" OPTIONS_LISTEN "); up to four times. Sockets that\n"
    "                        the service manager passes are used instead\n"
    "  --host=NAME           a further name by which browsers may reach this page, in addition\n"
    "                        to localhost, 127.0.0.1 and [::1]; up to 16 times\n"
    "  --allow-remote        also serve addresses that other machines can reach\n"
    "  --token-file=FILE     holds the token that changes need\n"
    "  --allow-changes       allow changes with the token: requeue, purge, cancel, pause, …\n"
    "  --require-token       refuse requests without the token\n"
    "  -h, --help            show this\n"
    "  -V, --version         show the version\n"
    "\n"
    "See troupe-web(8).\n";

static int usage(const char *problem)
{
    fprintf(stderr, "troupe-web: %s\n", problem);
    return OPTIONS_E_USAGE;
}

/* Appends to a list of at most `max` texts. */
static int append(const char **list, size_t *n, size_t max, const char *text, const char *problem)
{
    if (*n == max)
        return usage(problem);
    list[(*n)++] = text;
    return 0;
}

static int add_host(struct options *options, const char *name)
{
    if (!guard_is_name(name)) {
        fprintf(stderr, "troupe-web: --host=%s: must be a name or an address, without a port\n",
                name);
        return OPTIONS_E_USAGE;
    }
    return append(options->hosts, &options->n_hosts, OPTIONS_HOSTS_MAX, name,
                  "--host: at most 16 names");
}

static int apply(struct options *options, int option)
{
    switch (option) {
    case 0:
        return 0; /* a flag */
    case 's':
        options->socket = optarg;
        return 0;
    case 'l':
        return append(options->listen, &options->n_listen, OPTIONS_LISTEN_MAX, optarg,
                      "--listen: at most four addresses");
    case 'n':
        return add_host(options, optarg);
    case 't':
        options->token_file = optarg;
        return 0;
    case 'h':
        fputs(help, stdout);
        return OPTIONS_E_DONE;
    case 'V':
        puts("troupe-web " TROUPE_VERSION);
        return OPTIONS_E_DONE;
    default:
        return OPTIONS_E_USAGE; /* getopt_long() has printed why */
    }
}

int options_parse(struct options *ret, int argc, char *argv[])
{
    const struct option long_options[] = {
        {"socket", required_argument, NULL, 's'},
        {"listen", required_argument, NULL, 'l'},
        {"host", required_argument, NULL, 'n'},
        {"allow-remote", no_argument, &ret->allow_remote, true},
        {"token-file", required_argument, NULL, 't'},
        {"allow-changes", no_argument, &ret->allow_changes, true},
        {"require-token", no_argument, &ret->require_token, true},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option, r = 0;

    *ret = (struct options){.socket = OPTIONS_SOCKET};
    optind = 0;
    while (r == 0 && (option = getopt_long(argc, argv, "hV", long_options, NULL)) >= 0)
        r = apply(ret, option);
    if (r != 0)
        return r;
    if (optind < argc)
        return usage("takes no operands; see troupe-web --help");
    if (ret->allow_changes && !ret->token_file)
        return usage("--allow-changes needs --token-file=FILE, since changes need a token");
    if (ret->require_token && !ret->token_file)
        return usage("--require-token needs --token-file=FILE");
    if (ret->n_listen == 0)
        ret->listen[ret->n_listen++] = OPTIONS_LISTEN;
    return 0;
}
