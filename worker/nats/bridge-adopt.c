/* SPDX-License-Identifier: MIT */

/* Jobs that the supervisor has of an earlier run of this program, which was killed or had to end:
 * they are in flight again before their messages come again, which might go to another machine. */

#include "shared/base/log.h"
#include "shared/base/quantity.h"
#include "worker/nats/bridge-private.h"
#include "worker/nats/message.h"
#include "worker/troupe-query.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Between two answers of the supervisor. */
#define ANSWER_USEC (5 * USEC_PER_SEC)

static int parse_number(const char **text, uint64_t *ret)
{
    return **text == ':' && quantity_parse_number(*text + 1, ret, text) == 0 ? 0 : -EINVAL;
}

/* Takes what flight_id() has made apart. Returns 0, or -EINVAL if the job has another id. */
static int parse_id(const char *id, const char *stream, uint64_t *ret_sequence, uint64_t *ret_tries)
{
    const size_t length = strlen(stream);
    const char *end = id + length;

    *ret_tries = 0;
    if (strncmp(id, stream, length) != 0 || parse_number(&end, ret_sequence) < 0 ||
        *ret_sequence == 0)
        return -EINVAL;
    if (*end != '\0' && (parse_number(&end, ret_tries) < 0 || *ret_tries > UINT_MAX))
        return -EINVAL;
    return *end == '\0' ? 0 : -EINVAL;
}

static void adopt(struct bridge *bridge, struct troupe_query *job, usec_t now)
{
    const struct config *config = bridge->config;
    const char *id = troupe_query_text(job, "id");
    uint64_t sequence, tries;
    struct flight *flight;
    natsMsg *message;

    if (!id || parse_id(id, config->stream, &sequence, &tries) < 0 ||
        flight_find(&bridge->flights, sequence))
        return;
    message = message_stand_in(config->stream, config_consumer(config), sequence);
    flight = message ? flight_new(&bridge->flights, sequence, message, now) : NULL;
    if (!flight) {
        natsMsg_Destroy(message);
        return;
    }
    flight->kind = FLIGHT_STAND_IN;
    flight->claim = FLIGHT_RESUMED;
    flight->tries = (unsigned)tries;
    bridge_submit(bridge, flight, now);
}

static int adopt_all(struct bridge *bridge, struct troupe_query *jobs, usec_t now)
{
    char parameters[160];
    int r;

    (void)snprintf(parameters, sizeof(parameters), "{\"group\":\"%s\"}", bridge->config->group);
    r = troupe_query_call(jobs, "io.troupe.Jobs.List", "jobs", parameters, 0);
    while (r == 0 && (r = troupe_query_next(jobs, ANSWER_USEC)) == 1) {
        if (bridge->flights.n >= CONFIG_IN_FLIGHT_MAX) /* InFlight= may be smaller than it was */
            return 0;
        adopt(bridge, jobs, now);
        r = 0;
    }
    return r;
}

void bridge_adopt(struct bridge *bridge)
{
    struct troupe_query *jobs;
    int r = troupe_query_new(&jobs, NULL);

    if (r == 0) {
        r = adopt_all(bridge, jobs, clock_now());
        troupe_query_free(jobs);
    }
    if (r < 0)
        log_warning(
            "group %s: jobs of an earlier run are not known, and may be done elsewhere as well: %s",
            bridge->config->group, strerror(-r));
    else if (bridge->flights.n > 0)
        log_info("group %s: goes on with %u jobs of an earlier run", bridge->config->group,
                 bridge->flights.n);
}
