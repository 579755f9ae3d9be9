/* SPDX-License-Identifier: MIT */
#include "supervisor/web/route.h"

#include <string.h>

#define SUPERVISOR "io.troupe.Supervisor."
#define JOBS       "io.troupe.Jobs."
#define ACTORS     "io.troupe.Actors."

#define PARAMETERS(...) ((const struct parameter[]){__VA_ARGS__{.name = NULL}})
/* clang-format off */
#define TEXT(name_)   {.name = (name_), .type = PARAMETER_TEXT},
#define NUMBER(name_) {.name = (name_), .type = PARAMETER_NUMBER},
#define FLAG(name_)   {.name = (name_), .type = PARAMETER_FLAG},
#define LOCAL(name_, type_)  {.name = (name_), .type = (type_), .local = true},
#define IN_FILTER(name_, type_) {.name = (name_), .type = (type_), .object = "filter"},
#define PAGE  NUMBER("cursor") {.name = "limit", .type = PARAMETER_LIMIT},
#define FILTER                                                                                     \
    IN_FILTER("queue", PARAMETER_TEXT) IN_FILTER("reason", PARAMETER_TEXT)                         \
    IN_FILTER("sender", PARAMETER_TEXT) IN_FILTER("recipient", PARAMETER_TEXT)                     \
    IN_FILTER("type", PARAMETER_TEXT) IN_FILTER("job", PARAMETER_TEXT)                             \
    IN_FILTER("since_at", PARAMETER_NUMBER)
#define TARGET TEXT("target")

#define LOOK(path_, method_, view_, parameters_)                                                   \
    {.path = (path_), .method = (method_), .view = (view_), .parameters = PARAMETERS(parameters_)}
#define CHANGE(path_, method_, parameters_)                                                        \
    {.path = (path_), .change = true, .method = (method_), .parameters = PARAMETERS(parameters_)}
/* clang-format on */

static const struct route routes[] = {
    LOOK("/api/info", SUPERVISOR "GetInfo", NULL, ),
    LOOK("/api/status", SUPERVISOR "GetStatus", view_status,
         TEXT("target") LOCAL("offset", PARAMETER_NUMBER) LOCAL("limit", PARAMETER_LIMIT)),
    LOOK("/api/history", SUPERVISOR "GetHistory", NULL, ),
    LOOK("/api/deaths", SUPERVISOR "ListDeaths", NULL, TEXT("target") PAGE),
    LOOK("/api/past-events", SUPERVISOR "Watch", view_events, TEXT("target") PAGE),
    LOOK("/api/log", SUPERVISOR "GetLog", NULL, TEXT("target") TEXT("job")),
    LOOK("/api/jobs", JOBS "List", NULL, TEXT("group") TEXT("state") FLAG("ended") PAGE),
    LOOK("/api/job", JOBS "Get", NULL, TEXT("id")),
    LOOK("/api/dead-letters", ACTORS "ListDeadLetters", NULL, FILTER PAGE),
    LOOK("/api/dead-letter", ACTORS "GetDeadLetter", NULL, NUMBER("id")),
    CHANGE("/api/send-again", ACTORS "Requeue", NUMBER("id") TEXT("to") FILTER),
    CHANGE("/api/purge", ACTORS "Purge", NUMBER("id") FILTER),
    CHANGE("/api/cancel", JOBS "Cancel", TEXT("id")),
    CHANGE("/api/start", SUPERVISOR "Start", TARGET),
    CHANGE("/api/stop", SUPERVISOR "Stop", TARGET),
    CHANGE("/api/restart", SUPERVISOR "Restart", TARGET),
    CHANGE("/api/reset", SUPERVISOR "Reset", TARGET),
    CHANGE("/api/pause", SUPERVISOR "Pause", TARGET),
    CHANGE("/api/resume", SUPERVISOR "Resume", TARGET),
    CHANGE("/api/resize", SUPERVISOR "Resize", TARGET NUMBER("size")),
    {.path = "/api/session", .kind = ROUTE_SESSION, .parameters = PARAMETERS()},
    {.path = "/api/events", .kind = ROUTE_EVENTS, .parameters = PARAMETERS()},
    {.path = "/metrics",
     .kind = ROUTE_METRICS,
     .method = SUPERVISOR "GetMetrics",
     .parameters = PARAMETERS()},
    {.path = NULL},
};

const struct route *route_find(const char *path)
{
    for (const struct route *route = routes; route->path; route++)
        if (strcmp(route->path, path) == 0)
            return route;
    return NULL;
}
