/* SPDX-License-Identifier: MIT */
#include "shared/base/scm.h"
#include "shared/base/uapi.h"
#include "shared/base/utf8.h"
#include "supervisor/process/capture.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>

static char lines[1100][UTF8_ESCAPED_MAX(CAPTURE_LINE_MAX)];
static size_t n_lines;
static struct loop *loop;
static struct work_queue work;
static struct capture capture;
static struct capture_memory memory;

static void on_line(void *userdata, const char *line)
{
    ck_assert_ptr_eq(userdata, &capture);
    ck_assert_uint_lt(n_lines, ELEMENTS(lines));
    strcpy(lines[n_lines++], line);
}

static void set_up_loop(void)
{
    const char *reason = "";
    ck_assert_msg(loop_new(&loop, &(struct loop_options){0}, &reason) == 0, "%s", reason);
    work_queue_init(&work, loop);
    capture_init(&capture, &work, &memory, on_line, &capture);
}

static void tear_down(void)
{
    capture_deinit(&capture);
    capture_deinit(&capture);
    loop_free(loop);
}

static void feed_bytes(const char *bytes, size_t size)
{
    static int fd = -1;
    if (capture.fd < 0)
        ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    capture_catch_up(&capture);
}

static void feed(const char *text)
{
    feed_bytes(text, strlen(text));
}

static void pass_time(usec_t time)
{
    capture.window_start -= time;
}

TEST(lines_are_put_together_from_pieces)
{
    feed("one\ntw");
    ck_assert_uint_eq(n_lines, 1);
    feed("o\r\n\n\nthree");
    ck_assert_uint_eq(n_lines, 2);
    ck_assert_str_eq(lines[0], "one");
    ck_assert_str_eq(lines[1], "two");
    capture_finish(&capture);
    ck_assert_uint_eq(n_lines, 3);
    ck_assert_str_eq(lines[2], "three");
}

TEST(a_line_without_end_is_delivered_in_bounded_pieces)
{
    char text[CAPTURE_LINE_MAX * 3 + 10];
    memset(text, 'x', sizeof(text));
    feed_bytes(text, sizeof(text));
    ck_assert_uint_eq(n_lines, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(strlen(lines[i]), CAPTURE_LINE_MAX);
    capture_finish(&capture);
    ck_assert_uint_eq(strlen(lines[3]), 10);
}

TEST(control_characters_and_bad_utf8_are_escaped)
{
    feed("a\x1b[31mred\x07\ttab \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xff \xc0\xaf \xed\xa0\x80 "
         "\xc2\x85 \xe2\x82\n");
    ck_assert_str_eq(lines[0],
                     "a\\x1b[31mred\\x07\ttab \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \\xff "
                     "\\xc0\\xaf \\xed\\xa0\\x80 \\xc2\\x85 \\xe2\\x82");
    feed_bytes("nul\0byte\n", 9);
    ck_assert_str_eq(lines[1], "nul\\x00byte");
}

TEST(escaping_never_writes_past_its_buffer)
{
    char buffer[8];
    for (size_t size = 1; size <= sizeof(buffer); size++) {
        memset(buffer, 'z', sizeof(buffer));
        size_t n = utf8_escape(buffer, size, "a\x01\xe2\x82\xac", 5);
        ck_assert_uint_lt(n, size);
        ck_assert_int_eq(buffer[n], '\0');
        for (size_t i = size; i < sizeof(buffer); i++)
            ck_assert_int_eq(buffer[i], 'z');
    }
}

TEST(the_tail_keeps_the_last_bytes)
{
    char text[32], tail[CAPTURE_TAIL_MAX + 1], small[5];
    ck_assert_uint_eq(capture_tail(&capture, 0, tail, sizeof(tail)), 0);
    ck_assert_str_eq(tail, "");
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(text, sizeof(text), "line %06d\n", i);
        feed(text);
    }
    ck_assert_uint_eq(capture_tail(&capture, 0, tail, sizeof(tail)), CAPTURE_TAIL_MAX);
    ck_assert_str_eq(tail + CAPTURE_TAIL_MAX - 24, "line 001998\nline 001999\n");
    ck_assert_uint_eq(capture_tail(&capture, 0, small, sizeof(small)), 4);
    ck_assert_str_eq(small, "999\n");
}

TEST(the_tail_begins_with_a_whole_character)
{
    char tail[4];
    feed("\xe2\x82\xac!!");
    ck_assert_uint_eq(capture_tail(&capture, 0, tail, sizeof(tail)), 2);
    ck_assert_str_eq(tail, "!!");
}

TEST(a_flood_is_cut_off_and_summed_up_in_one_line)
{
    for (int i = 0; i < 1000; i++)
        feed("noise\n");
    ck_assert_uint_eq(n_lines, CAPTURE_BURST);
    pass_time(USEC_PER_SEC);
    feed("later\n");
    ck_assert_uint_eq(n_lines, CAPTURE_BURST + 2);
    ck_assert_ptr_nonnull(strstr(lines[n_lines - 2], " 800 lines suppressed"));
    ck_assert_str_eq(lines[n_lines - 1], "later");
}

TEST(M6_without_a_limit_one_turn_delivers_a_bounded_number_of_lines)
{
    capture_set_limit(&capture, USEC_PER_SEC, 0);
    for (int i = 0; i < 2 * CAPTURE_TURN_LINES; i++)
        feed("x\n");
    ck_assert_uint_eq(n_lines, CAPTURE_TURN_LINES);
    pass_time(1);
    feed("next\n");
    ck_assert_uint_eq(n_lines, CAPTURE_TURN_LINES + 2);
    capture_finish(&capture);
    ck_assert_uint_eq(n_lines, CAPTURE_TURN_LINES + 2);
}

static void on_line_deinit(void *userdata, const char *line)
{
    n_lines++;
    capture_deinit(userdata);
}

TEST(the_callback_may_tear_it_down)
{
    capture.fn = on_line_deinit;
    feed("one\ntwo\nthree\n");
    ck_assert_uint_eq(n_lines, 1);
}

static void on_line_stop(void *userdata, const char *line)
{
    on_line(userdata, line);
    if (strcmp(line, "stop") == 0 || strstr(line, "suppressed"))
        loop_stop(loop);
}

static void on_stop_timer(struct timer *timer, usec_t now)
{
    loop_stop(loop);
}

TEST(the_end_of_the_output_closes_it_and_the_rest_comes_with_finish)
{
    struct timer timer;
    int fd;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_int_eq(write(fd, "rest", 4), 4);
    close_fd(fd);
    timer_init(&timer, on_stop_timer);
    timer_arm(loop_timers(loop), &timer, clock_now() + 5000);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(capture.fd, -1);
    ck_assert_uint_eq(n_lines, 0);
    capture_finish(&capture);
    ck_assert_str_eq(lines[0], "rest");
}

TEST(finish_reads_what_is_left_though_others_hold_the_socket)
{
    char tail[CAPTURE_TAIL_MAX + 1];
    int fd;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_int_eq(write(fd, "last words", 10), 10);
    capture_finish(&capture);
    ck_assert_str_eq(lines[0], "last words");
    ck_assert_uint_eq(capture_tail(&capture, 0, tail, sizeof(tail)), 10);
    ck_assert_int_eq(capture.fd, -1);
    close_fd(fd);
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_uint_eq(capture_tail(&capture, 0, tail, sizeof(tail)), 0);
    close_fd(fd);
}

TEST(the_summary_of_a_flood_comes_by_itself)
{
    int fd;
    capture.fn = on_line_stop;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    for (int i = 0; i < CAPTURE_BURST + 10; i++)
        ck_assert_int_eq(write(fd, "noise\n", 6), 6);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_lines, CAPTURE_BURST + 1);
    close_fd(fd);
}

/* The first supervisor's capture ends as after a crash: its descriptor is gone, the memory stays.
 */
static int crash(struct capture_memory *kept)
{
    int held = fcntl(capture.fd, F_DUPFD_CLOEXEC, 3); /* the keeper's */
    loop_unwatch(loop, &capture.watch);
    capture.fd = close_fd(capture.fd);
    capture_deinit(&capture);
    capture_init(&capture, &work, kept, on_line_stop, &capture);
    return held;
}

static struct capture captures[2];
static usec_t turns[2];
static size_t n_turns, n_looks;
static struct loop_deferred look;

/* In the first turn the output of one of them is read. */
static void on_turn(struct loop_deferred *deferred)
{
    if (n_turns > 1)
        return;
    for (size_t i = 0; i < 2; i++) {
        ck_assert(capture_has_output(&captures[i]));
        ck_assert_uint_eq(capture_position(&captures[i]), 2);
    }
    n_looks++;
}

/* Uses up what all captures may take of a turn. */
static void on_slow_line(void *userdata, const char *line)
{
    const usec_t began = clock_now();

    turns[n_turns++] = loop_now(loop);
    while (clock_now() - began <= WORK_QUEUE_BUDGET)
        ;
    loop_defer(loop, &look);
    if (n_turns == ELEMENTS(turns))
        loop_stop(loop);
}

TEST(captures_share_the_time_of_a_turn)
{
    static struct capture_memory memories[2];
    int fds[2];

    loop_deferred_init(&look, on_turn);
    for (size_t i = 0; i < 2; i++) {
        capture_init(&captures[i], &work, &memories[i], on_slow_line, NULL);
        ck_assert_int_eq(capture_open(&captures[i], &fds[i]), 0);
        ck_assert_int_eq(write(fds[i], "x\n", 2), 2);
    }
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_lt(turns[0], turns[1]);
    ck_assert_uint_eq(n_looks, 1);
    for (size_t i = 0; i < 2; i++) {
        capture_deinit(&captures[i]);
        close_fd(fds[i]);
    }
}

TEST(a_cut_reads_what_was_written_and_ends_the_line)
{
    int fd;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_int_eq(write(fd, "one\nhalf", 8), 8);
    capture_cut(&capture);
    ck_assert_uint_eq(n_lines, 2);
    ck_assert_str_eq(lines[1], "half");
    capture_cut(&capture);
    ck_assert_uint_eq(n_lines, 2);
    ck_assert_int_eq(write(fd, "two\n", 4), 4);
    capture_cut(&capture);
    ck_assert_str_eq(lines[2], "two");
    close_fd(fd);
}

static int send_with(int socket, const char *text, int fd, int flags)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union scm_control control;
    scm_attach(&message, &control, &fd, 1);
    return sendmsg(socket, &message, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

TEST(nobody_can_send_descriptors_with_the_output)
{
    int fd;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    if (capture.refuses)
        ck_assert_int_eq(send_with(fd, "x\n", fd, 0), -EPERM);
    ck_assert_int_eq(write(fd, "two\n", 4), 4);
    capture_catch_up(&capture);
    ck_assert_str_eq(lines[n_lines - 1], "two");
    close_fd(fd);
}

/* As without SO_PASSRIGHTS. Nobody else has the pipe whose end is sent: whoever drops the message
 * closes that, and the reader sees it. */
TEST(output_with_descriptors_is_no_longer_read_and_drops_none, .n = 2)
{
    const int flags = _i ? MSG_OOB : 0;
    int fd, ends[2];
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    (void)setsockopt(capture.fd, SOL_SOCKET, TROUPE_SO_PASSRIGHTS, &(int){1}, sizeof(int));
    capture.refuses = scm_refuses(capture.fd);
    ck_assert(!capture.refuses);
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    ck_assert_int_eq(write(fd, "one\n", 4), 4);
    capture_catch_up(&capture);
    ck_assert_str_eq(lines[0], "one");
    ck_assert_int_eq(send_with(fd, "x", ends[1], flags), 0);
    close_fd(ends[1]);
    ck_assert_int_eq(write(fd, "two\n", 4), 4);
    capture_catch_up(&capture);
    ck_assert_int_eq(capture.fd, -1);
    ck_assert_int_eq((int)read(ends[0], &fd, 1), -1); /* the write end is open */
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_uint_eq(n_lines, 2);
    ck_assert_ptr_nonnull(strstr(lines[1], "no longer read"));
    close_fd(ends[0]);
}

TEST(the_next_supervisor_goes_on_within_a_line)
{
    char tail[CAPTURE_TAIL_MAX + 1];
    int fd, held;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_int_eq(write(fd, "one\ntw", 6), 6);
    capture_catch_up(&capture);
    held = crash(&memory);
    ck_assert_int_eq(write(fd, "o\nthree\nstop\n", 13), 13);
    ck_assert_int_eq(capture_adopt(&capture, held), 0);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_lines, 4);
    ck_assert_str_eq(lines[0], "one");
    ck_assert_str_eq(lines[1], "two");
    ck_assert_str_eq(lines[2], "three");
    ck_assert_uint_eq(capture_position(&capture), 19);
    ck_assert_uint_eq(capture_tail(&capture, 0, tail, sizeof(tail)), 19);
    ck_assert_str_eq(tail, "one\ntwo\nthree\nstop\n");
    close_fd(fd);
}

static void on_line_die(void *userdata, const char *line)
{
    _exit(0);
}

TEST(lines_that_were_read_and_not_delivered_come_in_the_next_supervisor)
{
    struct capture_memory *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd, held, status;
    ck_assert_ptr_ne(shared, MAP_FAILED);
    capture.memory = shared;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_int_eq(write(fd, "one\ntwo\nthree\n", 14), 14);
    pid_t pid = fork();
    if (pid == 0) {
        capture.fn = on_line_die;
        capture_catch_up(&capture);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    held = crash(shared);
    ck_assert_int_eq(capture_adopt(&capture, held), 0);
    ck_assert_uint_eq(n_lines, 3); /* the one that was being delivered comes again */
    ck_assert_str_eq(lines[0], "one");
    ck_assert_str_eq(lines[2], "three");
    close_fd(fd);
    ck_assert_int_eq(munmap(shared, sizeof(*shared)), 0);
}

TEST(what_was_read_when_the_supervisor_died_comes_in_the_next_one)
{
    int fd, held;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_int_eq(write(fd, "one\n", 4), 4);
    capture_catch_up(&capture);
    ck_assert_uint_eq(memory.reading_to, 4);
    held = crash(&memory);
    /* As if it had died in a read() of up to eight bytes, which got six. */
    memcpy(memory.tail + 4, "two\nth\xff\xff", 8);
    memory.reading_to = 12;
    ck_assert_int_eq(write(fd, "ree\nstop\n", 9), 9);
    ck_assert_int_eq(capture_adopt(&capture, held), 0);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_lines, 4);
    ck_assert_str_eq(lines[1], "two");
    ck_assert_str_eq(lines[2], "three");
    close_fd(fd);
}

TEST(damaged_memory_loses_what_was_not_delivered_and_nothing_else)
{
    int fd, held;
    ck_assert_int_eq(capture_open(&capture, &fd), 0);
    ck_assert_int_eq(write(fd, "one\ntw", 6), 6);
    capture_catch_up(&capture);
    held = crash(&memory);
    memory.line = UINT64_MAX;
    ck_assert_int_eq(capture_adopt(&capture, held), 0);
    ck_assert_int_eq(write(fd, "o\nstop\n", 7), 7);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_lines, 3);
    ck_assert_str_eq(lines[1], "o");
    close_fd(fd);
}

const struct suite suite = {.setup = set_up_loop, .teardown = tear_down};
