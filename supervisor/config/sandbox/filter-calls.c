/* SPDX-License-Identifier: MIT */
/* SystemCallFilter=, SystemCallErrorNumber= and SystemCallLog=. */
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/call-set.h"
#include "supervisor/config/sandbox/filter.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of each call in a list, and its action if it has one of its own. */
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

/* The first word says whether the words list what is in the set, or all but what is in it. The
 * `implied` group comes first if the words list what is in it. */
static void read_list(struct listing *listing, const char *words, const char *implied)
{
    memset(listing, 0, sizeof(*listing));
    listing->allows = *words != '~';
    if (listing->allows)
        list_name(listing, implied, true, -1);
    for (size_t n; (n = strcspn(words, " ")) > 0; words += n + (words[n] == ' ')) {
        char word[128];

        (void)snprintf(word, sizeof(word), "%.*s", (int)n, words);
        list_word(listing, word);
    }
}

/* ---- the program ---- */

struct program {
    struct sock_filter code[BPF_MAXINSNS];
    size_t n;
};

static void put(struct program *program, struct sock_filter instruction)
{
    program->code[program->n++] = instruction;
}

#define LOAD(member)                                                                               \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define JUMP(test, value, then, otherwise)                                                         \
    (struct sock_filter) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), (then), (otherwise))
#define RETURN(action) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (action))

static void check_architecture(struct program *program)
{
    put(program, LOAD(arch));
    put(program, JUMP(BPF_JEQ, seccomp_arch_native(), 1, 0));
    put(program, RETURN(SECCOMP_RET_KILL_PROCESS));
    put(program, LOAD(nr));
    if (seccomp_arch_native() != SCMP_ARCH_X86_64)
        return;
    put(program, JUMP(BPF_JGE, SANDBOX_X32_CALLS, 0, 2));
    put(program, JUMP(BPF_JEQ, UINT32_MAX, 1, 0));
    put(program, RETURN(SECCOMP_RET_KILL_PROCESS));
}

/* A test and a return for each run of calls that are treated alike. The kernel remembers which
 * calls are allowed, and does not run the program for these. */
static void put_runs(struct program *program, const uint32_t *actions)
{
    for (uint32_t call = 1; call < SYSCALLS_MAX; call++) {
        if (actions[call] == actions[call - 1])
            continue;
        put(program, JUMP(BPF_JGE, call, 1, 0));
        put(program, RETURN(actions[call - 1]));
    }
    put(program, RETURN(actions[SYSCALLS_MAX - 1]));
}

int filter_program(const uint32_t *actions, struct sandbox_filter *ret)
{
    _cleanup_free_ struct program *program = calloc(1, sizeof(*program));
    size_t size;

    if (!program)
        return -ENOMEM;
    check_architecture(program);
    put_runs(program, actions);
    size = program->n * sizeof(program->code[0]);
    *ret = (struct sandbox_filter){.code = malloc(size), .size = size};
    if (!ret->code)
        return -ENOMEM;
    memcpy(ret->code, program->code, size);
    return 0;
}

/* ---- settings ---- */

/* SystemCallFilter= and SystemCallLog=; each list may be empty. */
struct lists {
    int error;
    struct listing filter, log;
};

/* Separates the two lists. */
#define LOG_FOLLOWS " | "

static void put_words(FILE *file, const struct config_strings *list)
{
    for (size_t i = 0; i < list->n; i++)
        fprintf(file, "%s%s", i > 0 ? " " : "", list->strings[i]);
}

void filter_put_calls(FILE *file, const struct config_group *group)
{
    if (group->system_call_filter.n == 0 && group->system_call_log.n == 0)
        return;
    fprintf(file, FILTER_CALLS "%d ", group->system_call_error_number);
    if (group->system_call_filter.n == 0)
        fprintf(file, "~");
    put_words(file, &group->system_call_filter);
    if (group->system_call_log.n > 0)
        fprintf(file, LOG_FOLLOWS);
    put_words(file, &group->system_call_log);
}

static int read_settings(struct lists *lists, const char *settings)
{
    char *words;
    char *log;

    if (strncmp(settings, FILTER_CALLS, strlen(FILTER_CALLS)) != 0)
        return -EINVAL;
    lists->error = (int)strtol(settings + strlen(FILTER_CALLS), &words, 10);
    if (*words++ != ' ')
        return -EINVAL;
    words = strdup(words);
    if (!words)
        return -ENOMEM;
    log = strstr(words, LOG_FOLLOWS);
    if (log)
        *log = '\0';
    read_list(&lists->filter, words, "@default");
    read_list(&lists->log, log ? log + strlen(LOG_FOLLOWS) : "@none", "@none");
    free(words);
    return 0;
}

/* ---- what happens to a call ---- */

static bool is_logged(const struct listing *log, int call)
{
    return (log->state[call] != UNLISTED) == log->allows;
}

static uint32_t action_to(const struct lists *lists, int call)
{
    const struct listing *filter = &lists->filter;

    if (is_logged(&lists->log, call))
        return SCMP_ACT_LOG;
    if (filter->state[call] == WITH_ACTION)
        return filter->action[call];
    return (filter->state[call] == LISTED) == filter->allows ? SCMP_ACT_ALLOW
                                                             : action_of(lists->error);
}

int filter_compile_calls(const char *settings, struct sandbox_filter *ret)
{
    _cleanup_free_ struct lists *lists = calloc(1, sizeof(*lists));
    uint32_t actions[SYSCALLS_MAX];
    int r = lists ? read_settings(lists, settings) : -ENOMEM;

    for (int call = 0; r == 0 && call < SYSCALLS_MAX; call++)
        actions[call] = action_to(lists, call);
    return r < 0 ? r : filter_program(actions, ret);
}

int filter_logged_calls(const struct config_group *group, struct call_set *ret)
{
    _cleanup_free_ struct lists *lists = NULL;
    _cleanup_free_ char *settings = NULL;
    int r = 0;

    *ret = (struct call_set){0};
    if (group->system_call_log.n == 0)
        return 0;
    lists = calloc(1, sizeof(*lists));
    r = lists ? filter_settings_of(group, &settings) : -ENOMEM;
    if (r == 0)
        r = read_settings(lists, strstr(settings, FILTER_CALLS));
    for (int call = 0; r == 0 && call < SYSCALLS_MAX; call++)
        if (is_logged(&lists->log, call))
            call_set_add(ret, call);
    return r;
}
