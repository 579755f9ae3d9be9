/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-facts.h"

#include "shared/ring/memory.h"
#include "supervisor/event/death.h"
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"
#include "supervisor/succession/record.h"

#define ROW job_facts
const struct record JOB_FACTS_RECORD = RECORD("job facts", JOB_FACTS_FIELDS);
#undef ROW

#define ROW protocol_id
static const struct record ID_RECORD =
    RECORD_OF("id", FIELD(MEMORY, high, NUMBER(high)) FIELD(MEMORY, low, NUMBER(low))
                        FIELD(MEMORY, name, STRING(name)));
#undef ROW

#define ROW job_page
#define PAGE(F)                                                                                    \
    F(MEMORY, facts, SUBRECORD(facts, JOB_FACTS_RECORD))                                           \
    F(MEMORY, handle, NUMBER(handle))                                                              \
    F(MEMORY, number, NUMBER(number))                                                              \
    F(MEMORY, deadline, NUMBER(deadline))                                                          \
    F(MEMORY, limit, NUMBER(limit))                                                                \
    F(MEMORY, unique_high, NUMBER(unique_high))                                                    \
    F(MEMORY, unique_low, NUMBER(unique_low))                                                      \
    F(MEMORY, id, SUBRECORD(id, ID_RECORD))                                                        \
    F(MEMORY, key_size, BELOW(key_size, PROTOCOL_KEY_MAX))                                         \
    F(MEMORY, cost, NUMBER(cost))                                                                  \
    F(MEMORY, key, ARRAY(key))
const struct record JOB_PAGE_RECORD = RECORD("job in hand", PAGE);
#undef ROW

_Static_assert(sizeof(struct job_page) <= MEMORY_JOB_KEPT, "the page fits");

#define ROW job_attempt
#define ATTEMPT(F)                                                                                 \
    F(UPGRADE, number, NUMBER(number))                                                             \
    F(UPGRADE, worker, STRING(worker))                                                             \
    F(UPGRADE, at, NUMBER(at))                                                                     \
    F(UPGRADE, cause, STRING(cause))                                                               \
    F(UPGRADE, detail, STRING(detail))
const struct record JOB_ATTEMPT_RECORD = RECORD("attempt", ATTEMPT);
