/* SPDX-License-Identifier: MIT */

/* A worker and its template in one cgroup, which is a plain directory here. */

#include "supervisor/process/process.h"
#include "tests/unit/suite.h"
#include <sys/syscall.h>

#define N_LEFT 300 /* more than are killed one by one */

static char root[64];
static struct process worker, template;
static pid_t left, warm;

static pid_t start(void)
{
    const pid_t pid = fork();

    if (pid == 0)
        for (;;)
            (void)pause();
    ck_assert_int_gt(pid, 0);
    return pid;
}

static void put(const char *name)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < N_LEFT; i++)
        (void)fprintf(file, "%d\n", (int)left);
    (void)fclose(file);
}

static void setup(void)
{
    strcpy(root, "/tmp/test-mate-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    left = start();
    warm = start();
    put("cgroup.procs");
    worker.cgroup.fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    worker.pidfd = template.pidfd = -1;
    worker.mate = &template;
    template.mate = &worker;
    template.is_template = true;
    template.client.id = 1;
}

static void teardown(void)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", root);
    (void)unlink(path);
    (void)rmdir(root);
    close_fd(worker.cgroup.fd);
    close_fd(template.pidfd);
    (void)kill(left, SIGKILL);
    (void)kill(warm, SIGKILL);
}

/* Nothing can be started beside it any more, so it must not stay. */
TEST(a_template_dies_with_what_a_worker_has_left_even_if_the_cgroup_cannot_be_killed)
{
    int status;

    template.pid = warm;
    template.pidfd = (int)syscall(SYS_pidfd_open, warm, 0);
    process_kill_cgroup(&worker);
    ck_assert(template.cgroup_killed);
    ck_assert_int_eq(waitpid(warm, &status, 0), warm);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(a_template_that_is_only_being_started_dies_too)
{
    process_kill_cgroup(&worker);
    ck_assert(template.cgroup_killed);
    ck_assert_int_eq(template.early_signal, SIGKILL);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
