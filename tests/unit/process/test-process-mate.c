/* SPDX-License-Identifier: MIT */

/* A worker and its template in one cgroup, which is a plain directory here. */

#include "supervisor/process/process.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <sys/syscall.h>

#define N_LEFT 300 /* more than are killed one by one */

static char root[64];
static struct process worker, template;
static struct process_context context;
static struct cgroup_tree tree = CGROUP_TREE_NULL;
static unsigned n_failed;
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
    template.cgroup.fd = -1;
    worker.pidfd = template.pidfd = -1;
    worker.report_fd = template.report_fd = -1;
    worker.calls.fd = template.calls.fd = -1;
    context.loop = new_loop();
    ck_assert_int_eq(process_context_init(&context, context.loop, -1), 0);
    context.cgroups = &tree;
    worker.context = template.context = &context;
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
    (void)snprintf(path, sizeof(path), "%s/memory.events", root);
    (void)unlink(path);
    (void)rmdir(root);
    close_fd(worker.cgroup.fd);
    close_fd(template.cgroup.fd);
    close_fd(template.pidfd);
    process_context_deinit(&context);
    loop_free(context.loop);
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

static void put_kills(unsigned n)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/memory.events", root);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "oom %u\noom_kill %u\n", n, n);
    (void)fclose(file);
}

TEST(a_process_that_was_killed_for_memory_does_not_count_for_the_other)
{
    put_kills(3);
    template.cgroup.fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    oom_begin(&worker.cgroup);
    oom_begin(&template.cgroup);
    put_kills(4);
    ck_assert(process_take_oom_kill(&template));
    ck_assert(!process_take_oom_kill(&worker));
    put_kills(6); /* the worker and a command of it */
    ck_assert(process_take_oom_kill(&worker));
    ck_assert(!process_take_oom_kill(&template));
}

/* Both may be killed before the end of one is seen. */
TEST(both_may_be_killed_for_memory)
{
    put_kills(0);
    template.cgroup.fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    oom_begin(&worker.cgroup);
    oom_begin(&template.cgroup);
    put_kills(2);
    ck_assert(process_take_oom_kill(&template));
    ck_assert(process_take_oom_kill(&worker));
}

/* The worker listens for both. */
TEST(a_forbidden_call_of_the_template_is_not_the_workers)
{
    const struct forbidden_call call = {.pid = warm, .text = "system call ptrace"};
    int fds[2], status;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    template.pid = warm;
    template.pidfd = (int)syscall(SYS_pidfd_open, warm, 0);
    worker.pid = left;
    process_listen(&worker, fds[0]);
    worker.calls.forbidden(&worker.calls, &call, true);
    ck_assert_int_eq(waitpid(warm, &status, 0), warm);
    ck_assert_ptr_nonnull(process_forbidden_call(&template, warm));
    ck_assert_ptr_null(process_forbidden_call(&worker, left));
    ck_assert_int_eq(worker.early_signal, 0);
    call_listener_deinit(&worker.calls);
    close_fd(fds[1]);
}

static void on_failed(struct process *process, const struct spawn_report *report)
{
    ck_assert_ptr_eq(process, &worker);
    ck_assert_int_eq(report->error, -ECHILD);
    n_failed++;
}

/* Another process may have its pid. */
TEST(a_forked_process_that_has_ended_before_it_was_taken_is_not_the_worker)
{
    static const struct process_handler handler = {.failed = on_failed};
    const struct process_subject subject = {.group = "warm", .worker = "warm/0", .key = ""};
    int fds[2];

    worker.cgroup.fd = close_fd(worker.cgroup.fd);
    process_init(&worker, &context, &subject, NULL);
    worker.mate = &template;
    process_begin(&worker, &handler);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    worker.report_fd = fds[0];
    worker.forking = true;
    close_fd(fds[1]);
    worker.client.handler->spawned(&worker.client, left, (int)syscall(SYS_pidfd_open, left, 0), 0);
    ck_assert_uint_eq(n_failed, 1);
    ck_assert_int_eq(worker.pid, 0);
    ck_assert_int_eq(worker.pidfd, -1);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
