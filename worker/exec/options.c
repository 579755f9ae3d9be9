/* SPDX-License-Identifier: MIT */
#include "worker/exec/options.h"

#include "shared/base/cleanup.h"
#include "shared/base/quantity.h"
#include <getopt.h>
#include <stdio.h>

#define MAX_OUTPUT_DEFAULT ((size_t)64 << 20)
#define KILL_AFTER_DEFAULT (5 * USEC_PER_SEC)

static const char help[] =
    "troupe-exec [OPTIONS] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Works for trouped by running COMMAND once for each job: the payload is its standard\n"
    "input, its standard output is the result. As the ExecStart= of a group:\n"
    "\n"
    "    ExecStart=/usr/libexec/troupe/troupe-exec -- sha256sum\n"
    "\n"
    "In arguments, {} is replaced by the payload (standard input is then empty), {id}, {key}\n"
    "and {attempt} by the job's id, key and attempt.\n"
    "\n"
    "  --max-output=SIZE       end a command that writes more than this (64M)\n"
    "  --reject=STATUS[,STATUS...]\n"
    "                          exit statuses that are an answer, not a failure: final,\n"
    "                          not retried\n"
    "  --kill-after=TIME       from SIGTERM to SIGKILL when a job is cancelled (5s)\n"
    "  --literal               replace nothing in arguments\n"
    "  --channels              give the command descriptors for items and checkpoints\n"
    "  -h, --help              show this\n"
    "  -V, --version           show the version\n"
    "\n"
    "Exit status 0 of COMMAND is success; any other, and death by a signal, is a failure\n"
    "that is retried. See troupe-exec(1).\n";

int options_parse_statuses(const char *text, struct outcome_policy *ret)
{
    for (;;) {
        uint64_t status;

        if (quantity_parse_number(text, &status, &text) < 0 || status == 0 || status > 255)
            return -EINVAL;
        ret->rejected[status] = true;
        if (*text == '\0')
            return 0;
        if (*text++ != ',')
            return -EINVAL;
    }
}

static int bad_value(const char *option, const char *value, const char *allowed)
{
    fprintf(stderr, "troupe-exec: --%s=%s: must be %s\n", option, value, allowed);
    return OPTIONS_E_USAGE;
}

static int apply(struct exec_options *options, int option)
{
    switch (option) {
    case 'o':
        return quantity_parse_size(optarg, &options->max_output) == 0
                   ? 0
                   : bad_value("max-output", optarg, "a size such as 512K, 64M or 1G");
    case 'u':
        return options_parse_statuses(optarg, &options->policy) == 0
                   ? 0
                   : bad_value("reject", optarg, "exit statuses from 1 to 255, as in 1,2");
    case 'k':
        return quantity_parse_time(optarg, &options->kill_after) == 0
                   ? 0
                   : bad_value("kill-after", optarg, "a time such as 500ms, 5s or 1min");
    case 'l':
        options->literal = true;
        return 0;
    case 'c':
        options->channels = true;
        return 0;
    case 'h':
        fputs(help, stdout);
        return OPTIONS_E_DONE;
    case 'V':
        printf("troupe-exec %s\n", troupe_version());
        return OPTIONS_E_DONE;
    default:
        fputs("Try 'troupe-exec --help'.\n", stderr);
        return OPTIONS_E_USAGE;
    }
}

int options_parse(struct exec_options *ret, int argc, char *argv[])
{
    static const struct option longs[] = {
        {"max-output", required_argument, NULL, 'o'}, {"reject", required_argument, NULL, 'u'},
        {"kill-after", required_argument, NULL, 'k'}, {"literal", no_argument, NULL, 'l'},
        {"channels", no_argument, NULL, 'c'},         {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},          {NULL, 0, NULL, 0}};
    struct exec_options options = {.max_output = MAX_OUTPUT_DEFAULT,
                                   .kill_after = KILL_AFTER_DEFAULT};
    int option, r;

    /* "+" stops at COMMAND: its options are not troupe-exec's, even without "--". */
    while ((option = getopt_long(argc, argv, "+hV", longs, NULL)) != -1) {
        r = apply(&options, option);
        if (r != 0)
            return r;
    }
    options.argv = argv + optind;
    if (!options.argv[0]) {
        fputs("troupe-exec: COMMAND is missing. Try 'troupe-exec --help'.\n", stderr);
        return OPTIONS_E_USAGE;
    }
    *ret = options;
    return 0;
}
