/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/layout.h"

#include "shared/base/cleanup.h"
#include "shared/ring/memory.h"
#include "supervisor/client/attachment-save.h"
#include "supervisor/event/death-save.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/group-save.h"
#include "supervisor/job/job-facts.h"
#include "supervisor/message/actor-save.h"
#include "supervisor/message/ask/ask-save.h"
#include "supervisor/message/dead-letter/dead-letter-save.h"
#include "supervisor/message/delivery/delivery-save.h"
#include "supervisor/message/envelope-save.h"
#include "supervisor/message/exchange/exchange-save.h"
#include "supervisor/message/inheritance.h"
#include "supervisor/message/schedule/schedule-save.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/store.h"
#include "supervisor/succession/record.h"

/* Of the rows and holdings that are written without a table. Raise it with every change of one. */
#define UNDESCRIBED_VERSION 1

static const struct record *const RECORDS[] = {
    &SAVED_JOB_RECORD,   &JOB_PAGE_RECORD,      &SLOT_RECORD,        &CELL_RECORD,
    &CELL_KEPT_RECORD,   &GROUP_RECORD,         &GROUP_KEPT_RECORD,  &DEATH_RECORD,
    &MESSAGES_RECORD,    &ACTOR_RECORD,         &INBOX_RECORD,       &ENVELOPE_RECORD,
    &EXCHANGE_RECORD,    &ASK_RECORD,           &SCHEDULE_RECORD,    &DEAD_LETTER_RECORD,
    &STORE_STATS_RECORD, &CLIENT_SUBMIT_RECORD, &CLIENT_WAIT_RECORD, &CLIENT_ANSWER_RECORD,
};

uint64_t upgrade_layout(void)
{
    uint64_t digest =
        (uint64_t)MEMORY_VERSION << 32 | KEPT_STATES_VERSION << 16 | UNDESCRIBED_VERSION;

    for (size_t i = 0; i < ELEMENTS(RECORDS); i++)
        digest = record_digest(digest, RECORDS[i]);
    return digest;
}
