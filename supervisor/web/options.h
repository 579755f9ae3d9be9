/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line of troupe-web. */

#include <stddef.h>

#define OPTIONS_LISTEN_MAX 4
#define OPTIONS_HOSTS_MAX  16

#define OPTIONS_SOCKET "/run/troupe/troupe.sock"
#define OPTIONS_LISTEN "127.0.0.1:7670"

/* All texts are borrowed from the arguments. */
struct options {
    const char *socket; /* of the supervisor */
    const char *listen[OPTIONS_LISTEN_MAX];
    size_t n_listen;
    const char *hosts[OPTIONS_HOSTS_MAX]; /* names of this machine that browsers may use */
    size_t n_hosts;
    const char *token_file;
    /* Booleans, set by getopt_long(): */
    int allow_remote;
    int allow_changes;
    int require_token; /* also for reading */
};

enum {
    _OPTIONS_E_SUCCESS,
    OPTIONS_E_DONE,  /* the help or the version was printed */
    OPTIONS_E_USAGE, /* a message was printed to standard error */
};

/* Returns 0 or OPTIONS_E_*. */
int options_parse(struct options *ret, int argc, char *argv[]);

/* ---- sockets on which browsers connect ---- */

/*
 * Returns the number of sockets in `fds`, which the caller owns: those that the service manager has
 * passed, or new ones bound to the addresses of the options. Prints errors; returns -errno then.
 * Refuses addresses that other machines can reach unless the options allow it.
 */
int listen_open(const struct options *options, int fds[OPTIONS_LISTEN_MAX]);
