/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/command/interrupt.h"

#include "supervisor/ctl/command/exit-status.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

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
