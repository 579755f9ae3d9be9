/* SPDX-License-Identifier: MIT */

/* The main program of troupectl: parses the command line and runs a verb. */

#include "shared/base/cleanup.h"
#include "shared/base/standard.h"
#include "shared/base/utf8.h"
#include "shared/protocol/traceparent.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verb.h"
#include "worker/troupe.h"
#include <locale.h>
#include <stdio.h>
#include <string.h>

/* Counts the operands in the usage line of a verb: all, or those before the first optional one. */
static size_t count_operands(const char *usage, bool required)
{
    size_t n = 0;

    while (*usage != '\0' && *usage != '|' && !(required && *usage == '[')) {
        usage += strcspn(usage, " ");
        usage += strspn(usage, " ");
        n++;
    }
    return n;
}

static int check_operands(const struct invocation *invocation)
{
    const struct verb *verb = invocation->verb;
    const size_t max = count_operands(verb->operands, false);
    bool files = verb->options & (OPTIONS_CONFIG | OPTIONS_IMPORT);

    if (invocation->n_operands < count_operands(verb->operands, true)) {
        complain("usage: troupectl %s %s", verb->name, verb->operands);
        return EXIT_USAGE;
    }
    if (invocation->n_operands > max && !strstr(verb->operands, "...")) {
        complain("unexpected operand '%s'; usage: troupectl %s %s", invocation->operands[max],
                 verb->name, verb->operands);
        return EXIT_USAGE;
    }
    /* Operands become JSON strings, except file names. */
    for (size_t i = 0; !files && i < invocation->n_operands; i++)
        if (!utf8_is_text(invocation->operands[i], strlen(invocation->operands[i]))) {
            complain("operand '%s' is not UTF-8", invocation->operands[i]);
            return EXIT_USAGE;
        }
    return EXIT_OK;
}

/* Like other programs of OpenTelemetry: a variable of another version or form is ignored. */
static void take_traceparent(struct invocation *invocation)
{
    const char **option = &invocation->options.job.traceparent, *text = getenv("TRACEPARENT");

    if (!*option && text && traceparent_valid(text, strlen(text)))
        *option = text;
}

static int run(struct invocation *invocation)
{
    int r;

    if (invocation->options.version) {
        printf("troupectl %s\n", troupe_version());
        return EXIT_OK;
    }
    if (invocation->options.help) {
        verb_print_help(invocation->verb);
        return EXIT_OK;
    }
    take_traceparent(invocation);
    r = check_operands(invocation);
    return r == EXIT_OK ? invocation->verb->run(invocation) : r;
}

int main(int argc, char **argv)
{
    struct invocation invocation = {.options = OPTIONS_DEFAULTS, .client = VARLINK_CLIENT_NULL};
    struct arguments arguments = {
        .items = (const char *const *)argv, .n_items = (size_t)argc, .next = 1};
    const char **operands = calloc((size_t)argc + 1, sizeof(*operands));
    int r;

    (void)standard_open();
    standard_survive_file_limit();
    setlocale(LC_CTYPE, "");
    if (!operands)
        return EXIT_FAILED;
    r = verb_parse(&invocation, &arguments, operands);
    if (!invocation.verb && !invocation.options.help)
        invocation.verb = verb_find("status");
    if (r == EXIT_OK) {
        terminal_init(&invocation.out, stdout);
        r = run(&invocation);
    }
    varlink_client_deinit(&invocation.client);
    free(operands);
    /* A full disk must not look like success; a closed pipe needs no message. */
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            complain("cannot write the output%s%s", errno ? ": " : "",
                     errno ? strerror(errno) : "");
        r = r == EXIT_OK ? EXIT_FAILED : r;
    }
    return r;
}
