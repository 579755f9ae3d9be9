/* SPDX-License-Identifier: MIT */
#include "supervisor/config/keys/keys.h"
#include "supervisor/config/syntax/suggest.h"
#include "tests/unit/suite.h"

static const char *const VERBS[] = {"status", "start", "stop", "restart", "reset", "reload", NULL};

TEST(equal_words_are_no_steps_apart)
{
    ck_assert_uint_eq(suggest_distance("Size", "Size"), 0);
    ck_assert_uint_eq(suggest_distance("", ""), 0);
}

TEST(case_does_not_count)
{
    ck_assert_uint_eq(suggest_distance("execstart", "ExecStart"), 0);
}

TEST(inserting_leaving_out_replacing_and_swapping_is_one_step_each)
{
    ck_assert_uint_eq(suggest_distance("stop", "stopp"), 1);
    ck_assert_uint_eq(suggest_distance("stop", "sto"), 1);
    ck_assert_uint_eq(suggest_distance("stop", "stip"), 1);
    ck_assert_uint_eq(suggest_distance("stop", "sotp"), 1);
    ck_assert_uint_eq(suggest_distance("", "sto"), 3);
    ck_assert_uint_eq(suggest_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(suggest_distance("abcdefgh", "abcdexyzfgh"), 3);
    ck_assert_uint_eq(suggest_distance("xyzabcdefgh", "abcdefgh"), 3);
    ck_assert_uint_eq(suggest_distance("abcdefgh", "badcfegh"), 3);
    ck_assert_uint_eq(suggest_distance("xabcdefgh", "abcdefghx"), 2);
}

TEST(words_further_apart_are_not_measured)
{
    ck_assert_uint_eq(suggest_distance("", "stop"), SIZE_MAX);
    ck_assert_uint_eq(suggest_distance("stop", ""), SIZE_MAX);
    ck_assert_uint_eq(suggest_distance("abcdefgh", "abcd"), SIZE_MAX);
    ck_assert_uint_eq(suggest_distance("abcdefgh", "abwxyzgh"), SIZE_MAX);
    ck_assert_uint_eq(suggest_distance("abcdefgh", "badcfehg"), SIZE_MAX);
}

TEST(overlong_words_are_near_to_nothing)
{
    char word[SUGGEST_WORD_MAX + 2];

    for (size_t i = 0; i < sizeof(word) - 1; i++)
        word[i] = 'a';
    word[sizeof(word) - 1] = '\0';
    ck_assert_uint_eq(suggest_distance(word, word), SIZE_MAX);
    ck_assert_uint_eq(suggest_distance("a", word), SIZE_MAX);
    ck_assert_ptr_null(suggest_nearest(word, VERBS));
    word[SUGGEST_WORD_MAX] = '\0';
    ck_assert_uint_eq(suggest_distance(word, word), 0);
}

TEST(the_nearest_word_is_found)
{
    ck_assert_str_eq(suggest_nearest("statsu", VERBS), "status");
    ck_assert_str_eq(suggest_nearest("resart", VERBS), "restart");
    ck_assert_str_eq(suggest_nearest("relaod", VERBS), "reload");
    ck_assert_str_eq(suggest_nearest("STOP", VERBS), "stop");
}

TEST(of_several_the_first_one_is_taken)
{
    static const char *const words[] = {"boat", "coat", NULL};

    ck_assert_str_eq(suggest_nearest("goat", words), "boat");
}

TEST(far_words_are_not_suggested)
{
    static const char *const one[] = {"a", NULL}, *const none[] = {NULL};

    ck_assert_ptr_null(suggest_nearest("banana", VERBS));
    ck_assert_ptr_null(suggest_nearest("", VERBS));
    ck_assert_ptr_null(suggest_nearest("b", one));
    ck_assert_ptr_null(suggest_nearest("status", none));
}

/* ---- keys ---- */

#define KEYS_MAX 256

/* Nearest of the keys of [Sandbox], [Resources] and all others of a group's file. */
static const char *nearest_key(const char *word)
{
    const char *keys[KEYS_MAX + 1];
    size_t n = 0;

    ck_assert_uint_le(CONFIG_GROUP_SCHEMA.n_keys, KEYS_MAX);
    for (; n < CONFIG_GROUP_SCHEMA.n_keys; n++)
        keys[n] = CONFIG_GROUP_SCHEMA.keys[n].name;
    keys[n] = NULL;
    return suggest_nearest(word, keys);
}

TEST(a_slip_in_a_key_leads_to_the_key)
{
    char slips[] =
        "execstart:ExecStart ExceStart:ExecStart ExecStrat:ExecStart PrivateTemp:PrivateTmp "
        "PrivateTmpp:PrivateTmp Privatemp:PrivateTmp PrviateTpm:PrivateTmp "
        "PrivatPIDs:PrivatePIDs PrivatePID:PrivatePIDs PrivatePDIs:PrivatePIDs "
        "PrivateNetwrok:PrivateNetwork ProtectSytem:ProtectSystem ProtectHomes:ProtectHome "
        "ReadOnlyPath:ReadOnlyPaths ReadOlnyPtahs:ReadOnlyPaths ReadOnlysPaths:ReadOnlyPaths "
        "InaccesiblePaths:InaccessiblePaths CapabilitiesBoundingSet:CapabilityBoundingSet "
        "CapabilityBounding:CapabilityBoundingSet NoNewPrivilege:NoNewPrivileges "
        "SystemCallFilters:SystemCallFilter SystemCallFitler:SystemCallFilter "
        "RestrictAddresFamilies:RestrictAddressFamilies "
        "MemoryDenyWriteExec:MemoryDenyWriteExecute LimitNOFILES:LimitNOFILE "
        "LimitNoFile:LimitNOFILE TimeoutStart:TimeoutStartSec TimeoutStopSecs:TimeoutStopSec "
        "OOMScoreAdj:OOMScoreAdjust WorkingDirectry:WorkingDirectory umask:UMask";

    for (char *slip = strtok(slips, ":"); slip; slip = strtok(NULL, ":")) {
        const char *key = strtok(NULL, " "), *nearest = nearest_key(slip);

        ck_assert_msg(nearest && strcmp(nearest, key) == 0, "%s: %s", slip, nearest);
    }
}

/* They share a part with keys that there are. */
TEST(another_key_of_systemd_is_not_taken_for_one_that_there_is)
{
    char others[] =
        "PrivateDevices PrivateUsers PrivateMounts privatedevices ProtectClock "
        "ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectControlGroups "
        "RestrictRealtime RestrictSUIDSGID RestrictFileSystems LockPersonality RootDirectory "
        "DynamicUser StateDirectory ExecPaths NoExecPaths BindPaths TemporaryFileSystem "
        "LimitCPU LimitRSS LimitNPROC LimitDATA LimitFSIZE LimitSTACK MemoryMin MemoryLow "
        "AllowedMemoryNodes StartupCPUWeight ExecStartPre ExecStartPost ExecStop ExecStopPost "
        "ExecReload ExecCondition SyslogLevel SyslogIdentifier TimeoutAbortSec RuntimeMaxSec "
        "KillMode KillSignal FinalKillSignal SendSIGHUP IPAddressDeny DevicePolicy "
        "SocketBindDeny KeyringMode";

    for (char *other = strtok(others, " "); other; other = strtok(NULL, " ")) {
        const char *nearest = nearest_key(other);

        ck_assert_msg(!nearest || strcmp(nearest, other) == 0, "%s: %s", other, nearest);
    }
}
