/* SPDX-License-Identifier: MIT */
#include "tests/world/machine.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/scm.h"
#include "shared/protocol/payload-wire.h"
#include "supervisor/keeper/keeper-private.h"
#include "supervisor/supervisor.h"
#include "tests/world/disk.h"
#include "tests/world/model.h"
#include "tests/world/programs.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only the linker knows their names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Above any real pid: nothing in /proc has it. */
#define FIRST_PID 10000000
#define N_TASKS   256
/* Until the keeper has started another supervisor. */
#define RESTART_MAX (200 * USEC_PER_MSEC)
/* How long a supervisor's beginning is. */
#define STRAIN (100 * USEC_PER_MSEC)
/* Until the service manager starts another keeper. */
#define BOOTS_MAX (2 * USEC_PER_SEC)

/* A child of the keeper: a supervisor, a worker, or a check of a command. */
struct task {
    pid_t pid;   /* 0 = free */
    int pidfd;   /* the keeper's: one end of a pair, of which only the process has the other */
    ino_t inode; /* of it */
    int channel; /* a supervisor's; 0 = it is none */
    struct program_start start; /* of others */
    struct sim_process *process;
    bool ended;
    struct spawn_exit how;
};

static struct {
    const char *directory, *socket_path;
    struct sim_process *keeper;
    struct task tasks[N_TASKS];
    pid_t last_pid;
    int signals[2]; /* what signalfd(2) returns, and its other end */
    bool loses_power;
    usec_t ready_since; /* 0 = it is not */
    usec_t ready_time;  /* of the former ones */
} machine;

#define for_each_task(task)                                                                        \
    for (struct task *task = machine.tasks; task < machine.tasks + N_TASKS; task++)                \
        if (task->pid != 0)

/* ---- the table of processes ---- */

static struct task *find_task(pid_t pid)
{
    for_each_task(task) if (task->pid == pid) return task;
    return NULL;
}

static struct task *new_task(void)
{
    for (size_t i = 0; i < N_TASKS; i++)
        if (machine.tasks[i].pid == 0)
            return &machine.tasks[i];
    return NULL;
}

static void on_task_end(struct sim_process *process)
{
    const struct signalfd_siginfo info = {.ssi_signo = SIGCHLD};
    struct task *task = process->argument;

    sim_trace("%s ends: %s %d", process->name, process->signalled ? "signal" : "status",
              process->code);
    task->ended = true;
    task->how = (struct spawn_exit){.signalled = process->signalled, .code = process->code};
    if (task->pid == keeper.supervisor && machine.ready_since > 0) {
        machine.ready_time += sim_now() - machine.ready_since;
        machine.ready_since = 0;
    }
    if (task->channel != 0)
        model_supervisor_ends(process->signalled || process->code != KEEPER_EXIT_UPGRADE);
    (void)!write(machine.signals[1], &info, sizeof(info));
}

/* Starts what `task` describes. */
static void start_task(struct task *task, const char *name, sim_fn run)
{
    struct stat stat;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || fstat(pair[0], &stat) < 0)
        abort();
    task->pid = ++machine.last_pid;
    task->pidfd = pair[0];
    task->inode = stat.st_ino;
    (void)dup3(pair[1], SIM_LIFE, O_CLOEXEC);
    close_fd(pair[1]);
    task->process = sim_start(name, run, task, on_task_end);
    close_fd(SIM_LIFE);
    sim_trace("starts %s as %d", name, (int)task->pid - FIRST_PID);
}

static void run_program(void *task)
{
    program_main(&((struct task *)task)->start);
}

int __wrap_spawn(const struct spawn_options *options, struct spawn_result *ret)
{
    struct task *task = new_task();
    int r = task ? options->complete() : -EAGAIN;

    if (r < 0)
        return r;
    program_prepare(&task->start, options);
    start_task(task, task->start.name, run_program);
    *ret = (struct spawn_result){.pid = task->pid, .pidfd = machine_open_pidfd(task->pid)};
    return 0;
}

pid_t __wrap_spawn_find_ended(struct spawn_exit *ret)
{
    pid_t none = -ECHILD;

    for_each_task(task)
    {
        none = 0;
        *ret = task->how;
        if (task->ended)
            return task->pid;
    }
    return none;
}

int __wrap_spawn_reap(pid_t pid, struct spawn_exit *ret)
{
    struct task *task = find_task(pid);

    *ret = task->how;
    close_fd(task->pidfd);
    *task = (struct task){0};
    return 0;
}

/* ---- templates ---- */

void machine_fork(struct program_start *start)
{
    struct task *task = new_task();
    const int life = fcntl(SIM_LIFE, F_DUPFD_CLOEXEC, 0);
    uint8_t number;

    if (!task)
        abort();
    number = start->task = (uint8_t)(task - machine.tasks);
    task->start = *start;
    start_task(task, start->name, run_program);
    (void)dup3(life, SIM_LIFE, O_CLOEXEC);
    close_fd(life);
    (void)scm_send(SIM_FORKS, (struct iovec){&number, 1}, &task->pidfd, 1, 0);
    close_fd(task->pidfd);
    task->pidfd = -1;
}

bool __wrap_spawn_is_child(pid_t pid)
{
    union scm_control control;
    struct msghdr message;
    struct iovec data;
    uint8_t number;
    int fd = -1;

    for (;;) {
        data = (struct iovec){&number, 1};
        message = (struct msghdr){.msg_iov = &data,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof(control)};
        if (recvmsg(SIM_FORKS + 1, &message, MSG_DONTWAIT) <= 0)
            break;
        if (scm_take(&message, &fd, 1, payload_drop_fd) == 1 && machine.tasks[number].pidfd < 0)
            machine.tasks[number].pidfd = fd;
        else
            close_fd(fd);
    }
    return find_task(pid) && find_task(pid)->pidfd >= 0;
}

void machine_name_sender(struct msghdr *message)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    struct ucred sender;

    if (!header || header->cmsg_type != SCM_CREDENTIALS)
        return;
    memcpy(&sender, CMSG_DATA(header), sizeof(sender));
    sender.pid = machine.tasks[*(const uint8_t *)message->msg_iov->iov_base].pid;
    memcpy(CMSG_DATA(header), &sender, sizeof(sender));
}

int machine_open_pidfd(pid_t pid)
{
    const struct task *task = sim_self == machine.keeper ? find_task(pid) : NULL;

    return task ? fcntl(task->pidfd, F_DUPFD_CLOEXEC, 0) : -1;
}

/* ---- supervisors ---- */

static void run_supervisor(void *argument)
{
    const struct task *task = argument;
    const struct supervisor_options options = {
        .config_directory = machine.directory,
        .socket_path = machine.socket_path,
        .loop = LOOP_EPOLL,
        .log_level_given = true,
        .log_level = LOG_LEVEL_INFO,
        .channel = 3,
        .notify_fd = -ENOENT,
        .unconfined = true,
        .program = "/bin/true",
    };
    struct supervisor *supervisor;
    int r;

    program_keep_fds(&(struct spawn_fd){.fd = task->channel, .number = 3}, 1);
    r = supervisor_new(&supervisor, &options);
    if (r < 0)
        sim_exit(1);
    r = supervisor_run(supervisor);
    if (r == SUPERVISOR_E_UPGRADE)
        sim_exit(KEEPER_EXIT_UPGRADE);
    supervisor_free(supervisor);
    sim_exit(r < 0);
}

pid_t __wrap_supervisor_process_start(const struct program *program, int notify_fd,
                                      int *ret_channel)
{
    struct task *task = new_task();
    int fds[2];

    (void)program, (void)notify_fd;
    if (!task || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    *task = (struct task){.channel = fds[1]};
    start_task(task, "supervisor", run_supervisor);
    sim_strained_until = sim_now() + STRAIN;
    close_fd(fds[1]);
    *ret_channel = fds[0];
    return task->pid;
}

void __real_keeper_supervisor_ready(void);

void __wrap_keeper_supervisor_ready(void)
{
    const struct task *task = find_task(keeper.supervisor);

    sim_trace("the supervisor is ready");
    if (task && !task->ended && machine.ready_since == 0)
        machine.ready_since = sim_now();
    __real_keeper_supervisor_ready();
}

struct sim_process *machine_supervisor(void)
{
    const struct task *task = find_task(keeper.supervisor);

    return task && !task->ended ? task->process : NULL;
}

usec_t machine_ready_time(void)
{
    return machine.ready_time + (machine.ready_since > 0 ? sim_now() - machine.ready_since : 0);
}

/* ---- the keeper ---- */

static void kill_all(void)
{
    for_each_task(task) sim_kill(task->process, SIGKILL);
}

/* Orphans end by themselves: what a template has forked ends with the gate unless it is taken. */
void __wrap_keeper_expect_orphans(void)
{
    if (keeper.ending)
        kill_all();
}

size_t __wrap_supervisor_process_init(sigset_t *ret)
{
    (void)sigemptyset(ret);
    return 0;
}

int __real_signalfd(int fd, const sigset_t *mask, int flags);

int __wrap_signalfd(int fd, const sigset_t *mask, int flags)
{
    return sim_self == machine.keeper ? machine.signals[0] : __real_signalfd(fd, mask, flags);
}

usec_t __real_crashes_add(struct crashes *crashes, usec_t now);

/* The machine is busy: else a supervisor that dies at each tenth point would be started a thousand
 * times in a second. */
usec_t __wrap_crashes_add(struct crashes *crashes, usec_t now)
{
    return usec_add(__real_crashes_add(crashes, now), sim_below(RESTART_MAX));
}

static bool is_empty(const void *unused)
{
    (void)unused;
    for_each_task(task) if (!task->ended) return false;
    return true;
}

/* Waits until nothing is left of the keeper before. */
static void begin_anew(void)
{
    while (!is_empty(NULL))
        sim_block_until(is_empty, NULL, USEC_INFINITY);
    if (machine.loses_power)
        disk_cut();
    machine.loses_power = false;
    memset(machine.tasks, 0, sizeof(machine.tasks));
    keeper = (struct keeper){0};
    if (machine.last_pid > FIRST_PID)
        sim_rest(sim_below(BOOTS_MAX));
}

static void run_keeper(void *unused)
{
    static struct program program;

    (void)unused;
    program = (struct program){.path = "/dev/null", .fd = -1, .next_fd = -1};
    begin_anew();
    sim_exit(keeper_run(&program));
}

static void on_keeper_end(struct sim_process *process);

static void start_keeper(void)
{
    if (pipe2(machine.signals, O_CLOEXEC | O_NONBLOCK) < 0)
        abort();
    machine.keeper = sim_start("keeper", run_keeper, NULL, on_keeper_end);
}

/* Its children get SIGKILL from the kernel. */
static void on_keeper_end(struct sim_process *process)
{
    sim_trace("%s ends: %s %d", process->name, process->signalled ? "signal" : "status",
              process->code);
    kill_all();
    model_n_cuts++;
    close_fd(machine.signals[0]);
    close_fd(machine.signals[1]);
    start_keeper();
}

void machine_start(const char *directory, const char *socket_path)
{
    int fds[2];

    (void)unsetenv("NOTIFY_SOCKET");
    machine.directory = directory;
    machine.socket_path = socket_path;
    machine.last_pid = FIRST_PID;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    for (int i = 0; i < 2; i++) {
        (void)dup3(fds[i], SIM_FORKS + i, O_CLOEXEC);
        close_fd(fds[i]);
    }
    start_keeper();
}

void machine_kill(bool by_power_cut)
{
    sim_trace(by_power_cut ? "power cut" : "kill -9 of the keeper");
    machine.loses_power |= by_power_cut;
    if (by_power_cut)
        kill_all();
    sim_kill(machine.keeper, SIGKILL);
}

struct sim_process *machine_any_worker(void)
{
    struct sim_process *chosen = NULL;
    uint64_t n = 0;

    for_each_task(task) if (!task->ended && task->channel == 0 && sim_below(++n) == 0) chosen =
        task->process;
    return chosen;
}

/* ---- signals ---- */

static int signal_task(const struct task *task, int signal)
{
    if (!task || task->ended)
        return -1;
    if (signal == SIGTERM || signal == SIGKILL || signal == SIGABRT || signal == SIGINT)
        sim_kill(task->process, signal);
    return 0;
}

int machine_signal(pid_t pid, int signal)
{
    return signal_task(find_task(pid < 0 ? -pid : pid), signal);
}

int machine_signal_pidfd(int fd, int signal)
{
    struct stat stat;

    if (fstat(fd, &stat) == 0)
        for_each_task(task) if (task->inode == stat.st_ino) return signal_task(task, signal);
    return -1;
}
