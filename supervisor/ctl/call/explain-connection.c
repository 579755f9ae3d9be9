/* SPDX-License-Identifier: MIT */

/* Explains errors that any call may return: of the connection, its limits, and the supervisor. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/explain-private.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"

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

/* ---- org.varlink.service ---- */

/* Only about the type of a parameter: methods refuse bad values with errors of their own. */
static int invalid_parameter(const json_t *p)
{
    complain("the supervisor does not take '%s' here: is it of another version than troupectl?",
             field_text(p, "parameter"));
    return EXIT_USAGE;
}

static int unknown_method(const json_t *p)
{
    complain("the program behind the socket does not know '%s': another version, or no trouped",
             field_has(p, "method") ? field_text(p, "method") : field_text(p, "interface"));
    return EXIT_FAILED;
}

static int permission_denied(const json_t *p)
{
    (void)p;
    complain("not permitted by what answers at the socket");
    return EXIT_NOT_PERMITTED;
}

static int expected_more(const json_t *p)
{
    (void)p;
    complain("the supervisor answers this only with \"more\": another version?");
    return EXIT_FAILED;
}

const struct explanation explain_service[] = {
    {"InvalidParameter", invalid_parameter}, {"MethodNotFound", unknown_method},
    {"InterfaceNotFound", unknown_method},   {"MethodNotImplemented", unknown_method},
    {"PermissionDenied", permission_denied}, {"ExpectedMore", expected_more},
};

const size_t n_explain_service = ELEMENTS(explain_service);
