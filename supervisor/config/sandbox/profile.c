/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/profile.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/keys/keys.h"
#include <assert.h>

struct line {
    const char *key, *value; /* several of one key make a list */
};

/* Ordinary programs do not notice it. */
static const struct line BASIC[] = {
    {"NoNewPrivileges", "yes"},
    {"ProtectSystem", "full"},
    {"PrivateIPC", "yes"},
    {"RestrictNamespaces", "yes"},
    {"SystemCallFilter", "~@clock @cpu-emulation @debug @module @mount @obsolete @raw-io @reboot "
                         "@swap"},
    {"SystemCallErrorNumber", "EPERM"},
    {"SystemCallArchitectures", "native"},
};

/* Leaves a program that converts files of strangers its payload, its result, the installed
 * programs, and a private /tmp. With READ_IMPLIES_EXEC, personality() would get around
 * MemoryDenyWriteExecute=. futex_waitv() lets a thread wait at 128 futexes, all of which a wake-up
 * may pass. The lists of paths are empty, so that those of a group add to what PrivateRoot= leaves.
 */
static const struct line STRICT[] = {
    {"NoNewPrivileges", "yes"},
    {"UMask", "0077"},
    {"CapabilityBoundingSet", "none"},
    {"ProtectSystem", "strict"},
    {"ProtectHome", "yes"},
    {"PrivateRoot", "yes"},
    {"PrivateTmp", "job"},
    {"PrivateNetwork", "yes"},
    {"PrivatePIDs", "yes"},
    {"PrivateIPC", "yes"},
    {"ProtectProc", "invisible"},
    {"ProcSubset", "pid"},
    {"RestrictAddressFamilies", "none"},
    {"RestrictNamespaces", "yes"},
    {"MemoryDenyWriteExecute", "yes"},
    {"SystemCallFilter", "@system-service"},
    {"SystemCallFilter", "~@privileged @resources @keyring personality userfaultfd "
                         "io_uring_enter io_uring_register io_uring_setup futex_waitv "
                         "mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 "
                         "mq_timedsend mq_timedsend_time64 mq_unlink "
                         "ipc msgctl msgget msgrcv msgsnd semctl semget semop semtimedop "
                         "semtimedop_time64 shmat shmctl shmdt shmget"},
    {"SystemCallErrorNumber", "EPERM"},
    {"SystemCallArchitectures", "native"},
};

static const struct {
    const char *name;
    const struct line *lines;
    size_t n;
} PROFILES[] = {
    [CONFIG_PROFILE_NONE] = {"none", NULL, 0},
    [CONFIG_PROFILE_BASIC] = {"basic", BASIC, ELEMENTS(BASIC)},
    [CONFIG_PROFILE_STRICT] = {"strict", STRICT, ELEMENTS(STRICT)},
};

const char *profile_name(enum config_profile profile)
{
    return PROFILES[profile].name;
}

int profile_apply(struct config_group *group)
{
    const struct line *lines = PROFILES[group->profile].lines;
    const size_t n = PROFILES[group->profile].n;
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        const char *reason;

        if (!group->draft || !config_draft_given(group->draft, lines[i].key))
            r = config_key_assign(config_schema_find(&CONFIG_GROUP_SCHEMA, lines[i].key), group,
                                  lines[i].value, &reason);
        assert(r <= 0);
    }
    return r;
}
