/* SPDX-License-Identifier: MIT */
/* Prints the help: all verbs, or one with its options. */

#include "supervisor/ctl/verb.h"

#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>

/* Width of the left column; wider entries get a line of their own. */
#define LEFT_WIDTH 22

void help_all(void)
{
    puts("Usage: troupectl [VERB] [OPERAND...] [OPTION...]\n"
         "Inspects and controls a running trouped.\n");
    for (size_t i = 0; i < n_verbs; i++) {
        char left[64];

        if (verb_table[i].hidden)
            continue;
        snprintf(left, sizeof(left), "%s %s", verb_table[i].name, verb_table[i].operands);
        if (strlen(left) > LEFT_WIDTH)
            printf("  %s\n  %*s %s\n", left, LEFT_WIDTH, "", verb_table[i].summary);
        else
            printf("  %-*s %s\n", LEFT_WIDTH, left, verb_table[i].summary);
    }
    puts("\nOptions of every verb:");
    options_help(OPTIONS_COMMON);
    puts("\n'troupectl help VERB' explains a verb; see also troupectl(1). A TARGET is a\n"
         "group (digest), a cell (mail/acme) or a worker (digest/3, mail/acme/0). Exit\n"
         "status: 0 ok, 1 failed, 2 usage, 3 no supervisor, 4 not permitted, 5 not found,\n"
         "6 busy or exists, 7 configuration invalid, 8 timed out, 9 unknown after a restart.");
}

void help_verb(const struct verb *verb)
{
    printf("Usage: troupectl %s%s%s [OPTION...]\n%s.\n", verb->name, *verb->operands ? " " : "",
           verb->operands, verb->summary);
    if (verb->details)
        printf("\n%s", verb->details);
    if (verb->options != 0) {
        puts("\nOptions:");
        options_help(verb->options);
    }
    puts("\nOptions of every verb:");
    options_help(OPTIONS_COMMON);
    if (verb->examples)
        printf("\nExamples:\n%s", verb->examples);
}

int verb_help(struct invocation *invocation)
{
    const char *name = invocation_operand(invocation, 0);
    const struct verb *verb = name ? verb_find(name) : NULL;

    if (name && !verb)
        return EXIT_USAGE;
    if (verb)
        help_verb(verb);
    else
        help_all();
    return EXIT_OK;
}
