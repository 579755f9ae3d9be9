/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/filter-program.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/call-set.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* From this call to the next run, all are treated alike. */
struct run {
    uint32_t call, action;
};

struct program {
    struct run runs[SYSCALLS_MAX];
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
#define SKIP(n)        (struct sock_filter) BPF_STMT(BPF_JMP | BPF_JA, (unsigned)(n))

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

static size_t find_runs(const uint32_t *actions, struct run *runs)
{
    size_t n = 0;

    for (uint32_t call = 0; call < SYSCALLS_MAX; call++)
        if (n == 0 || actions[call] != runs[n - 1].action)
            runs[n++] = (struct run){call, actions[call]};
    return n;
}

/* The longest jump of a test. */
#define REACH UINT8_MAX

/* A binary tree whose leaves are the returns behind it, one for each action. */
struct tree {
    uint32_t actions[REACH];
    size_t n_actions, returns_at;
};

/* Returns false if there are too many. */
static bool add_action(struct tree *tree, uint32_t action, size_t max)
{
    for (size_t i = 0; i < tree->n_actions; i++)
        if (tree->actions[i] == action)
            return true;
    if (tree->n_actions == max)
        return false;
    tree->actions[tree->n_actions++] = action;
    return true;
}

/* There is a test for each run but the first. */
static bool plan_tree(struct tree *tree, const struct run *runs, size_t n)
{
    bool fits = n <= REACH;

    tree->n_actions = 0;
    for (size_t i = 0; fits && i < n; i++)
        fits = add_action(tree, runs[i].action, REACH - n + 1);
    return fits;
}

static size_t return_of(const struct tree *tree, uint32_t action)
{
    size_t i = 0;

    while (tree->actions[i] != action)
        i++;
    return tree->returns_at + i;
}

static void put_tests(struct program *program, const struct tree *tree, const struct run *runs,
                      size_t n)
{
    const size_t half = n / 2, next = program->n + 1;
    const size_t below = half == 1 ? return_of(tree, runs->action) : next;
    const size_t above = n - half == 1 ? return_of(tree, runs[half].action) : next + half - 1;

    put(program, JUMP(BPF_JGE, runs[half].call, (uint8_t)(above - next), (uint8_t)(below - next)));
    if (half > 1)
        put_tests(program, tree, runs, half);
    if (n - half > 1)
        put_tests(program, tree, runs + half, n - half);
}

/* Divides a list that is too large for one tree. */
static void put_trees(struct program *program, const struct run *runs, size_t n)
{
    const size_t half = n / 2, test = program->n;
    struct tree tree;

    if (!plan_tree(&tree, runs, n)) {
        put(program, JUMP(BPF_JGE, runs[half].call, 0, 1));
        put(program, SKIP(0));
        put_trees(program, runs, half);
        program->code[test + 1] = SKIP(program->n - test - 2);
        put_trees(program, runs + half, n - half);
        return;
    }
    tree.returns_at = program->n + n - 1;
    if (n > 1)
        put_tests(program, &tree, runs, n);
    for (size_t i = 0; i < tree.n_actions; i++)
        put(program, RETURN(tree.actions[i]));
}

int filter_program(const uint32_t *actions, struct sandbox_filter *ret)
{
    _cleanup_free_ struct program *program = calloc(1, sizeof(*program));
    size_t size;

    if (!program)
        return -ENOMEM;
    check_architecture(program);
    put_trees(program, program->runs, find_runs(actions, program->runs));
    size = program->n * sizeof(program->code[0]);
    *ret = (struct sandbox_filter){.code = malloc(size), .size = size};
    if (!ret->code)
        return -ENOMEM;
    memcpy(ret->code, program->code, size);
    return 0;
}
