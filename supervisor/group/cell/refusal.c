/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/refusal.h"

#include "shared/base/cleanup.h"
#include "supervisor/group/cell/cell-submit.h"
#include <errno.h>

#define STAYS_ON_DISK                                                                              \
    "the supervisor is stopping; the job stays on disk, and continues at the next start"

static const struct refusal REFUSALS[] = {
    [CELL_E_BUSY] = {EBUSY, "Busy", "its queue is full (QueueMax=, QueueMemoryMax=)"},
    [CELL_E_TOO_LARGE] = {EMSGSIZE, "BadPayload",
                          "the payload is above QueueMemoryMax= of the group, or above half of it "
                          "for a submitter"},
    [CELL_E_EXISTS] = {EEXIST, "JobExists",
                       "a job with this id exists: it is live, or its result is still kept"},
    [CELL_E_BAD_ID] = {EINVAL, "BadId",
                       "malformed id: " PROTOCOL_NAME_ALLOWED "; " PROTOCOL_NAME_NO_SLOT},
    [CELL_E_STOPPING] = {ESHUTDOWN, "Stopping",
                         "the supervisor is stopping, or the group was removed"},
    [CELL_E_DRAINING] = {EHOSTDOWN, "Draining",
                         "it is drained and takes no new jobs until it is resumed"},
    [CELL_E_NO_KEY] = {EINVAL, "BadOption",
                       "the group has a cell for each key (Cells=by-key): a key is needed"},
    [CELL_E_BAD_KEY] = {EINVAL, "BadOption",
                        "malformed key: with Cells=by-key " PROTOCOL_NAME_ALLOWED},
    [CELL_E_TOO_MANY] = {ENOSPC, "TooManyCells",
                         "no new cell for this key: the group has as many as CellsMax="},
    [CELL_E_STORE_FULL] = {ENOSPC, "StoreFull",
                           "the disk that keeps the group's jobs (Durable=yes) is full"},
    [CELL_E_STORE_FAILED] = {EIO, "StoreFailed",
                             "the store that keeps the group's jobs (Durable=yes) does not work: "
                             "see troupectl status"},
    [CELL_E_TAKEN] = {ENOTUNIQ, "UniqueTaken", "another live job has the same unique key"},
    [CELL_E_DURABLE] = {EINVAL, "OtherDurability",
                        "one of the two groups is durable (Durable=), and the other one is not"},
    [CELL_E_MOVING] = {EBUSY, "Busy", "it is being written to disk: try again"},
    [CELL_E_NO_PARENT] = {ESRCH, "NoSuchJob", "there is no such job to wait for"},
    [CELL_E_UNREADABLE] = {EPERM, "NotPermitted",
                           "the jobs to wait for must be readable, and the batch your own"},
    [CELL_E_NOT_DURABLE] = {EMEDIUMTYPE, "NotDurable",
                            "a durable job cannot depend on one that is not durable"},
    [CELL_E_NO_BATCH] = {EINVAL, "NotABatch", "that job is no batch"},
    [CELL_E_CIRCLE] = {ELOOP, "WaitsForItself", "it would wait for a job that waits for its batch"},
    [CELL_E_BATCH_OVER] = {ESTALE, "BatchOver", "the batch is closed, and its members have ended"},
    [CELL_E_UNSURE] = {ECONNRESET, "StoreFailed",
                       "the disk failed while the job was written; ask for it by its id once the "
                       "store works"},
    [CELL_E_LEFT] = {ECONNRESET, "Restarting", STAYS_ON_DISK},
    [CELL_E_UNREAD] = {ECONNRESET, "Restarting",
                       "the supervisor has crashed; the job continues once it is read from disk"},
    [CELL_E_BAD_FILE] = {EBADMSG, "BadGroup",
                         "its file has a mistake or is missing: see 'troupectl status'"},
    /* Not ECONNRESET: asking again helps only after a restart. */
    [CELL_E_ON_DISK] = {ESHUTDOWN, "Stopping", STAYS_ON_DISK},
};

const struct refusal *refusal_of(int result)
{
    if (result <= 0 || (unsigned)result >= ELEMENTS(REFUSALS) || !REFUSALS[result].text)
        return NULL;
    return &REFUSALS[result];
}
