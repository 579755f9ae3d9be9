/* SPDX-License-Identifier: MIT */
#include "tests/world/keeper.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/keeper/keeper.h"
#include "supervisor/keeper/message.h"
#include "supervisor/supervisor.h"
#include "tests/world/disk.h"
#include "tests/world/model.h"
#include "tests/world/programs.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Above any real pid: nothing in /proc has it. */
#define FIRST_PID 10000000
/* Above the descriptors of the world, and of what is to be closed. */
#define MOVED       (SIM_SOCKET + 100)
#define N_CHILDREN  256
#define N_HELD      256
#define RESTART_MAX (200 * USEC_PER_MSEC)

struct child {
    uint64_t id; /* 0 = free */
    pid_t pid;
    ino_t inode; /* of the pipe */
    int pipe[2]; /* the first one stands for its pidfd, and becomes readable at its end */
    struct sim_process *process;
    struct program_start *start;
    bool ended;
    struct spawn_exit how;
};

struct held {
    uint64_t id; /* 0 = free */
    pid_t pid;
    size_t size, n_fds;
    uint8_t bytes[HOLD_BYTES_MAX];
    int fds[HOLD_FDS_MAX];
    bool ended;
    struct spawn_exit how;
};

struct life {
    struct sim_process *process;
    int channel, theirs;
    bool ended;
    struct sim_end how;
};

static struct {
    const struct keeper_options *options;
    struct sim_process *process;
    struct life *now, *next;
    struct child children[N_CHILDREN];
    struct held held[N_HELD];
    pid_t last_pid;
    bool ready, upgrading, stopping;
    bool dies, loses_power;
    unsigned n_restarts, n_upgrades;
    usec_t restart_at;
    usec_t ready_since; /* 0 = it is not */
    usec_t ready_time;  /* of the former ones */
} keeper;

static struct message incoming, outgoing;
static struct message_spawn spawn_request;

/* ---- messages ---- */

static void reply(struct message *message)
{
    while (keeper.now && message_send(keeper.now->channel, message) == -EAGAIN)
        sim_yield();
}

static void reply_exited(const struct child *child)
{
    message_begin(&outgoing, MESSAGE_EXITED, child->id)->how = child->how;
    reply(&outgoing);
}

/* ---- children ---- */

static struct child *find_child(pid_t pid)
{
    for (size_t i = 0; i < N_CHILDREN; i++)
        if (keeper.children[i].id != 0 && keeper.children[i].pid == pid)
            return &keeper.children[i];
    return NULL;
}

static struct child *new_child(void)
{
    for (size_t i = 0; i < N_CHILDREN; i++)
        if (keeper.children[i].id == 0)
            return &keeper.children[i];
    return NULL;
}

static void on_child_end(struct sim_process *process, const struct sim_end *end)
{
    struct child *child = sim_userdata(process);

    sim_trace("%s ends: %s %d", sim_name(process), end->signalled ? "signal" : "status", end->code);
    child->ended = true;
    child->how = (struct spawn_exit){.signalled = end->signalled, .code = end->code};
    sim_wake(keeper.process);
}

static bool is_held(uint64_t id)
{
    for (size_t i = 0; i < N_HELD; i++)
        if (keeper.held[i].id == id)
            return true;
    return false;
}

static void reap(struct child *child)
{
    (void)!write(child->pipe[1], "", 1);
    for (size_t i = 0; i < N_HELD; i++)
        if (keeper.held[i].id == child->id) {
            keeper.held[i].ended = true;
            keeper.held[i].how = child->how;
        }
    if (keeper.now)
        reply_exited(child);
    close_fd(child->pipe[0]);
    close_fd(child->pipe[1]);
    *child = (struct child){0};
}

static bool reap_ended(void)
{
    bool any = false;

    for (size_t i = 0; i < N_CHILDREN; i++)
        if (keeper.children[i].id != 0 && keeper.children[i].ended) {
            reap(&keeper.children[i]);
            any = true;
        }
    return any;
}

static void end_unheld(void)
{
    for (size_t i = 0; i < N_CHILDREN; i++)
        if (keeper.children[i].id != 0 && !is_held(keeper.children[i].id))
            sim_kill(keeper.children[i].process, SIGKILL);
}

static void end_all(void)
{
    for (size_t i = 0; i < N_CHILDREN; i++)
        if (keeper.children[i].id != 0)
            sim_kill(keeper.children[i].process, SIGKILL);
}

/* ---- requests ---- */

static int start_child(struct child *child)
{
    struct stat stat;

    if (pipe2(child->pipe, O_CLOEXEC) < 0 || fstat(child->pipe[0], &stat) < 0)
        return -errno;
    child->id = incoming.record.id;
    child->pid = ++keeper.last_pid;
    child->inode = stat.st_ino;
    child->start = program_start_new(&spawn_request.options);
    child->process = sim_start(program_name(child->start), program_prepare, program_main,
                               child->start, on_child_end, child);
    sim_trace("starts %s as %d", sim_name(child->process), (int)child->pid - FIRST_PID);
    return 0;
}

static void on_spawn(void)
{
    struct child *child = new_child();
    struct message_record *spawned;
    int r = message_take_spawn(&incoming, &spawn_request);

    if (r == 0)
        r = child ? start_child(child) : -EAGAIN;
    spawned = message_begin(&outgoing, MESSAGE_SPAWNED, incoming.record.id);
    spawned->pid = r == 0 ? child->pid : 0;
    spawned->error = r;
    if (r == 0)
        message_put_fd(&outgoing, child->pipe[0]);
    message_close_fds(&incoming);
    reply(&outgoing);
}

static void on_kill(void)
{
    const struct child *child = find_child(incoming.record.pid);

    if (child && child->id == incoming.record.id)
        sim_kill(child->process, SIGKILL);
}

static void drop_held(uint64_t id)
{
    for (size_t i = 0; i < N_HELD; i++) {
        struct held *held = &keeper.held[i];

        if (held->id != id)
            continue;
        for (size_t j = 0; j < held->n_fds; j++)
            close_fd(held->fds[j]);
        *held = (struct held){0};
    }
}

static void on_hold(void)
{
    const struct message_record *hold = &incoming.record;
    struct held before = {0};
    struct child *child;

    if (incoming.n_fds != hold->n_fds)
        abort();
    for (size_t i = 0; i < N_HELD; i++)
        if (keeper.held[i].id == hold->id)
            before = keeper.held[i];
    drop_held(hold->id);
    for (size_t i = 0; i < N_HELD; i++) {
        struct held *held = &keeper.held[i];

        if (held->id != 0)
            continue;
        held->id = hold->id;
        held->pid = hold->pid;
        held->size = hold->size;
        memcpy(held->bytes, hold->bytes, hold->size);
        held->n_fds = hold->n_fds;
        memcpy(held->fds, incoming.fds, hold->n_fds * sizeof(int));
        incoming.n_fds = 0;
        child = find_child(hold->pid);
        held->ended = hold->pid != 0 && (!child || child->id != hold->id);
        held->how.unknown = held->ended;
        if (before.ended)
            held->how = before.how;
        return;
    }
    abort();
}

/* ---- supervisors ---- */

static void run_supervisor(void *argument)
{
    struct life *life = argument;
    const struct supervisor_options options = {
        .config_directory = keeper.options->config_directory,
        .socket_path = keeper.options->socket_path,
        .loop = LOOP_EPOLL,
        .log_level_given = true,
        .log_level = LOG_LEVEL_INFO,
        .channel = life->theirs,
        .notify_fd = -ENOENT,
        .unconfined = true,
        .program = "/bin/true",
    };
    struct supervisor *supervisor;
    int r = supervisor_new(&supervisor, &options);

    if (r < 0)
        sim_exit(1);
    r = supervisor_run(supervisor);
    if (r == SUPERVISOR_E_UPGRADE)
        sim_exit(KEEPER_EXIT_UPGRADE);
    supervisor_free(supervisor);
    sim_exit(r < 0);
}

static void prepare_supervisor(void *argument)
{
    struct life *life = argument;
    const int fd = fcntl(life->theirs, F_DUPFD_CLOEXEC, MOVED);

    program_close_all_but(fd);
    life->theirs = 3;
    (void)dup3(fd, 3, O_CLOEXEC);
    close_fd(fd);
}

static void on_supervisor_end(struct sim_process *process, const struct sim_end *end)
{
    struct life *life = sim_userdata(process);

    sim_trace("the supervisor ends: %s %d", end->signalled ? "signal" : "status", end->code);
    life->ended = true;
    life->how = *end;
    if (life == keeper.now && keeper.ready_since > 0) {
        keeper.ready_time += sim_now() - keeper.ready_since;
        keeper.ready_since = 0;
    }
    sim_wake(keeper.process);
}

static struct life *start_supervisor(void)
{
    struct life *life = calloc(1, sizeof(*life));
    int fds[2];

    if (!life || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    life->channel = fds[0];
    life->theirs = fds[1];
    sim_trace("starts a supervisor");
    life->process =
        sim_start("supervisor", prepare_supervisor, run_supervisor, life, on_supervisor_end, life);
    close_fd(fds[1]);
    return life;
}

static void drop_next(void)
{
    if (!keeper.next)
        return;
    sim_kill(keeper.next->process, SIGKILL);
    close_fd(keeper.next->channel);
    keeper.next = NULL;
}

static void hand_over_one(const struct held *held)
{
    const struct child *child = find_child(held->pid);
    struct message_record *record = message_begin(&outgoing, MESSAGE_HELD, held->id);

    record->pid = held->pid;
    record->ended = held->ended;
    record->how = held->how;
    (void)message_put_held(&outgoing, held->bytes, held->size, held->fds, held->n_fds);
    if (!held->ended && child)
        message_put_fd(&outgoing, child->pipe[0]);
    reply(&outgoing);
}

static void hand_over(void)
{
    const struct message_held_end end = {
        .n_restarts = keeper.n_restarts,
        .n_upgrades = keeper.n_upgrades,
        .first = !keeper.ready,
        .upgrading = keeper.upgrading,
    };

    for (size_t i = 0; i < N_HELD; i++)
        if (keeper.held[i].id != 0)
            hand_over_one(&keeper.held[i]);
    message_begin(&outgoing, MESSAGE_HELD_END, 0)->end = end;
    reply(&outgoing);
}

static void begin(void)
{
    keeper.restart_at = USEC_INFINITY;
    keeper.now = keeper.next ? keeper.next : start_supervisor();
    keeper.next = NULL;
    hand_over();
}

static bool take_request(void)
{
    if (message_receive(keeper.now->channel, &incoming) < 0)
        return false;
    switch (message_kind_of(&incoming)) {
    case MESSAGE_SPAWN:
        on_spawn();
        break;
    case MESSAGE_KILL:
        on_kill();
        break;
    case MESSAGE_HOLD:
        on_hold();
        break;
    case MESSAGE_RELEASE:
        drop_held(incoming.record.id);
        break;
    case MESSAGE_NEXT:
        drop_next();
        keeper.next = start_supervisor();
        break;
    case MESSAGE_STAY:
        drop_next();
        break;
    case MESSAGE_READY:
        sim_trace("the supervisor is ready");
        keeper.ready = true;
        keeper.ready_since = keeper.now->ended ? 0 : sim_now();
        keeper.n_upgrades += keeper.upgrading;
        keeper.upgrading = false;
        break;
    default:
        break;
    }
    message_close_fds(&incoming);
    return true;
}

static void supervisor_ended(void)
{
    struct life *life = keeper.now;
    const bool upgrades = !life->how.signalled && life->how.code == KEEPER_EXIT_UPGRADE;

    while (take_request())
        continue;
    close_fd(life->channel);
    sim_forget_fds();
    keeper.now = NULL;
    if (!life->how.signalled && life->how.code == 0) {
        keeper.stopping = true;
        end_all();
        return;
    }
    keeper.upgrading = upgrades;
    if (!upgrades) {
        keeper.n_restarts++;
        drop_next();
    }
    end_unheld();
    keeper.restart_at = sim_now() + (upgrades ? 0 : sim_below(RESTART_MAX));
}

/* ---- its own death ---- */

static bool anything_lives(void)
{
    for (size_t i = 0; i < N_CHILDREN; i++)
        if (keeper.children[i].id != 0 && !keeper.children[i].ended)
            return true;
    return (keeper.now && !keeper.now->ended) || (keeper.next && !keeper.next->ended);
}

/* Another keeper, which knows of nothing. */
static void start_again(void)
{
    model_cut();
    if (keeper.loses_power)
        disk_cut();
    for (size_t i = 0; i < N_HELD; i++)
        if (keeper.held[i].id != 0)
            drop_held(keeper.held[i].id);
    for (size_t i = 0; i < N_CHILDREN; i++)
        if (keeper.children[i].id != 0) {
            close_fd(keeper.children[i].pipe[0]);
            close_fd(keeper.children[i].pipe[1]);
            keeper.children[i] = (struct child){0};
        }
    if (keeper.now)
        close_fd(keeper.now->channel);
    if (keeper.next)
        close_fd(keeper.next->channel);
    sim_forget_fds();
    keeper.now = keeper.next = NULL;
    keeper.n_restarts = keeper.n_upgrades = 0;
    keeper.ready = keeper.upgrading = keeper.dies = keeper.loses_power = false;
    keeper.restart_at = sim_now() + sim_below(2 * USEC_PER_SEC);
}

static bool die(void)
{
    end_all();
    if (keeper.now)
        sim_kill(keeper.now->process, SIGKILL);
    if (keeper.next)
        sim_kill(keeper.next->process, SIGKILL);
    if (anything_lives()) {
        sim_yield();
        return true;
    }
    start_again();
    return true;
}

void keeper_kill(bool by_power_cut)
{
    sim_trace(by_power_cut ? "power cut" : "kill -9 of the keeper");
    keeper.dies = true;
    keeper.loses_power |= by_power_cut;
    sim_wake(keeper.process);
}

static bool turn(void)
{
    bool worked;

    if (keeper.dies)
        return die();
    worked = reap_ended();

    if (keeper.now && keeper.now->ended) {
        supervisor_ended();
        return true;
    }
    if (!keeper.now && !keeper.stopping && sim_now() >= keeper.restart_at) {
        begin();
        return true;
    }
    while (keeper.now && take_request())
        worked = true;
    return worked;
}

static void run(void *unused)
{
    (void)unused;
    for (;;)
        if (!turn() && keeper.now)
            sim_block_fd(keeper.now->channel, USEC_INFINITY);
        else if (!keeper.now)
            sim_block(keeper.restart_at);
}

void keeper_start(const struct keeper_options *options)
{
    keeper.options = options;
    keeper.last_pid = FIRST_PID;
    keeper.process = sim_start("keeper", NULL, run, NULL, NULL, NULL);
}

struct sim_process *keeper_supervisor(void)
{
    return keeper.now && !keeper.now->ended ? keeper.now->process : NULL;
}

static unsigned n_workers(void)
{
    unsigned n = 0;

    for (size_t i = 0; i < N_CHILDREN; i++)
        n += keeper.children[i].id != 0 && !keeper.children[i].ended;
    return n;
}

struct sim_process *keeper_any_worker(void)
{
    const unsigned n = n_workers();
    uint64_t chosen = n > 0 ? sim_below(n) : 0;

    for (size_t i = 0; i < N_CHILDREN && n > 0; i++)
        if (keeper.children[i].id != 0 && !keeper.children[i].ended && chosen-- == 0)
            return keeper.children[i].process;
    return NULL;
}

usec_t keeper_ready_time(void)
{
    return keeper.ready_time + (keeper.ready_since > 0 ? sim_now() - keeper.ready_since : 0);
}

/* ---- signals ---- */

static int signal_child(const struct child *child, int signal)
{
    if (!child || child->ended)
        return -1;
    if (signal == SIGTERM || signal == SIGKILL || signal == SIGABRT || signal == SIGINT)
        sim_kill(child->process, signal);
    return 0;
}

int keeper_signal(pid_t pid, int signal)
{
    return signal_child(find_child(pid < 0 ? -pid : pid), signal);
}

int keeper_signal_pidfd(int fd, int signal)
{
    struct stat stat;

    for (size_t i = 0; fstat(fd, &stat) == 0 && i < N_CHILDREN; i++)
        if (keeper.children[i].id != 0 && keeper.children[i].inode == stat.st_ino)
            return signal_child(&keeper.children[i], signal);
    return -1;
}
