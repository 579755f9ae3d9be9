/* SPDX-License-Identifier: MIT */
#include "shared/base/closer.h"
#include "shared/base/scm.h"
#include "supervisor/keeper/roots.h"
#include "tests/unit/suite.h"

static struct roots roots;

static const struct sandbox_files FILES = {
    .private_root = true,
    .n_paths = 1,
    .paths = {{SANDBOX_VISIBLE, false, "/usr"}},
};

static bool set_up(void)
{
    ck_assert_int_eq(closer_start(), 0);
    roots_init(&roots);
    if (roots.offers[0] < 0)
        printf("skipped: no mount namespaces\n");
    return roots.offers[0] >= 0;
}

static struct sandbox_root found(const struct sandbox_files *files)
{
    struct sandbox_root root;
    roots_find(&roots, files, &root);
    for (size_t i = 0; i < _SANDBOX_ROOT_N_FDS; i++)
        root.fds[i] = root.fds[i] < 0 ? -1 : (close_fd(root.fds[i]), 1);
    return root;
}

/* As sandbox_root_offer() does. */
static void offer(const struct sandbox_root *root, const char *seen, size_t n_fds)
{
    _cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[_SANDBOX_ROOT_N_FDS] = {fd, fd};
    union scm_control control;
    struct iovec parts[] = {{(void *)(uintptr_t)&root->id, sizeof(root->id)},
                            {(void *)(uintptr_t)seen, strlen(seen)}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    scm_attach(&message, &control, fds, n_fds);
    ck_assert_int_gt(sendmsg(root->offers, &message, 0), 0);
}

START_TEST(a_root_is_found_by_the_files_for_which_it_was_offered)
{
    struct sandbox_files others = FILES;
    others.paths[0].kind = SANDBOX_INACCESSIBLE;
    if (!set_up())
        return;
    struct sandbox_root root = found(&FILES);
    ck_assert_int_eq(root.fds[SANDBOX_ROOT_NAMESPACE], -1);
    offer(&root, "one", _SANDBOX_ROOT_N_FDS);
    offer(&root, "two", _SANDBOX_ROOT_N_FDS);
    root = found(&FILES);
    ck_assert_int_eq(root.fds[SANDBOX_ROOT_NAMESPACE], 1);
    ck_assert_int_eq(root.fds[SANDBOX_ROOT_TOP], 1);
    ck_assert(sandbox_root_matches(&root, "two", 3));
    ck_assert(!sandbox_root_matches(&root, "one", 3));
    ck_assert(!sandbox_root_matches(&root, "two ", 4));
    ck_assert_int_eq(found(&others).fds[SANDBOX_ROOT_NAMESPACE], -1);
}
END_TEST

START_TEST(what_was_begun_before_the_mounts_changed_is_not_kept)
{
    if (!set_up())
        return;
    struct sandbox_root before = found(&FILES);
    offer(&before, "old", _SANDBOX_ROOT_N_FDS);
    ck_assert_int_eq(found(&FILES).fds[SANDBOX_ROOT_NAMESPACE], 1);
    roots_drop_all(&roots);
    ck_assert_int_eq(found(&FILES).fds[SANDBOX_ROOT_NAMESPACE], -1);
    offer(&before, "old", _SANDBOX_ROOT_N_FDS);
    ck_assert_int_eq(found(&FILES).fds[SANDBOX_ROOT_NAMESPACE], -1);
}
END_TEST

START_TEST(an_offer_without_its_descriptors_is_not_kept)
{
    if (!set_up())
        return;
    struct sandbox_root root = found(&FILES);
    offer(&root, "half", 1);
    ck_assert_int_eq(found(&FILES).fds[SANDBOX_ROOT_NAMESPACE], -1);
}
END_TEST

START_TEST(the_oldest_of_too_many_is_replaced)
{
    struct sandbox_files files = FILES;
    char path[16];
    if (!set_up())
        return;
    for (int i = 0; i <= ROOTS_MAX; i++) {
        (void)snprintf(path, sizeof(path), "/%d", i);
        files.paths[0].path = path;
        struct sandbox_root root = found(&files);
        offer(&root, "x", _SANDBOX_ROOT_N_FDS);
        ck_assert_int_eq(found(&files).fds[SANDBOX_ROOT_NAMESPACE], 1);
    }
    files.paths[0].path = "/1";
    ck_assert_int_eq(found(&files).fds[SANDBOX_ROOT_NAMESPACE], 1);
    files.paths[0].path = "/0";
    ck_assert_int_eq(found(&files).fds[SANDBOX_ROOT_NAMESPACE], -1);
}
END_TEST

/* Not all changes are seen that make it obsolete. */
START_TEST(a_root_is_dropped_after_a_while_though_it_is_used)
{
    const usec_t begin = clock_now();
    if (!set_up())
        return;
    ck_assert(roots.due == USEC_INFINITY);
    struct sandbox_root root = found(&FILES);
    offer(&root, "x", _SANDBOX_ROOT_N_FDS);
    roots_take_offers(&roots);
    const usec_t due = roots.due;
    ck_assert_uint_ge(due, begin + ROOTS_KEPT_USEC);
    ck_assert_uint_le(due, clock_now() + ROOTS_KEPT_USEC);
    ck_assert_int_eq(found(&FILES).fds[SANDBOX_ROOT_NAMESPACE], 1);
    roots_drop_old(&roots, due - 1);
    ck_assert_int_eq(found(&FILES).fds[SANDBOX_ROOT_NAMESPACE], 1);
    roots_drop_old(&roots, due);
    ck_assert(roots.due == USEC_INFINITY);
    ck_assert_int_eq(found(&FILES).fds[SANDBOX_ROOT_NAMESPACE], -1);
}
END_TEST

START_TEST(without_a_root_changes_of_the_mounts_wake_nobody)
{
    if (!set_up())
        return;
    ck_assert_int_eq(roots_wait_mounts(&roots).fd, -1);
    struct sandbox_root root = found(&FILES);
    offer(&root, "x", _SANDBOX_ROOT_N_FDS);
    roots_take_offers(&roots);
    ck_assert_int_ge(roots_wait_mounts(&roots).fd, 0);
    roots_drop_old(&roots, roots.due);
    ck_assert_int_eq(roots_wait_mounts(&roots).fd, -1);
}
END_TEST

const struct suite suite = {.name = "roots"};
