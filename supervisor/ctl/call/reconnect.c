/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/reconnect.h"

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include <errno.h>
#include <sys/random.h>
#include <time.h>

#define PAUSE_MIN (10 * USEC_PER_MSEC)
#define PAUSE_MAX USEC_PER_SEC

struct reconnect reconnect_make(const struct invocation *invocation, usec_t patience)
{
    const struct options *options = &invocation->options;

    return (struct reconnect){
        .invocation = invocation,
        .patience = options->reconnect_given ? options->reconnect : patience,
    };
}

/* Half of the pause to all of it, so that clients do not come back at the same time. */
static usec_t randomize(usec_t pause)
{
    uint32_t random = 0;

    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    return pause / 2 + random % (pause / 2);
}

static void begin(struct reconnect *reconnect)
{
    reconnect->deadline = clock_deadline(reconnect->patience);
    reconnect->pause = PAUSE_MIN;
    if (!reconnect->invocation->options.quiet)
        complain("the connection to the supervisor is lost; waiting for it");
}

bool reconnect_wait(struct reconnect *reconnect)
{
    struct timespec time;
    usec_t left, pause;

    if (reconnect->patience == 0) {
        complain("the supervisor closed the connection, or is gone");
        return false;
    }
    if (reconnect->deadline == 0)
        begin(reconnect);
    left = clock_left(reconnect->deadline);
    if (left == 0) {
        complain("the supervisor did not come back within %s (--reconnect waits longer)",
                 SPAN(reconnect->patience));
        return false;
    }
    pause = randomize(reconnect->pause);
    time = usec_to_timespec(pause < left ? pause : left);
    (void)nanosleep(&time, NULL);
    reconnect->pause = reconnect->pause * 2 < PAUSE_MAX ? reconnect->pause * 2 : PAUSE_MAX;
    return !interrupt_seen();
}

void reconnect_done(struct reconnect *reconnect)
{
    if (reconnect->deadline != 0 && !reconnect->invocation->options.quiet)
        complain("connected again");
    reconnect->deadline = 0;
}

bool reconnect_helps(int error)
{
    switch (error) {
    case -ENOENT:
    case -ECONNREFUSED:
    case -ECONNRESET:
    case -EPIPE:
    case -EAGAIN:
    case -ERESTART:
    case -ESHUTDOWN:
    case -ETIMEDOUT:
    case -EUSERS:
        return true;
    default:
        return false;
    }
}

int reconnect_run(struct invocation *invocation, usec_t patience,
                  int (*once)(struct invocation *invocation, struct reconnect *reconnect,
                              void *userdata),
                  void *userdata)
{
    struct reconnect reconnect = reconnect_make(invocation, patience);
    int r = call_open(invocation);

    if (r != EXIT_OK)
        return r;
    invocation->lenient = true;
    do
        r = once(invocation, &reconnect, userdata);
    while (r == EXIT_UNREACHABLE && reconnect_wait(&reconnect));
    invocation->lenient = false;
    return r;
}
