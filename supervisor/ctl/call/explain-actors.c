/* SPDX-License-Identifier: MIT */

/* Explains errors of io.troupe.Actors. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/explain-private.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"

static int no_actor(const json_t *p)
{
    const char *name = field_text(p, "name");

    if (field_has(p, "reason"))
        complain("'%s' is no actor: %s", name, field_text(p, "reason"));
    else if (field_has(p, "nearest"))
        complain_nearest(field_text(p, "nearest"), "there is no actor '%s'", name);
    else
        complain("there is no actor '%s'; 'troupectl actors' lists them", name);
    return EXIT_NOT_FOUND;
}

static int no_exchange(const json_t *p)
{
    complain("there is no exchange '%s'; 'troupectl exchanges' lists them", field_text(p, "name"));
    return EXIT_NOT_FOUND;
}

static int no_timer(const json_t *p)
{
    complain("there is no timer %lld (any more); 'troupectl timers' lists them",
             (long long)field_int(p, "id"));
    return EXIT_NOT_FOUND;
}

static int no_letter(const json_t *p)
{
    complain("there is no dead letter %lld (any more)", (long long)field_int(p, "id"));
    return EXIT_NOT_FOUND;
}

static int mailbox_full(const json_t *p)
{
    complain("the mailbox of '%s' is full (MailboxMax=, MailboxMemoryMax=): the message is a dead "
             "letter",
             field_text(p, "name"));
    return EXIT_BUSY;
}

static int no_match(const json_t *p)
{
    complain("exchange '%s' has no subscription for this: the message is a dead letter",
             field_text(p, "exchange"));
    return EXIT_FAILED;
}

static int timed_out(const json_t *p)
{
    (void)p;
    complain("nobody replied in time (--timeout)");
    return EXIT_TIMEOUT;
}

static int failed(const json_t *p)
{
    complain("no reply will come: %s", field_text(p, "reason"));
    return EXIT_FAILED;
}

static int too_many(const json_t *p)
{
    complain("there are too many %s already", field_text(p, "what"));
    return EXIT_BUSY;
}

static int declared(const json_t *p)
{
    complain("exchange '%s' is declared by a file: remove %s.exchange and 'troupectl reload'",
             field_text(p, "name"), field_text(p, "name"));
    return EXIT_FAILED;
}

static int not_requeued(const json_t *p)
{
    complain("dead letter %lld cannot be sent again and stays: %s", (long long)field_int(p, "id"),
             field_text(p, "problem"));
    return EXIT_FAILED;
}

const struct explanation explain_actors[] = {
    {"NoSuchActor", no_actor},     {"NoSuchExchange", no_exchange},
    {"NoSuchTimer", no_timer},     {"NoSuchDeadLetter", no_letter},
    {"MailboxFull", mailbox_full}, {"NoMatch", no_match},
    {"TimedOut", timed_out},       {"Failed", failed},
    {"TooMany", too_many},         {"Declared", declared},
    {"NotRequeued", not_requeued},
};

const size_t n_explain_actors = ELEMENTS(explain_actors);
