/* SPDX-License-Identifier: MIT */
#include "supervisor/process/cgroup.h"
#include "supervisor/process/pressure.h"
#include "tests/unit/suite.h"

static char root[] = "/tmp/troupe-pressure-XXXXXX";
static struct loop *loop;
static struct pressure_watch watch;
static unsigned n_risen;

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(loop_new(&loop, &(struct loop_options){0}, &(const char *){NULL}), 0);
}

static void teardown(void)
{
    pressure_unwatch(&watch);
    loop_free(loop);
    (void)remove(root);
}

static void on_risen(struct pressure_watch *risen)
{
    ck_assert_ptr_eq(risen, &watch);
    n_risen++;
    pressure_unwatch(risen);
    loop_stop(loop);
}

TEST(E2_a_threshold_is_set_and_an_event_is_told)
{
    char trigger[64] = "";
    int ends[2];

    /* Urgent data raises POLLPRI, as the kernel does for a trigger. */
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    if (send(ends[1], "", 1, MSG_OOB) < 0)
        return; /* not in this kernel */
    ck_assert_int_eq(
        pressure_watch(&watch, loop, PRESSURE_CPU, ends[0], 150 * USEC_PER_MSEC, on_risen), 0);
    ck_assert_int_gt(read(ends[1], trigger, sizeof(trigger)), 0);
    ck_assert_str_eq(trigger, "some 150000 2000000");
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_risen, 1);
    close_fd(ends[1]);
}

TEST(E2_the_pressure_of_the_cgroup_is_read)
{
    static const char text[] = "some avg10=18.04 avg60=1.00 avg300=0.00 total=10\n";
    const struct cgroup_tree tree = {.fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    int fd = openat(tree.fd, "io.pressure", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_eq(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close_fd(fd);
    watch = (struct pressure_watch){.loop = loop, .fd = pressure_open(&tree, PRESSURE_IO)};
    ck_assert_int_ge(watch.fd, 0);
    ck_assert_uint_eq(pressure_read(&watch), 180400);
    ck_assert_int_eq(pressure_open(&tree, PRESSURE_MEMORY), -ENOENT);
    ck_assert_int_eq(unlinkat(tree.fd, "io.pressure", 0), 0);
    close_fd(tree.fd);
}

TEST(E2_a_file_that_takes_no_threshold_is_refused)
{
    int fd = open("/dev/full", O_RDWR | O_CLOEXEC);

    ck_assert_int_eq(pressure_watch(&watch, loop, PRESSURE_CPU, fd, USEC_PER_SEC, on_risen),
                     -ENOSPC);
    ck_assert_int_eq(watch.fd, -1);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
