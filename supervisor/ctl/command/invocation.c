/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/command/invocation.h"

#include "supervisor/ctl/command/exit-status.h"
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/troupe/troupe.sock"

const char *invocation_socket(const struct invocation *invocation)
{
    const char *path = getenv("TROUPE_SOCKET");

    if (invocation->options.socket)
        return invocation->options.socket;
    return path && *path ? path : DEFAULT_SOCKET;
}

const char *invocation_operand(const struct invocation *invocation, size_t i)
{
    return i < invocation->n_operands ? invocation->operands[i] : NULL;
}

int invocation_each(struct invocation *invocation, size_t first,
                    int (*each)(struct invocation *invocation, const char *operand))
{
    int status = EXIT_OK, r = EXIT_OK;

    invocation->lines = true;
    for (size_t i = first; i < invocation->n_operands && r != EXIT_UNREACHABLE; i++) {
        r = each(invocation, invocation->operands[i]);
        if (r != EXIT_OK)
            status = r;
    }
    return status;
}

/* ---- signals ---- */

static volatile sig_atomic_t seen;
static void (*volatile before_exit)(void);

static void on_signal(int signal)
{
    (void)signal;
    if (seen && before_exit)
        before_exit();
    if (seen)
        _exit(EXIT_INTERRUPTED);
    seen = 1;
}

void interrupt_catch(void)
{
    /* No SA_RESTART: the signal must interrupt waits. */
    const struct sigaction action = {.sa_handler = on_signal};

    seen = 0;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

void interrupt_before_exit(void (*fn)(void))
{
    before_exit = fn;
}

bool interrupt_seen(void)
{
    return seen;
}
