/* SPDX-License-Identifier: MIT */

/* Whose limit it was, in plain directories with the files of cgroups: a slice, the delegated cgroup
 * in it, and the cgroup of a worker. */

#include "supervisor/process/cgroup-oom.h"
#include "supervisor/process/cgroup.h"
#include "tests/unit/suite.h"
#include <ftw.h>
#include <sys/xattr.h>

#define SLICE   "work.slice/"
#define SERVICE SLICE "trouped.service/"
#define WORKER  SERVICE "web:0/"

static char root[64];
static struct cgroup_tree tree = CGROUP_TREE_NULL;
static struct cgroup cgroup = CGROUP_NULL;
static struct oom oom;

static const char *path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void put(const char *name, const char *text)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close_fd(fd);
}

static void put_events(const char *name, unsigned n_over, unsigned n_kills)
{
    char text[128];

    (void)snprintf(text, sizeof(text),
                   "low 0\nhigh 0\nmax 9\noom %u\noom_kill %u\noom_group_kill 0\n", n_over,
                   n_kills);
    put(name, text);
}

static void set_up(void)
{
    strcpy(root, "/tmp/test-cgroup-oom-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(mkdir(path_of(SLICE), 0755), 0);
    ck_assert_int_eq(mkdir(path_of(SERVICE), 0755), 0);
    ck_assert_int_eq(mkdir(path_of(WORKER), 0755), 0);
    put_events(SLICE "memory.events.local", 5, 0);
    put_events(SERVICE "memory.events.local", 7, 0);
    put_events(WORKER "memory.events", 3, 3);
    put(SLICE "memory.max", "max\n");
    put(SERVICE "memory.max", "1073741824\n");
    put(WORKER "memory.max", "67108864\n");
    put(WORKER "memory.peak", "66060288\n");
    tree.path = strdup(path_of(SLICE "trouped.service"));
    tree.fd = open(tree.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cgroup.fd = open(path_of(WORKER), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(cgroup.fd, 0);
    oom_begin(&cgroup);
    oom_begin_above(&tree);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void tear_down(void)
{
    cgroup.fd = close_fd(cgroup.fd);
    tree.fd = close_fd(tree.fd);
    free(TAKE_PTR(tree.path));
    (void)nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static bool take(usec_t now)
{
    return oom_take(&cgroup, &tree, now, &oom);
}

static const char *description(void)
{
    static char text[160];

    oom_describe(&oom, text, sizeof(text));
    return text;
}

TEST(I4_the_worker_was_over_its_own_limit)
{
    ck_assert(!take(USEC_PER_SEC)); /* those of a life before */
    put_events(WORKER "memory.events", 4, 4);
    put(WORKER "memory.pressure", "some avg10=80.00 avg60=1.00 avg300=0.00 total=1\n"
                                  "full avg10=62.50 avg60=1.00 avg300=0.00 total=1\n");
    ck_assert(take(USEC_PER_SEC));
    ck_assert_int_eq(oom.limit, OOM_OF_WORKER);
    ck_assert_str_eq(description(), "its own limit (MemoryMax=64M), peak 63M, waiting for memory "
                                    "62 % of the time");
    ck_assert(!take(USEC_PER_SEC)); /* told once */
}

TEST(I4_the_service_was_over_its_limit)
{
    put_events(WORKER "memory.events", 3, 4);
    put_events(SERVICE "memory.events.local", 8, 0);
    ck_assert(take(USEC_PER_SEC));
    ck_assert_int_eq(oom.limit, OOM_OF_ABOVE);
    ck_assert_str_eq(description(), "the limit of trouped.service (MemoryMax=1024M), peak 63M");
}

TEST(I4_the_slice_was_over_its_limit)
{
    put_events(WORKER "memory.events", 3, 4);
    put_events(SLICE "memory.events.local", 6, 0);
    ck_assert(take(USEC_PER_SEC));
    ck_assert_str_eq(description(), "the limit of work.slice, peak 63M");
}

TEST(I4_workers_that_one_event_kills_have_the_same_cause)
{
    put_events(WORKER "memory.events", 3, 4);
    put_events(SERVICE "memory.events.local", 8, 0);
    ck_assert(take(5 * USEC_PER_SEC));
    put_events(WORKER "memory.events", 3, 5);
    ck_assert(take(5 * USEC_PER_SEC + 1));
    ck_assert_int_eq(oom.limit, OOM_OF_ABOVE);
    put_events(WORKER "memory.events", 3, 6);
    ck_assert(take(60 * USEC_PER_SEC));
    ck_assert_int_eq(oom.limit, OOM_OF_MACHINE);
}

TEST(I4_the_machine_had_no_more)
{
    put_events(WORKER "memory.events", 3, 4);
    ck_assert_int_eq(unlink(path_of(WORKER "memory.peak")), 0); /* Linux before 5.19 */
    ck_assert(take(USEC_PER_SEC));
    ck_assert_str_eq(description(), "the machine has no more");
}

TEST(I4_systemd_oomd_has_killed)
{
    if (setxattr(path_of(WORKER), "user.oomd_kill", "2", 1, 0) < 0) {
        ck_assert_int_eq(errno, ENOTSUP);
        printf("skipped: /tmp has no extended attributes\n");
        return;
    }
    ck_assert(take(USEC_PER_SEC));
    ck_assert_str_eq(description(), "systemd-oomd chose it, peak 63M");
    ck_assert(!take(USEC_PER_SEC));
}

TEST(without_the_files_nothing_is_known)
{
    ck_assert_int_eq(unlink(path_of(WORKER "memory.events")), 0);
    ck_assert(!take(USEC_PER_SEC));
    cgroup.fd = close_fd(cgroup.fd);
    ck_assert(!take(USEC_PER_SEC));
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
