/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/keeper.h"
#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/log.h"
#include "supervisor/keeper/children.h"
#include "supervisor/keeper/message.h"
#include "supervisor/keeper/orphans.h"
#include "supervisor/keeper/relay.h"
#include "supervisor/keeper/spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* After the supervisor's end: the wait for processes that SIGKILL does not end (a hung file
 * system). */
#define END_MSEC 5000
/* Bounds the requests per turn, so that signals and deaths are handled in between. */
#define REQUESTS_PER_TURN 16
/* The pause before a reply is sent again when the kernel had no memory for it. */
#define REPLY_RETRY_MS 10
/* The delay from a death to the search for orphans: one search serves many deaths, and restarts
 * come first. */
#define ORPHANS_MSEC 2

static struct {
    int channel; /* -1 = the supervisor has closed it */
    int signals;
    pid_t supervisor;  /* 0 = has ended */
    int status;        /* the supervisor's exit status */
    usec_t end_by;     /* when to give up waiting for the rest, once the supervisor has ended */
    bool deaths_due;   /* there may be children to reap */
    usec_t orphans_at; /* when to search for orphans; USEC_INFINITY = no need */
    bool orphans_left; /* the last search killed some; their children become orphans in turn */
    bool reply_waits;  /* `reply` could not be sent yet */
    bool reply_later;  /* after ENOBUFS: poll() does not report when to send again */
    int reply_fd;      /* the pidfd sent with `reply`, or -1 */
    struct relay relay;
    struct children children;
    struct message request, reply;
    struct message_spawn spawn;
} keeper;

static void expect_orphans(void)
{
    if (keeper.orphans_at == USEC_INFINITY)
        keeper.orphans_at = usec_add(clock_now(), ORPHANS_MSEC * USEC_PER_MSEC);
}

/* ---- replies ---- */

/* While a reply waits, nothing is reaped and no request is read: the kernel queues them. */
static void flush_reply(void)
{
    int r = keeper.channel >= 0 ? message_send(keeper.channel, &keeper.reply) : -EPIPE;
    keeper.reply_later = r == -ENOBUFS;
    keeper.reply_waits = r == -EAGAIN || r == -ENOBUFS;
    if (!keeper.reply_waits)
        keeper.reply_fd = close_fd(keeper.reply_fd);
}

static void reply_exited(uint64_t id, const struct spawn_exit *how)
{
    (void)message_put_exited(&keeper.reply, &(struct message_exited){.id = id, .how = *how});
    flush_reply();
}

static void reply_spawned(uint64_t id, int error, const struct spawn_result *result)
{
    const struct message_spawned spawned = {.id = id, .pid = result->pid, .error = error};
    keeper.reply_fd = result->pidfd;
    (void)message_put_spawned(&keeper.reply, &spawned, result->pidfd);
    flush_reply();
}

/* ---- requests ---- */

static void on_spawn(int lost)
{
    struct spawn_result result = {.pidfd = -1};
    int r = message_take_spawn(&keeper.request, &keeper.spawn);
    if (lost < 0)
        r = lost;
    if (r == 0 && children_full(&keeper.children))
        r = -EAGAIN;
    if (r == 0)
        r = spawn(&keeper.spawn.options, &result);
    if (r == 0)
        children_add(&keeper.children, result.pid, keeper.spawn.id,
                     keeper.spawn.options.cgroup_fd >= 0);
    message_close_fds(&keeper.request);
    reply_spawned(keeper.spawn.id, r, &result);
}

/* A child that is not reaped keeps its pid and process group id, so the signals hit no other
 * process. */
static void on_kill(void)
{
    struct message_kill request;
    if (message_take_kill(&keeper.request, &request) < 0)
        return;
    const struct child *child = children_find(&keeper.children, request.pid);
    if (!child || child->id != request.id)
        return;
    (void)kill(request.pid, SIGKILL);
    (void)kill(-request.pid, SIGKILL);
    if (!child->contained)
        expect_orphans();
}

/* Returns whether there may be more requests. */
static bool take_request(void)
{
    int r = message_receive(keeper.channel, &keeper.request);
    if (r == -EPIPE)
        keeper.channel = close_fd(keeper.channel);
    if (r < 0 && r != -EMFILE)
        return false;
    switch (message_take_kind(&keeper.request)) {
    case MESSAGE_SPAWN:
        on_spawn(r);
        break;
    case MESSAGE_KILL:
        on_kill();
        break;
    default:
        log_error("keeper: the supervisor sent an unknown request");
    }
    message_close_fds(&keeper.request);
    return true;
}

/* ---- deaths ---- */

static void supervisor_ended(const struct spawn_exit *how)
{
    keeper.supervisor = 0;
    keeper.channel = close_fd(keeper.channel); /* unread; a closed peer keeps poll() awake */
    keeper.status = how->signalled ? EXIT_FAILURE : how->code;
    keeper.end_by = usec_add(clock_now(), END_MSEC * USEC_PER_MSEC);
    expect_orphans();
    if (how->signalled)
        log_error("the supervisor was killed by signal %d (%s)%s; everything it ran is ended",
                  how->code, strsignal(how->code), how->core_dumped ? ", core dumped" : "");
}

/* A contained worker's descendants end with its cgroup, except at the keeper's own end, when no
 * cgroup is emptied. An inherited process matters only if the keeper killed it as an orphan. */
static bool leaves_orphans(const struct child *child)
{
    if (keeper.supervisor == 0)
        return true;
    return child ? !child->contained : keeper.orphans_left;
}

/* Returns whether a child was reaped. The supervisor hears of the death before the child is
 * reaped; its next request is handled after that. */
static bool reap_one(void)
{
    struct spawn_exit how;
    const pid_t pid = spawn_find_ended(&how);
    if (pid <= 0)
        return false;
    const struct child *child = children_find(&keeper.children, pid);
    if (child && child->id != 0) {
        /* The rest of the process group. Its id is not reused before the child is reaped. */
        (void)kill(-pid, SIGKILL);
        if (keeper.supervisor > 0)
            reply_exited(child->id, &how);
    }
    if (pid == keeper.supervisor)
        supervisor_ended(&how);
    else if (leaves_orphans(child))
        expect_orphans();
    children_remove(&keeper.children, pid);
    return spawn_reap(pid, &how) == 0;
}

/* Helpers that a living worker has detached stay: they are in its process group. */
static bool is_kept(pid_t pid)
{
    if (keeper.supervisor == 0)
        return false;
    return pid == keeper.supervisor || children_find(&keeper.children, pid) ||
           children_find(&keeper.children, getpgid(pid));
}

/* A child that is not reaped keeps its pid, so the signal hits no other process. */
static void end_orphan(pid_t pid)
{
    if (is_kept(pid))
        return;
    keeper.orphans_left = true;
    (void)kill(pid, SIGKILL);
}

/* Children of the killed orphans become orphans when these die, so each such death calls for
 * another search. */
static void end_orphans(void)
{
    keeper.orphans_at = USEC_INFINITY;
    keeper.orphans_left = false;
    orphans_each(end_orphan);
}

/* ---- signals ---- */

/* Passes the sender's pid on: the supervisor logs who sent the signal. */
static void forward(const struct signalfd_siginfo *info)
{
    const bool known = info->ssi_code == SI_USER || info->ssi_code == SI_QUEUE;
    const union sigval sender = {.sival_int = known ? (int)info->ssi_pid : 0};
    if (keeper.supervisor > 0)
        (void)sigqueue(keeper.supervisor, (int)info->ssi_signo, sender);
}

/* The service manager's watchdog requests a core dump with SIGABRT. The process that hangs, and
 * may be stopped, is the supervisor. */
static void abort_supervisor(int signo)
{
    if (keeper.supervisor <= 0)
        return;
    (void)kill(keeper.supervisor, signo);
    (void)kill(keeper.supervisor, SIGCONT);
}

/* Signals beyond the buffer stay queued; the descriptor stays readable. */
static void take_signals(void)
{
    struct signalfd_siginfo infos[8];
    ssize_t size = read(keeper.signals, infos, sizeof(infos));
    size_t n = size > 0 ? (size_t)size / sizeof(infos[0]) : 0;
    for (size_t i = 0; i < n; i++) {
        switch (infos[i].ssi_signo) {
        case SIGCHLD:
            keeper.deaths_due = true;
            break;
        case SIGTERM:
        case SIGINT:
        case SIGHUP:
            forward(&infos[i]);
            break;
        case SIGABRT:
        case SIGQUIT:
            abort_supervisor((int)infos[i].ssi_signo);
            break;
        default: /* ignored */
            break;
        }
    }
}

/* ---- turns ---- */

static int retry_ms(void)
{
    if (keeper.reply_later)
        return REPLY_RETRY_MS;
    return relay_wait_ms(&keeper.relay);
}

static int timeout_ms(void)
{
    usec_t at = keeper.supervisor == 0 ? keeper.end_by : USEC_INFINITY;
    int retry = retry_ms();
    if (keeper.orphans_at < at)
        at = keeper.orphans_at;
    if (at == USEC_INFINITY)
        return retry;
    usec_t left = usec_sub(at, clock_now()) / USEC_PER_MSEC + 1;
    return retry >= 0 && (usec_t)retry < left ? retry : (int)left;
}

static short channel_events(void)
{
    if (!keeper.reply_waits)
        return POLLIN;
    return keeper.reply_later ? 0 : POLLOUT;
}

static void wait_for_something(void)
{
    struct pollfd fds[] = {
        {.fd = keeper.signals, .events = POLLIN},
        {.fd = keeper.channel, .events = channel_events()},
        relay_wait(&keeper.relay),
    };
    (void)poll(fds, ELEMENTS(fds), timeout_ms());
    if (fds[0].revents != 0)
        take_signals();
    if (keeper.reply_waits)
        flush_reply();
    if (fds[2].revents != 0 || relay_wait_ms(&keeper.relay) >= 0)
        relay_run(&keeper.relay);
}

static void run_turn(void)
{
    wait_for_something();
    while (keeper.deaths_due && !keeper.reply_waits)
        keeper.deaths_due = reap_one();
    for (int i = 0; i < REQUESTS_PER_TURN && keeper.channel >= 0 && !keeper.reply_waits; i++)
        if (keeper.supervisor == 0 || !take_request())
            break;
    if (keeper.orphans_at != USEC_INFINITY && clock_now() >= keeper.orphans_at)
        end_orphans();
}

/* Returns whether no child is left, or none that can be ended. */
static bool is_over(void)
{
    struct spawn_exit how;
    if (keeper.supervisor > 0)
        return false;
    if (spawn_find_ended(&how) == -ECHILD)
        return true;
    if (clock_now() < keeper.end_by)
        return false;
    log_warning("some killed processes do not end; leaving them behind");
    return true;
}

/* ---- start ---- */

/* Blocks all signals except those that a fault of this program raises. */
static void block_signals(sigset_t *ret)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXCPU};
    spawn_reset_ignored_signals(); /* with SIGCHLD ignored, the kernel would reap */
    (void)sigfillset(ret);
    for (size_t i = 0; i < ELEMENTS(own); i++)
        (void)sigdelset(ret, own[i]);
    (void)sigprocmask(SIG_SETMASK, ret, NULL);
}

/* The service manager names its main process in these variables; the supervisor uses them. */
static void take_over_variable(const char *name, pid_t keeper_pid)
{
    const char *value = getenv(name);
    char text[16];
    if (!value || strtol(value, NULL, 10) != keeper_pid)
        return;
    (void)snprintf(text, sizeof(text), "%d", (int)getpid());
    (void)setenv(name, text, 1);
}

/*
 * Runs the supervisor in the new process, in a session of its own: signals of a terminal would
 * reach it twice otherwise. SIGTERM, SIGINT and SIGHUP stay blocked until the supervisor can handle
 * them.
 */
static _Noreturn void run_supervisor(keeper_supervisor_fn supervisor, void *userdata,
                                     const struct keeper_ends *ends, pid_t parent)
{
    sigset_t asking;
    (void)setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
        _exit(EXIT_FAILURE);
    (void)sigemptyset(&asking);
    (void)sigaddset(&asking, SIGTERM);
    (void)sigaddset(&asking, SIGINT);
    (void)sigaddset(&asking, SIGHUP);
    (void)sigprocmask(SIG_SETMASK, &asking, NULL);
    take_over_variable("LISTEN_PID", parent);
    (void)unsetenv("LISTEN_PIDFDID"); /* names the keeper as well */
    take_over_variable("WATCHDOG_PID", parent);
    close_fd(keeper.channel);
    close_fd(keeper.signals);
    close_fd(keeper.relay.from);
    close_fd(keeper.relay.to);
    orphans_close();
    exit(supervisor(userdata, ends));
}

/* Children from before trouped was executed, by a container's start script for example, are not
 * orphans of a worker. */
static void keep_earlier_child(pid_t pid)
{
    if (!children_full(&keeper.children))
        children_add(&keeper.children, pid, 0, true);
}

/* Logs that this system call has just failed. Returns -errno. */
static int cannot_start(const char *call)
{
    const int error = errno;
    const bool forbidden = error == EPERM || error == ENOSYS;
    log_error("cannot start the supervisor: %s: %s%s", call, strerror(error),
              forbidden ? "; allowed: a seccomp filter (SystemCallFilter=) that permits it" : "");
    return -error;
}

static int start_supervisor(keeper_supervisor_fn supervisor, void *userdata,
                            struct keeper_ends ends)
{
    int fds[2];
    const pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return cannot_start("socketpair");
    keeper.channel = fds[0];
    ends.channel = fds[1];
    pid_t pid = fork();
    if (pid < 0)
        return cannot_start("fork");
    if (pid == 0)
        run_supervisor(supervisor, userdata, &ends, parent);
    close_fd(ends.channel);
    close_fd(ends.notify_fd);
    keeper.supervisor = pid;
    return 0;
}

static int become_keeper(keeper_supervisor_fn supervisor, void *userdata, struct keeper_ends ends)
{
    sigset_t signals;
    int r;
    keeper.channel = keeper.reply_fd = -1;
    keeper.orphans_at = USEC_INFINITY;
    /* Otherwise a worker of the same user could trace the keeper or write to its memory. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return cannot_start("prctl");
    block_signals(&signals);
    keeper.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (keeper.signals < 0)
        return cannot_start("signalfd");
    orphans_open();
    orphans_each(keep_earlier_child);
    r = start_supervisor(supervisor, userdata, ends);
    if (r < 0)
        return r;
    return chdir("/") < 0 ? cannot_start("chdir to /") : 0;
}

int keeper_run(keeper_supervisor_fn supervisor, void *userdata)
{
    struct keeper_ends ends = {.channel = -1, .notify_fd = relay_open(&keeper.relay)};
    int r = become_keeper(supervisor, userdata, ends);
    if (r < 0)
        return EXIT_FAILURE;
    while (!is_over())
        run_turn();
    relay_run(&keeper.relay);
    return keeper.status;
}
