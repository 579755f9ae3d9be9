/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the supervisor knows, as JSON: the types Death, Worker, Group, Event and Job of the
 * interfaces.
 *
 * Details (state pages, output, results, attempts) are left out of an answer that has grown beyond
 * REPORT_DETAIL_MAX: a status or a list stays readable whatever the workers publish.
 */

#include "supervisor/control/access.h"
#include "supervisor/varlink/reply.h"

#include <stddef.h>

struct access;
struct cell;
struct control_context;
struct death;
struct event;
struct group;
struct job;
struct payload;
struct slot;

#define REPORT_DETAIL_MAX ((size_t)2 << 20)
/* For an answer about one job, whose result may nearly fill it. */
#define REPORT_SINGLE_MAX (((size_t)4 << 20) - 65536)

/*
 * What `access` may not read is left out, and the object says "restricted": true.
 *
 * Each writes one object into the answer, as its member `key`, or as an element; what it does
 * not fit into fails the answer as a whole, see reply.h. Nothing is kept of what is passed.
 */
void report_death(struct reply *reply, const char *key, const struct access *access,
                  const struct death *death);
void report_worker(struct reply *reply, const struct access *access, struct slot *slot);
/* All but the cells and workers, and the end of the object; of a group also without what the oldest
 * job is, which is found among the cells. */
void report_group_begin(struct reply *reply, const struct access *access,
                        const struct group *group);
void report_cell_begin(struct reply *reply, const struct cell *cell);
/* How workers are kept apart, and which limits of which groups have no effect; those of one group.
 */
void report_cgroups(struct reply *reply, const struct control_context *context);
void report_unmet(struct reply *reply, const struct group *group);
void report_event(struct reply *reply, const struct access *access, const struct event *event);
/* limit: as above. */
void report_job(struct reply *reply, const char *key, const struct access *access,
                const struct job *job, size_t limit);

/* The bytes of a payload as a Payload, if the answer stays within `limit`. 0, -EMSGSIZE (nothing is
 * written), or -errno of mapping a blob. */
int report_payload(struct reply *reply, const char *key, const struct payload *payload,
                   size_t limit);

/* Whether an event or a death is about `target` (a group, a cell or a worker; NULL = everything).
 */
bool report_event_matches(const struct event *event, const char *target);
bool report_death_matches(const struct death *death, const char *target);
