/* SPDX-License-Identifier: MIT */
/* SystemCallFilter= and SystemCallErrorNumber=. */
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/filter-private.h"
#include "supervisor/config/sandbox/filter.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include "supervisor/config/sandbox/syscall-groups.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Above all numbers of system calls. */
#define SYSCALLS_MAX 2048

/* What happens to each call: UNLISTED, LISTED, or an action. */
struct listing {
    bool allows; /* lists what is allowed */
    enum {
        UNLISTED,
        LISTED,
        WITH_ACTION
    } state[SYSCALLS_MAX];
    uint32_t action[SYSCALLS_MAX];
};

static uint32_t action_of(int error)
{
    return error == 0 ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO((unsigned)error);
}

static void list_call(struct listing *listing, int call, bool add, int error)
{
    /* Negative: not on this architecture. */
    if (call < 0 || call >= SYSCALLS_MAX)
        return;
    listing->state[call] = error >= 0 ? WITH_ACTION : add ? LISTED : UNLISTED;
    listing->action[call] = error < 0 ? 0 : action_of(error);
}

static void list_name(struct listing *listing, const char *name, bool add, int error)
{
    const char *members = *name == '@' ? syscall_group_find(name) : NULL;
    char member[64];

    if (*name != '@')
        list_call(listing, seccomp_syscall_resolve_name(name), add, error);
    for (size_t n; members && (n = strcspn(members, " ")) > 0; members += n + (members[n] == ' ')) {
        memcpy(member, members, n);
        member[n] = '\0';
        list_name(listing, member, add, error);
    }
}

static void list_word(struct listing *listing, const char *word)
{
    const bool add = (*word == '~') != listing->allows;
    const char *colon = strchr(word, ':');
    const int error = colon ? sandbox_error(colon + 1) : -1;
    char name[64];

    word = sandbox_word(word);
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, ":"), word);
    list_name(listing, name, add, error);
}

static int add_rules(scmp_filter_ctx context, const struct listing *listing, uint32_t fallback,
                     uint32_t listed)
{
    int r = 0;

    for (int call = 0; r == 0 && call < SYSCALLS_MAX; call++) {
        const uint32_t action =
            listing->state[call] == WITH_ACTION ? listing->action[call] : listed;

        if (listing->state[call] != UNLISTED && action != fallback)
            r = seccomp_rule_add(context, action, call, 0);
    }
    return r;
}

static void list_words(struct listing *listing, const char *words)
{
    char word[128];

    for (size_t n; (n = strcspn(words, " ")) > 0; words += n + (words[n] == ' ')) {
        (void)snprintf(word, sizeof(word), "%.*s", (int)n, words);
        list_word(listing, word);
    }
}

int filter_calls_of(const struct config_group *group, char **ret)
{
    const struct config_strings *list = &group->system_call_filter;
    size_t size;
    FILE *file;

    *ret = NULL;
    if (list->n == 0)
        return 0;
    file = open_memstream(ret, &size);
    if (!file)
        return -ENOMEM;
    fprintf(file, FILTER_CALLS "%d", group->system_call_error_number);
    for (size_t i = 0; i < list->n; i++)
        fprintf(file, " %s", list->strings[i]);
    if (fclose(file) == 0)
        return 0;
    free(TAKE_PTR(*ret));
    return -ENOMEM;
}

int filter_add_calls(scmp_filter_ctx *context, const char *settings)
{
    _cleanup_free_ struct listing *listing = calloc(1, sizeof(*listing));
    char *words;
    const uint32_t denied = action_of((int)strtol(settings, &words, 10));
    int r;

    if (!listing)
        return -ENOMEM;
    if (*words++ != ' ')
        return -EINVAL;
    listing->allows = *words != '~';
    if (listing->allows)
        list_name(listing, "@default", true, -1);
    list_words(listing, words);
    r = filter_start(context, listing->allows ? denied : SCMP_ACT_ALLOW);
    if (r == 0)
        r = add_rules(*context, listing, listing->allows ? denied : SCMP_ACT_ALLOW,
                      listing->allows ? SCMP_ACT_ALLOW : denied);
    return r;
}
