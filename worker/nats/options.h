/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line of troupe-nats. */

enum options_verb {
    OPTIONS_SERVE,
    OPTIONS_SETUP,
};

struct options {
    enum options_verb verb;
    const char *config; /* NULL = the default */
    const char *group;
};

enum {
    _OPTIONS_E_SUCCESS,
    OPTIONS_E_DONE,  /* --help or --version */
    OPTIONS_E_USAGE, /* explained on standard error */
};

/* The exit status for OPTIONS_E_USAGE. */
#define OPTIONS_STATUS 2

/* Texts are borrowed from `argv`. */
int options_parse(struct options *ret, int argc, char *argv[]);
