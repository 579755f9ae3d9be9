/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"
#include "worker/worker/private-tmp.h"
#include <sched.h>
#include <sys/mount.h>

#define DEPTH 300

/* In a mount namespace of this process; returns false if that is not permitted. */
static bool mount_tmp(const char *source)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(source, "/tmp", "tmpfs", 0, "mode=1777") == 0;
}

/* As the supervisor does. */
static bool mount_both(void)
{
    return mount_tmp("troupe") && mkdir("/tmp/0", 0700) == 0 && mkdir("/tmp/1", 0700) == 0 &&
           mount("/tmp/1", "/var/tmp", NULL, MS_BIND, NULL) == 0 &&
           mount("/tmp/0", "/tmp", NULL, MS_BIND, NULL) == 0;
}

static void make_file(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
}

/* A chain of directories that cannot be entered, deeper than a path or the stack should be. */
static void make_deep_tree(void)
{
    ck_assert_int_eq(chdir("/tmp"), 0);
    for (int i = 0; i < DEPTH; i++) {
        make_file("file");
        ck_assert_int_eq(symlink("/etc/passwd", "link"), 0);
        ck_assert_int_eq(mkdir("a-directory-with-a-long-name", 0700), 0);
        ck_assert_int_eq(chdir("a-directory-with-a-long-name"), 0);
    }
    for (int i = 0; i < DEPTH; i++) {
        ck_assert_int_eq(chmod(".", 0), 0);
        ck_assert_int_eq(chdir(".."), 0);
    }
}

TEST(a_directory_that_the_supervisor_has_not_mounted_is_never_emptied)
{
    struct private_tmp tmp = PRIVATE_TMP_NULL;

    ck_assert_int_eq(private_tmp_open(&tmp), 0);
    ck_assert_uint_eq(tmp.n_fds, 0);
    if (!mount_tmp("tmpfs"))
        return;
    ck_assert_int_eq(private_tmp_open(&tmp), 0);
    ck_assert_uint_eq(tmp.n_fds, 0);
}

TEST(a_private_directory_is_emptied_whatever_is_in_it)
{
    struct private_tmp tmp = PRIVATE_TMP_NULL;

    if (!mount_tmp("troupe"))
        return;
    ck_assert_int_eq(private_tmp_open(&tmp), 0);
    ck_assert_uint_eq(tmp.n_fds, 1);
    ck_assert_int_eq(private_tmp_empty(&tmp), 0);
    make_deep_tree();
    make_file("/tmp/troupe-0"); /* the name to which the first directory would be moved */
    tmp.used = true;
    ck_assert_int_eq(private_tmp_empty(&tmp), 0);
    ck_assert_int_eq(rmdir("/tmp"), -1);
    ck_assert_int_eq(errno, EBUSY); /* a mount; its emptiness: */
    ck_assert_int_eq(system("test -z \"$(ls -A /tmp)\""), 0);
    ck_assert(!tmp.used);
    private_tmp_deinit(&tmp);
}

TEST(what_is_left_in_either_of_two_directories_goes)
{
    static const char *const paths[] = {"/tmp/file", "/var/tmp/file"};
    struct private_tmp tmp = PRIVATE_TMP_NULL;

    if (!mount_both())
        return;
    ck_assert_int_eq(private_tmp_open(&tmp), 0);
    ck_assert_uint_eq(tmp.n_fds, 2);
    ck_assert_int_eq(private_tmp_empty(&tmp), 0);
    for (size_t i = 0; i < 2; i++) {
        make_file(paths[i]);
        tmp.used = true;
        ck_assert_int_eq(private_tmp_empty(&tmp), 0);
        ck_assert_int_eq(access(paths[i], F_OK), -1);
    }
    private_tmp_deinit(&tmp);
}

/* Of older supervisors. */
TEST(files_are_not_counted_in_a_file_system_of_another_layout)
{
    struct private_tmp tmp = PRIVATE_TMP_NULL;

    if (!mount_tmp("troupe"))
        return;
    make_file("/tmp/a");
    make_file("/tmp/b");
    ck_assert_int_eq(private_tmp_open(&tmp), 0);
    ck_assert_int_eq(private_tmp_empty(&tmp), 0);
    ck_assert_int_eq(access("/tmp/a", F_OK), -1);
    ck_assert_int_eq(access("/tmp/b", F_OK), -1);
    private_tmp_deinit(&tmp);
}

static void mount_file_at(const char *place, const char *file)
{
    ck_assert_int_eq(mkdir(place, 0700), 0);
    ck_assert_int_eq(mount("other", place, "tmpfs", 0, NULL), 0);
    make_file(file);
}

TEST(what_is_mounted_below_stays)
{
    struct private_tmp tmp = PRIVATE_TMP_NULL;

    if (!mount_tmp("troupe"))
        return;
    ck_assert_int_eq(mkdir("/tmp/a", 0700), 0);
    mount_file_at("/tmp/place", "/tmp/place/file");
    mount_file_at("/tmp/a/place", "/tmp/a/place/file");
    make_file("/tmp/a/file");
    ck_assert_int_eq(private_tmp_open(&tmp), 0);
    ck_assert_int_eq(private_tmp_empty(&tmp), 0);
    ck_assert_int_eq(access("/tmp/place/file", F_OK), 0);
    ck_assert_int_eq(access("/tmp/a/place/file", F_OK), 0);
    ck_assert_int_eq(access("/tmp/a/file", F_OK), -1);
    private_tmp_deinit(&tmp);
}
