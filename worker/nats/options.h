/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line of troupe-nats. */

#include "shared/base/clock.h"
#include "worker/nats/verbs.h"

enum options_verb {
    OPTIONS_SERVE,
    OPTIONS_SETUP,
    OPTIONS_CREATE,
    OPTIONS_DO,
    OPTIONS_WAIT,
    OPTIONS_CLUSTER,
    OPTIONS_FORGET,
};

struct options {
    enum options_verb verb;
    const char *config;   /* NULL = the default */
    const char *group;    /* that the configuration is for; NULL = any */
    const char *id;       /* of the job to wait for */
    const char *machine;  /* to forget */
    usec_t timeout;       /* of that wait */
    struct create create; /* of OPTIONS_CREATE and OPTIONS_DO */
    struct output output;
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
