/* SPDX-License-Identifier: MIT */
#include "tests/world/machine.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/keeper/keeper-private.h"
#include "supervisor/supervisor.h"
#include "tests/world/model.h"
#include "tests/world/programs.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only the linker knows their names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Above any real pid: nothing in /proc has it. */
#define FIRST_PID 10000000
#define N_TASKS   256
#define FIFO_MAX  16
/* Until the keeper has started another supervisor. */
#define RESTART_MAX (200 * USEC_PER_MSEC)
/* How long a supervisor's beginning is. */
#define STRAIN (100 * USEC_PER_MSEC)
/* Until the service manager starts another keeper. */
#define BOOTS_MAX (2 * USEC_PER_SEC)

/* A child of the keeper: a supervisor, a worker, or a check of a command. */
struct task {
    pid_t pid;   /* 0 = free */
    ino_t inode; /* of the FIFO that its pidfds are; when it has ended, there is a byte in it */
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

static char *fifo_of(const struct task *task, char name[FIFO_MAX])
{
    (void)snprintf(name, FIFO_MAX, "%d", (int)task->pid);
    return name;
}

static void on_task_end(struct sim_process *process)
{
    const struct signalfd_siginfo info = {.ssi_signo = SIGCHLD};
    struct task *task = process->argument;
    char fifo[FIFO_MAX];
    const int fd = open(fifo_of(task, fifo), O_WRONLY | O_NONBLOCK | O_CLOEXEC);

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
    (void)!write(fd, "", 1);
    close_fd(fd);
    (void)unlink(fifo);
}

/* Starts what `task` describes. */
static void start_task(struct task *task, const char *name, sim_fn run)
{
    char fifo[FIFO_MAX];
    struct stat status;

    task->pid = ++machine.last_pid;
    if (mkfifo(fifo_of(task, fifo), 0600) < 0 || stat(fifo, &status) < 0)
        abort();
    task->inode = status.st_ino;
    task->process = sim_start(name, run, task, on_task_end);
    sim_trace("starts %s as %d", name, (int)task->pid - FIRST_PID);
}

/* Processes of the world share the variables of the real one. */
char *__wrap_getenv(const char *name)
{
    const size_t size = strlen(name);

    for_each_task(task) for (size_t i = 0; i < task->start.n_variables; i++)
    {
        char *text = task->start.variables[i];

        if (task->process == sim_self && strncmp(text, name, size) == 0 && text[size] == '=')
            return text + size + 1;
    }
    return NULL;
}

static void *run_program(void *task)
{
    program_main(&((struct task *)task)->start);
    return NULL;
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
    *task = (struct task){0};
    return 0;
}

/* ---- templates ---- */

void machine_fork(const struct program_start *start)
{
    struct task *task = new_task();

    if (!task)
        abort();
    task->start = *start;
    task->start.task = (uint8_t)(task - machine.tasks);
    start_task(task, start->name, run_program);
}

bool __wrap_spawn_is_child(pid_t pid)
{
    return find_task(pid);
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
    char fifo[FIFO_MAX];

    if (!task)
        return -1;
    return task->ended ? eventfd(1, EFD_CLOEXEC)
                       : open(fifo_of(task, fifo), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

/* ---- supervisors ---- */

static void *run_supervisor(void *argument)
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
    sim_trace("the supervisor is ready");
    if (machine_supervisor() && machine.ready_since == 0)
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

static bool is_empty(void)
{
    for_each_task(task) if (!task->ended) return false;
    return true;
}

/* Waits until nothing is left of the keeper before. */
static void begin_anew(void)
{
    while (!is_empty())
        sim_sleep(USEC_INFINITY);
    if (machine.loses_power)
        disk_cut();
    machine.loses_power = false;
    memset(machine.tasks, 0, sizeof(machine.tasks));
    keeper = (struct keeper){0};
    if (machine.last_pid > FIRST_PID)
        sim_rest(sim_below(BOOTS_MAX));
}

static void *run_keeper(void *unused)
{
    static struct program program;

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
    machine.directory = directory;
    machine.socket_path = socket_path;
    machine.last_pid = FIRST_PID;
    start_keeper();
}

void machine_cut_power(void)
{
    sim_trace("power cut");
    machine.loses_power = true;
    kill_all();
    sim_kill(machine.keeper, SIGKILL);
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
    const int r = signal_task(find_task(pid < 0 ? -pid : pid), signal);

    errno = r < 0 ? ESRCH : errno;
    return r;
}

int machine_signal_pidfd(int fd, int signal)
{
    struct stat stat;

    if (fstat(fd, &stat) == 0)
        for_each_task(task) if (task->inode == stat.st_ino) return signal_task(task, signal);
    return -1;
}
