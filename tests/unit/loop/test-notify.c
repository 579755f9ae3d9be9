/* SPDX-License-Identifier: MIT */
#include "shared/base/uapi.h"
#include "supervisor/loop/notify.h"
#include "supervisor/process/notify-server.h"
#include "tests/unit/suite.h"
#include <sys/un.h>

static char directory[] = "/tmp/test-notify-XXXXXX";
static char path[64], received[8192];
static int manager = -1, ours = -1;
static struct timer_queue timers = TIMER_QUEUE_NULL;
static struct notify notify;

static struct loop *loop;
static struct notify_server server = NOTIFY_SERVER_NULL;
static struct notify_message heard;
static char heard_status[8192];
static bool heard_is_there;
static unsigned n_heard;

static void make_directory(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/notify", directory);
}

/* Both ends of what the keeper makes. */
static void set_up(void)
{
    int fds[2];
    make_directory();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    manager = fds[0];
    ours = fds[1];
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void tear_down(void)
{
    notify_deinit(&notify);
    close_fd(manager);
    (void)unlink(path);
    (void)rmdir(directory);
}

static const char *receive(void)
{
    ssize_t n = recv(manager, received, sizeof(received) - 1, MSG_DONTWAIT);
    received[n > 0 ? n : 0] = '\0';
    return received;
}

static void init(usec_t now)
{
    ck_assert_int_eq(notify_init(&notify, &timers, now, ours), 0);
}

#define AS_CLIENT .setup = set_up, .teardown = tear_down

TEST(without_a_manager_every_call_does_nothing, AS_CLIENT)
{
    setenv("WATCHDOG_USEC", "1000", 1);
    close_fd(ours);
    ours = -1;
    init(0);
    notify_tell(&notify, SERVICE_READY, 0);
    notify_status(&notify, 0, "x");
    notify_tell(&notify, SERVICE_STOPPING, 0);
    ck_assert_uint_eq(timer_queue_next(&timers), USEC_INFINITY);
}

TEST(states_are_told_in_the_words_of_the_protocol, AS_CLIENT)
{
    init(0);
    notify_tell(&notify, SERVICE_READY, 1);
    ck_assert_str_eq(receive(), "READY=1");
    notify_status(&notify, 2, "%d workers\nsecond line", 3);
    ck_assert_str_eq(receive(), "STATUS=3 workers");
    notify_status(&notify, 3, "3 workers");
    ck_assert_str_eq(receive(), "");
    notify_tell(&notify, SERVICE_RELOADING, 4711);
    ck_assert_str_eq(receive(), "RELOADING=1\nMONOTONIC_USEC=4711");
    notify_tell(&notify, SERVICE_STOPPING, 5);
    ck_assert_str_eq(receive(), "STOPPING=1");
}

TEST(signs_of_life_are_sent_at_once_and_twice_per_interval, AS_CLIENT)
{
    setenv("WATCHDOG_USEC", "1000", 1);
    init(100);
    ck_assert_uint_eq(timer_queue_next(&timers), 100);
    timer_queue_run(&timers, 100, SIZE_MAX);
    ck_assert_str_eq(receive(), "WATCHDOG=1");
    ck_assert_uint_eq(timer_queue_next(&timers), 600);
}

TEST(the_watchdog_of_another_process_is_not_ours, AS_CLIENT)
{
    setenv("WATCHDOG_USEC", "1000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    init(100);
    ck_assert_uint_eq(timer_queue_next(&timers), USEC_INFINITY);
}

TEST(a_bad_environment_is_an_error, AS_CLIENT)
{
    setenv("WATCHDOG_USEC", "soon", 1);
    ck_assert_int_eq(notify_init(&notify, &timers, 0, ours), -EINVAL);
}

TEST(a_manager_that_is_busy_gets_everything_later_and_in_order, AS_CLIENT)
{
    init(0);
    while (send(notify.manager.fd, "filling", 7, MSG_DONTWAIT) == 7)
        ;
    notify_tell(&notify, SERVICE_RELOADING, 10);
    notify_status(&notify, 11, "first");
    notify_status(&notify, 12, "second");
    notify_tell(&notify, SERVICE_READY, 13);
    ck_assert_uint_ne(timer_queue_next(&timers), USEC_INFINITY);
    timer_queue_run(&timers, USEC_PER_SEC, SIZE_MAX);
    ck_assert_uint_gt(timer_queue_next(&timers), USEC_PER_SEC); /* still busy: once more */
    while (strcmp(receive(), "filling") == 0)
        ;
    timer_queue_run(&timers, 2 * USEC_PER_SEC, SIZE_MAX);
    ck_assert_str_eq(receive(), "RELOADING=1\nMONOTONIC_USEC=10");
    ck_assert_str_eq(receive(), "READY=1");
    ck_assert_str_eq(receive(), "STATUS=second");
    ck_assert_str_eq(receive(), "");
    ck_assert_uint_eq(timer_queue_next(&timers), USEC_INFINITY);
}

TEST(a_manager_that_is_gone_is_not_tried_for_ever, AS_CLIENT)
{
    init(0);
    close_fd(manager);
    manager = -1;
    notify_tell(&notify, SERVICE_READY, 0);
    ck_assert_uint_eq(timer_queue_next(&timers), USEC_INFINITY);
}

static const struct notify_senders ONLY_ROOT = {.owner = (uid_t)-1};

static void on_message(void *userdata, const struct notify_message *message)
{
    ck_assert_ptr_eq(userdata, &server);
    heard_is_there = notify_sender_is_there(message);
    heard = *message;
    n_heard++;
    (void)snprintf(heard_status, sizeof(heard_status), "%s",
                   message->status ? message->status : "");
    loop_stop(loop);
}

static void set_up_server(void)
{
    const char *reason = "";
    make_directory();
    ck_assert_msg(loop_new(&loop, &(struct loop_options){0}, &reason) == 0, "%s", reason);
    ck_assert_int_eq(notify_server_init(&server, loop, path, &ONLY_ROOT, on_message, &server), 0);
}

static void tear_down_server(void)
{
    notify_server_deinit(&server);
    notify_server_deinit(&server);
    ck_assert_int_lt(access(path, F_OK), 0);
    loop_free(loop);
    (void)rmdir(directory);
}

/* Sends from a process of its own, which is gone when this returns. -1 = no descriptor. */
static pid_t say(const char *text, size_t size, int fd, uid_t uid)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        union {
            struct cmsghdr header;
            char space[CMSG_SPACE(sizeof(int))];
        } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
        struct iovec piece = {.iov_base = (void *)text, .iov_len = size};
        struct msghdr message = {.msg_name = &address,
                                 .msg_namelen = sizeof(address),
                                 .msg_iov = &piece,
                                 .msg_iovlen = 1};
        strcpy(address.sun_path, path);
        if (fd >= 0) {
            memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
            message.msg_control = &control;
            message.msg_controllen = sizeof(control);
        }
        int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (uid != 0 && setuid(uid) < 0)
            _exit(2);
        _exit(sendmsg(s, &message, 0) != (ssize_t)size);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    return pid;
}

static void say_text(const char *text)
{
    (void)say(text, strlen(text), -1, 0);
}

TEST(a_service_is_heard_with_its_pid_though_it_is_gone)
{
    static const char text[] = "READY=1\nSTATUS=all fine\nUNKNOWN=1\n";
    pid_t pid = say(text, strlen(text), -1, 0);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(heard.pid, pid);
    ck_assert(heard.ready && !heard.watchdog);
    ck_assert_str_eq(heard_status, "all fine");
    say_text("WATCHDOG=1");
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert(heard.watchdog && !heard.ready);
    ck_assert_ptr_null(heard.status);
}

TEST(a_sender_that_is_gone_is_told_from_one_that_is_there)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    strcpy(address.sun_path, path);
    if (setsockopt(s, SOL_SOCKET, TROUPE_SO_PASSPIDFD, &(int){1}, sizeof(int)) < 0) {
        printf("skipped: the kernel gives no pidfd of a sender\n");
        return;
    }
    say_text("WATCHDOG=1");
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert(!heard_is_there);
    ck_assert_int_eq(sendto(s, "READY=1", 7, 0, (struct sockaddr *)&address, sizeof(address)), 7);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert(heard.ready && heard_is_there);
}

TEST(descriptors_that_come_along_are_closed)
{
    int fds[2];
    char byte;
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    (void)say("BARRIER=1", 9, fds[1], 0);
    close_fd(fds[1]);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(read(fds[0], &byte, 1), 0); /* would wait for ever */
    close_fd(fds[0]);
}

TEST(other_users_are_not_heard)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    if (getuid() != 0) {
        printf("skipped: only root can be several users\n");
        return;
    }
    ck_assert_int_eq(chmod(directory, 0755), 0);
    notify_server_deinit(&server);
    ck_assert_int_eq(notify_server_init(&server, loop, path,
                                        &(struct notify_senders){.owner = 65534}, on_message,
                                        &server),
                     0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, 65534);
    ck_assert_int_eq(chmod(path, 0666), 0); /* so that only the check of credentials is left */
    (void)say("READY=1", 7, -1, 65533);
    (void)say("WATCHDOG=1", 10, -1, 65534);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_heard, 1);
    ck_assert(heard.watchdog);
}

TEST(the_next_supervisor_hears_what_was_said_while_there_was_none)
{
    int held = fcntl(server.fd, F_DUPFD_CLOEXEC, 3); /* the keeper's */
    ck_assert_int_ge(held, 0);
    loop_unwatch(loop, &server.watch);
    close_fd(server.fd);
    free(server.path);
    say_text("READY=1");
    ck_assert_int_eq(
        notify_server_adopt(&server, loop, held, path, &ONLY_ROOT, on_message, &server), 0);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_heard, 1);
    ck_assert(heard.ready);
    say_text("STATUS=on");
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_str_eq(heard_status, "on");
}

TEST(what_a_dead_service_has_said_does_not_count_for_the_next_one)
{
    const int fd = server.fd;

    ck_assert_int_eq(notify_server_hold(&server, true), 0);
    say_text("READY=1");
    say_text("STATUS=old");
    notify_server_renew(&server);
    ck_assert_int_eq(server.fd, fd);
    say_text("STATUS=new");
    ck_assert_int_eq(notify_server_hold(&server, false), 0);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_heard, 1);
    ck_assert(!heard.ready);
    ck_assert_str_eq(heard_status, "new");
}

TEST(a_path_that_is_too_long_is_an_error)
{
    struct notify_server another;
    char long_path[200];
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    ck_assert_int_eq(notify_server_init(&another, loop, long_path, &ONLY_ROOT, on_message, NULL),
                     -ENAMETOOLONG);
}

TEST(the_parser_takes_whole_words_only)
{
    struct notify_message message;
    char text[] =
        "READY=11\nXREADY=1\nready=1\nSTATUS=one\nSTATUS=\nWATCHDOG=trigger\nRELOADING=1\n"
        "EXTEND_TIMEOUT_USEC=1000\nEXTEND_TIMEOUT_USEC=7s";
    notify_parse(&message, text);
    ck_assert(!message.ready && !message.watchdog);
    ck_assert(message.watchdog_trigger);
    ck_assert_str_eq(message.status, "");
    ck_assert_uint_eq(message.extend, 0);
}

const struct suite suite = {.setup = set_up_server, .teardown = tear_down_server};
