/* SPDX-License-Identifier: MIT */

/* What may go wrong with any call: the connection, its bounds, and the supervisor itself. */

#include "../../shared/cleanup.h"
#include "complain.h"
#include "exit-status.h"
#include "explain-private.h"
#include "field.h"
#include "format.h"

static int too_many_clients(const json_t *p)
{
    complain("the supervisor has %lld clients already, no more are let in (ClientsMax=)",
             (long long)field_int(p, "maximum"));
    return EXIT_BUSY;
}

static int bad_version(const json_t *p)
{
    complain("the supervisor speaks version %lld, this program version %lld: one of them is old",
             (long long)field_int(p, "supported"), (long long)field_int(p, "version"));
    return EXIT_FAILED;
}

static int too_large(const json_t *p)
{
    complain("a request or its answer is larger than %s: ask for less at a time",
             BYTES(field_count(p, "maximum")));
    return EXIT_FAILED;
}

static int too_slow(const json_t *p)
{
    complain("more than %s of answers were waiting to be read: the supervisor has hung up",
             BYTES(field_count(p, "maximum")));
    return EXIT_FAILED;
}

static int internal(const json_t *p)
{
    complain("the supervisor could not do it, it is short of something: %s",
             field_text(p, "message"));
    return EXIT_FAILED;
}

static int already_attached(const json_t *p)
{
    (void)p;
    complain("this connection has its shared memory already");
    return EXIT_FAILED;
}

const struct explanation explain_connection[] = {
    {"TooManyClients", too_many_clients},
    {"BadVersion", bad_version},
    {"AlreadyAttached", already_attached},
    {"TooLarge", too_large},
    {"TooSlow", too_slow},
    {"Internal", internal},
};

const size_t n_explain_connection = ELEMENTS(explain_connection);
