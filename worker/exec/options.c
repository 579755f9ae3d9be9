/* SPDX-License-Identifier: MIT */
#include "worker/exec/options.h"

#include "shared/base/cleanup.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>

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
    "  -h, --help              show this\n"
    "  -V, --version           show the version\n"
    "\n"
    "Exit status 0 of COMMAND is success; any other, and death by a signal, is a failure\n"
    "that is retried. See troupe-exec(1).\n";

/* Parses digits only, without sign or blanks. */
static int parse_number(const char *text, uint64_t *ret, const char **ret_end)
{
    char *end;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    *ret_end = end;
    return errno != 0 ? -EINVAL : 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static int parse_with_unit(const char *text, const struct unit *units, size_t n_units,
                           uint64_t *ret)
{
    const char *unit;
    uint64_t number;

    if (parse_number(text, &number, &unit) < 0)
        return -EINVAL;
    for (size_t i = 0; i < n_units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return __builtin_mul_overflow(number, units[i].factor, ret) ? -EINVAL : 0;
    return -EINVAL;
}

int options_parse_size(const char *text, size_t *ret)
{
    static const struct unit units[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}};
    uint64_t size;
    int r = parse_with_unit(text, units, ELEMENTS(units), &size);

    if (r < 0 || size > SIZE_MAX / 4)
        return -EINVAL;
    *ret = (size_t)size;
    return 0;
}

int options_parse_time(const char *text, usec_t *ret)
{
    static const struct unit units[] = {
        {"", USEC_PER_SEC}, {"s", USEC_PER_SEC}, {"ms", USEC_PER_MSEC}, {"min", 60 * USEC_PER_SEC}};

    return parse_with_unit(text, units, ELEMENTS(units), ret);
}

int options_parse_statuses(const char *text, struct outcome_policy *ret)
{
    for (;;) {
        uint64_t status;

        if (parse_number(text, &status, &text) < 0 || status == 0 || status > 255)
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
        return options_parse_size(optarg, &options->max_output) == 0
                   ? 0
                   : bad_value("max-output", optarg, "a size such as 512K, 64M or 1G");
    case 'u':
        return options_parse_statuses(optarg, &options->policy) == 0
                   ? 0
                   : bad_value("reject", optarg, "exit statuses from 1 to 255, as in 1,2");
    case 'k':
        return options_parse_time(optarg, &options->kill_after) == 0
                   ? 0
                   : bad_value("kill-after", optarg, "a time such as 500ms, 5s or 1min");
    case 'l':
        options->literal = true;
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
    static const struct option longs[] = {{"max-output", required_argument, NULL, 'o'},
                                          {"reject", required_argument, NULL, 'u'},
                                          {"kill-after", required_argument, NULL, 'k'},
                                          {"literal", no_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
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
        fputs("troupe-exec: which command? Try 'troupe-exec --help'.\n", stderr);
        return OPTIONS_E_USAGE;
    }
    *ret = options;
    return 0;
}
