/* SPDX-License-Identifier: MIT */

/*
 * Loading a configuration while the Nth allocation fails, for every N: the answer is -ENOMEM, and
 * nothing is left behind. The allocator is replaced for this, which a sanitizer does itself:
 * skipped there.
 */

#include "supervisor/config/syntax/strings.h"
#include "tests/unit/config-directory.h"
#include "tests/unit/suite.h"
#include <malloc.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#ifdef SANITIZED

int main(void)
{
    puts("skipped: the allocator is the sanitizer's");
    return 77;
}

#else

/* The C library's own names for what is replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void __libc_free(void *pointer);

static bool counting;
static unsigned n_calls, failing_call; /* 0 = none */
static long n_live;

static bool fails(void)
{
    if (!counting || ++n_calls != failing_call)
        return false;
    errno = ENOMEM;
    return true;
}

static void *born(void *pointer)
{
    n_live += counting && pointer;
    return pointer;
}

void *malloc(size_t size)
{
    return fails() ? NULL : born(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : born(__libc_calloc(n, size));
}

void *realloc(void *pointer, size_t size)
{
    /* Shrinking never fails: asprintf(3) does it, and rightly does not mind if it cannot. */
    if (malloc_usable_size(pointer) < size && fails())
        return NULL;
    void *moved = __libc_realloc(pointer, size);
    if (!pointer)
        born(moved);
    return moved;
}

void free(void *pointer)
{
    n_live -= counting && pointer;
    __libc_free(pointer);
}

/* Runs `fn` with every single allocation failing once; it returns 0 or a positive result when none
 * does. */
static unsigned fail_each(int (*fn)(void))
{
    int r = -ENOMEM;

    for (failing_call = 1; r == -ENOMEM; failing_call++) {
        n_calls = 0;
        n_live = 0;
        counting = true;
        r = fn();
        counting = false;
        ck_assert_msg(r == -ENOMEM || n_calls < failing_call, "call %u: %d", failing_call, r);
        ck_assert_msg(n_live == 0, "call %u leaves %ld allocations", failing_call, n_live);
    }
    ck_assert_int_ge(r, 0);
    return failing_call;
}

static int load_once(void)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;
    int r = config_load(&config, ".", &problems);
    char **argv = NULL;

    if (r == 0)
        r = config_expand_argv(config->groups[0], 1, &argv);
    strv_free(argv);
    config_free(config);
    config_problems_deinit(&problems);
    return r;
}

static int verify_once(void)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    int r = config_verify_file("a.group", &problems);

    config_problems_deinit(&problems);
    return r;
}

TEST(every_failed_allocation_of_a_good_load_is_told)
{
    char more[512];

    write_file("variables", "A=1\nB=2\n");
    snprintf(more, sizeof(more),
             "ExecStart=true %%n-%%i\nDescription=x\nEnvironment=A=1 B=2\nAfter=b\n"
             "EnvironmentFile=%s/variables\n[Pool]\nSize=2\n",
             config_test_directory);
    write_group("a", more);
    write_group("b", "");
    write_file("troupe.conf", "[Supervisor]\nClientsMax=4\n");
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/x.conf", "[Group]\nEnvironment=C=3\n");
    ck_assert_uint_gt(fail_each(load_once), 30);
}

TEST(every_failed_allocation_among_problems_is_told)
{
    write_group("a", "Type=x\nUnknown=1\nAfter=nobody\n[Poool]\nnonsense\n");
    write_file("-.group", "");
    ck_assert_uint_gt(fail_each(load_once), 20);
    ck_assert_uint_gt(fail_each(verify_once), 10);
}

const struct suite suite = {.setup = config_test_enter, .teardown = config_test_leave};

#endif
