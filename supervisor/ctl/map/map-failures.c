/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/map/map-failures.h"

#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/map/window.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether several lines can share this message. */
static bool is_common(const struct troupe_result *result)
{
    return result->error < 0 || result->end == TROUPE_CANCELLED;
}

static bool continues(const struct map_failures *failures, const struct window_line *line)
{
    const struct troupe_result *result = &line->result;

    return failures->n > 0 && failures->first + failures->n == line->number + 1 &&
           failures->error == result->error &&
           (result->error < 0 || failures->end == result->end) &&
           strcmp(failures->reason, result->reason) == 0;
}

static void begin(struct map_failures *failures, const struct window_line *line)
{
    const struct troupe_result *result = &line->result;

    failures->first = line->number + 1;
    failures->n = 1;
    failures->end = result->end;
    failures->error = result->error;
    snprintf(failures->id, sizeof(failures->id), "%s", result->id);
    snprintf(failures->reason, sizeof(failures->reason), "%s", result->reason);
}

static int tell_one(const struct map_failures *failures, const struct troupe_result *result)
{
    char where[FORMAT_SIZE];

    snprintf(where, sizeof(where), "line %" PRIu64 ": ", failures->first);
    if (result->error == -ECONNRESET)
        return explain_unknown(where, result->id);
    if (result->error < 0) {
        complain("line %" PRIu64 ":", failures->first);
        return explain_refused(failures->group, result->error, result->reason);
    }
    return explain_end(where, result);
}

static void tell_unknown(const struct map_failures *failures)
{
    complain("lines %" PRIu64 " to %" PRIu64 ": what became of these jobs is not known: the "
             "supervisor that had them is gone",
             failures->first, failures->first + failures->n - 1);
}

static void tell_run(const struct map_failures *failures)
{
    const char *what = failures->error < 0 ? strerror(-failures->error) : "cancelled";
    bool repeats = strncmp(failures->reason, what, strlen(what)) == 0;

    complain("lines %" PRIu64 " to %" PRIu64 " were %s%s%s%s", failures->first,
             failures->first + failures->n - 1, failures->error < 0 ? "refused: " : "",
             repeats ? "" : what, repeats || *failures->reason == '\0' ? "" : ": ",
             failures->reason);
}

void map_failures_tell(struct map_failures *failures)
{
    struct troupe_result result = {
        .error = failures->error, .end = failures->end, .reason = failures->reason, .data = ""};

    if (failures->n == 1) {
        memcpy(result.id, failures->id, sizeof(result.id));
        (void)tell_one(failures, &result);
    } else if (failures->n > 1 && failures->error == -ECONNRESET) {
        tell_unknown(failures);
    } else if (failures->n > 1) {
        tell_run(failures);
    }
    failures->n = 0;
}

int map_failures_add(struct map_failures *failures, const struct window_line *line)
{
    int r;

    if (continues(failures, line)) {
        failures->n++;
        return explain_status(&line->result);
    }
    map_failures_tell(failures);
    begin(failures, line);
    if (is_common(&line->result))
        return explain_status(&line->result);
    r = tell_one(failures, &line->result);
    failures->n = 0;
    return r;
}
