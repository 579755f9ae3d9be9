/* SPDX-License-Identifier: MIT */
#include "shared/base/reader.h"
#include "supervisor/ctl/map/window.h"
#include "tests/unit/suite.h"

#define PIECE_MAX ((size_t)1 << 20)

static struct window window;

static void start(size_t size, const char *lines)
{
    ck_assert_int_eq(window_init(&window, size), 0);
    window.patient = true;
    for (; *lines != '\0'; lines++)
        ck_assert_int_eq(window_add(&window, lines, 1), 0);
}

static void teardown(void)
{
    window_deinit(&window);
}

/* Submits whatever may be submitted; returns how many. */
static size_t submit_all(usec_t now)
{
    struct window_line *line;
    size_t n = 0;

    for (; (line = window_ready(&window, now)); n++)
        window_submitted(&window, line);
    return n;
}

static int end(uint64_t cookie, int error, usec_t now)
{
    const struct troupe_result result = {
        .cookie = cookie, .error = error, .reason = "", .data = ""};

    return window_ended(&window, &result, now);
}

/* The lines that can be written now, in the order in which they are. */
static const char *written(void)
{
    static char text[4096];
    const struct window_line *line;
    size_t n = 0;

    while ((line = window_front(&window))) {
        text[n++] = line->input[0];
        window_drop(&window);
    }
    text[n] = '\0';
    return text;
}

TEST(results_leave_in_the_order_of_the_input)
{
    start(4, "abcd");
    ck_assert(window_full(&window));
    ck_assert_uint_eq(submit_all(0), 4);
    ck_assert_int_eq(end(2, 0, 0), 0);
    ck_assert_int_eq(end(1, 0, 0), 0);
    ck_assert_str_eq(written(), "");
    ck_assert_int_eq(end(0, 0, 0), 0);
    ck_assert_str_eq(written(), "abc");
    ck_assert(!window_full(&window));
    ck_assert_int_eq(end(3, 0, 0), 0);
    ck_assert_str_eq(written(), "d");
    ck_assert(window_empty(&window));
}

TEST(a_line_whose_connection_was_lost_waits_by_its_id_and_ends_once)
{
    struct window_line *line;

    start(4, "abcd");
    ck_assert_uint_eq(submit_all(0), 4);
    ck_assert_int_eq(end(1, 0, 0), 0);
    ck_assert_int_eq(end(2, -ECONNRESET, 0), WINDOW_E_DOUBTFUL);
    ck_assert_int_eq(end(0, -ECONNRESET, 0), WINDOW_E_DOUBTFUL);
    ck_assert_int_eq(end(3, -ECONNRESET, 0), WINDOW_E_DOUBTFUL);
    ck_assert_int_eq(window_detach(&window), 0);
    ck_assert_ptr_null(window_ready(&window, 0)); /* none is submitted again */
    for (uint64_t number = 0; (line = window_doubtful(&window)); number += number == 0 ? 2 : 1) {
        ck_assert_uint_eq(line->number, number);
        window_awaited(&window, line);
    }
    ck_assert_int_eq(end(0, 0, 0), 0);
    ck_assert_int_eq(end(0, 0, 0), WINDOW_E_STRANGE);
    ck_assert_str_eq(written(), "ab");
    /* The new supervisor does not have it; then the connection is lost once more. */
    ck_assert_int_eq(end(2, -ESRCH, 0), 0);
    ck_assert_int_eq(window_front(&window)->result.error, -ECONNRESET);
    ck_assert_int_eq(end(3, -ECONNRESET, 0), WINDOW_E_DOUBTFUL);
    window_lose(&window);
    ck_assert_ptr_null(window_doubtful(&window));
    ck_assert_str_eq(written(), "cd");
    ck_assert(window_empty(&window));
}

static void await_all(void)
{
    struct window_line *line;

    while ((line = window_doubtful(&window)))
        window_awaited(&window, line);
}

TEST(lines_that_a_durable_group_does_not_know_are_submitted_again)
{
    start(3, "abc");
    window.durable = window.repeats = true;
    ck_assert_uint_eq(submit_all(0), 3);
    for (uint64_t i = 0; i < 3; i++)
        ck_assert_int_eq(end(i, -ECONNRESET, 0), WINDOW_E_DOUBTFUL);
    await_all();
    ck_assert_int_eq(end(0, 0, 0), 0);
    ck_assert_int_eq(end(1, -ESRCH, 0), WINDOW_E_REFUSED);
    ck_assert_int_eq(end(2, -ESRCH, 0), WINDOW_E_REFUSED);
    ck_assert_uint_eq(submit_all(0), 2);
    ck_assert_int_eq(end(1, 0, 0), 0);
    /* It was accepted nevertheless. */
    ck_assert_int_eq(end(2, -EEXIST, 0), WINDOW_E_DOUBTFUL);
    await_all();
    ck_assert_int_eq(end(2, 0, 0), 0);
    ck_assert_str_eq(written(), "abc");
}

TEST(a_line_that_may_have_been_accepted_is_never_refused)
{
    start(2, "ab");
    window.durable = window.repeats = true;
    ck_assert_uint_eq(submit_all(0), 2);
    ck_assert_int_eq(end(0, -ECONNRESET, 0), WINDOW_E_DOUBTFUL);
    ck_assert_int_eq(end(1, -ECONNRESET, 0), WINDOW_E_DOUBTFUL);
    await_all();
    ck_assert_int_eq(end(0, -EIO, 0), 0);
    ck_assert_int_eq(window_front(&window)->result.error, -ECONNRESET);
    window_drop(&window);
    ck_assert_int_eq(end(1, -ESRCH, 0), WINDOW_E_REFUSED);
    ck_assert_uint_eq(submit_all(0), 1);
    ck_assert_int_eq(end(1, -ENOENT, 0), 0);
    ck_assert_int_eq(window_front(&window)->result.error, -ECONNRESET);
}

TEST(lines_wait_while_their_durable_group_is_stopping)
{
    start(2, "ab");
    window.durable = window.repeats = true;
    ck_assert_uint_eq(submit_all(0), 2);
    ck_assert_int_eq(end(0, -ECONNRESET, 0), WINDOW_E_DOUBTFUL);
    await_all();
    ck_assert_int_eq(end(1, -ESHUTDOWN, 0), WINDOW_E_REFUSED);
    ck_assert_int_eq(end(0, -ESHUTDOWN, 0), WINDOW_E_DOUBTFUL);
    ck_assert_ptr_null(window_ready(&window, window.hold - 1));
    ck_assert_uint_eq(submit_all(window.hold), 1);
    window_deinit(&window);
    start(1, "a");
    ck_assert_uint_eq(submit_all(0), 1);
    ck_assert_int_eq(end(0, -ESHUTDOWN, 0), 0);
}

TEST(detached_results_stay_as_they_are)
{
    const struct troupe_result result = {.cookie = 1, .reason = "why", .data = "what", .size = 4};

    start(2, "ab");
    ck_assert_uint_eq(submit_all(0), 2);
    ck_assert_int_eq(window_ended(&window, &result, 0), 0);
    ck_assert_int_eq(window_detach(&window), 0);
    ck_assert_int_eq(window_detach(&window), 0);
    ck_assert_int_eq(end(0, 0, 0), 0);
    window_drop(&window);
    ck_assert_mem_eq(window_front(&window)->result.data, "what", 4);
    ck_assert_uint_eq(window_front(&window)->result.size, 4);
    ck_assert_str_eq(window_front(&window)->result.reason, "why");
    ck_assert_ptr_ne(window_front(&window)->result.data, result.data);
}

TEST(refused_lines_are_submitted_again_in_their_order_after_a_pause)
{
    start(4, "abcd");
    ck_assert_uint_eq(submit_all(0), 4);
    ck_assert_int_eq(end(2, -EBUSY, 0), WINDOW_E_REFUSED);
    ck_assert_int_eq(end(1, -EBUSY, 0), WINDOW_E_REFUSED);
    ck_assert_ptr_null(window_ready(&window, window.hold - 1));
    ck_assert_uint_eq(window_ready(&window, window.hold)->number, 1);
    ck_assert_uint_eq(submit_all(window.hold), 2);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(end(i, 0, window.hold), 0);
    ck_assert_str_eq(written(), "abcd");
}

TEST(other_errors_end_a_line)
{
    start(2, "ab");
    ck_assert_uint_eq(submit_all(0), 2);
    ck_assert_int_eq(end(0, -EMSGSIZE, 0), 0);
    ck_assert_int_eq(window_front(&window)->result.error, -EMSGSIZE);
}

TEST(results_of_what_is_not_under_way_are_strange)
{
    start(4, "ab");
    ck_assert_int_eq(end(0, 0, 0), WINDOW_E_STRANGE);
    ck_assert_uint_eq(submit_all(0), 2);
    ck_assert_int_eq(end(7, 0, 0), WINDOW_E_STRANGE);
    ck_assert_int_eq(end(0, 0, 0), 0);
    ck_assert_int_eq(end(0, 0, 0), WINDOW_E_STRANGE);
    ck_assert_str_eq(written(), "a");
    ck_assert_int_eq(end(0, 0, 0), WINDOW_E_STRANGE);
}

TEST(giving_up_keeps_what_is_under_way)
{
    start(4, "abcd");
    window.durable = true;
    window_submitted(&window, window_ready(&window, 0));
    window_submitted(&window, window_ready(&window, 0));
    (void)end(0, -ESHUTDOWN, 0);
    ck_assert_uint_eq(window_give_up(&window), 3);
    ck_assert(!window_empty(&window));
    ck_assert_int_eq(end(1, 0, 0), 0);
    ck_assert_str_eq(written(), "b");
    ck_assert(window_empty(&window));
}

/* Random ends, refusals and orders against the one thing that counts. */
TEST(no_line_is_lost_doubled_or_out_of_order)
{
    enum {
        N_LINES = 20000,
        SIZE = 16
    };
    unsigned seed = (unsigned)time(NULL);
    uint64_t n_added = 0, n_written = 0, under_way[SIZE];
    usec_t now = 0;

    printf("seed %u\n", seed);
    ck_assert_int_eq(window_init(&window, SIZE), 0);
    window.durable = true;
    while (n_written < N_LINES) {
        struct window_line *line;
        size_t n = 0;

        while (n_added < N_LINES && !window_full(&window)) {
            char text[16];
            int size = snprintf(text, sizeof(text), "%d", (int)n_added++);

            ck_assert_int_eq(window_add(&window, text, (size_t)size), 0);
        }
        (void)submit_all(now);
        for (uint64_t i = window.first; i < window.next; i++)
            if (window.lines[i % SIZE].state == WINDOW_SUBMITTED)
                under_way[n++] = i;
        ck_assert_uint_eq(n, window.n_submitted);
        if (n > 0)
            (void)end(under_way[(size_t)rand_r(&seed) % n], rand_r(&seed) % 4 == 0 ? -ESHUTDOWN : 0,
                      now);
        while ((line = (struct window_line *)window_front(&window))) {
            ck_assert_uint_eq(strtoul(line->input, NULL, 10), n_written++);
            window_drop(&window);
        }
        now = window.hold > now ? window.hold : now;
    }
    ck_assert(window_empty(&window));
}

/* ---- the input ---- */

static void read_pieces(const char *input, size_t input_size, char separator, const char *expected)
{
    const char *line;
    char got[256] = "";
    size_t size;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(write(fds[1], input, input_size), (ssize_t)input_size);
    close(fds[1]);
    struct reader reader = reader_make(fds[0], separator, false, PIECE_MAX);
    while (reader_next(&reader, 0, &line, &size) == 0) {
        strncat(got, line, size);
        strcat(got, "|");
    }
    ck_assert_str_eq(got, expected);
    ck_assert_int_eq(reader_next(&reader, 0, &line, &size), READER_E_END);
    reader_deinit(&reader);
    close(fds[0]);
}

TEST(empty_lines_count_and_the_last_newline_may_lack)
{
    read_pieces("a\n\nb\n", 5, '\n', "a||b|");
    read_pieces("a\nlast", 6, '\n', "a|last|");
    read_pieces("\n", 1, '\n', "|");
    read_pieces("", 0, '\n', "");
}

TEST(with_another_separator_newlines_are_content)
{
    read_pieces("a\nb\0c", 5, '\0', "a\nb|c|");
}

TEST(a_line_that_is_not_complete_is_not_handed_out)
{
    const char *line;
    size_t size;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    struct reader reader = reader_make(fds[0], '\n', false, PIECE_MAX);
    ck_assert_int_eq(write(fds[1], "ab", 2), 2);
    ck_assert_int_eq(reader_next(&reader, 0, &line, &size), READER_E_LATER);
    ck_assert_int_eq(write(fds[1], "c\nd", 3), 3);
    ck_assert_int_eq(reader_next(&reader, 0, &line, &size), 0);
    ck_assert_uint_eq(size, 3);
    ck_assert_int_eq(memcmp(line, "abc", 3), 0);
    ck_assert_int_eq(reader_next(&reader, 0, &line, &size), READER_E_LATER);
    reader_deinit(&reader);
    close(fds[0]);
    close(fds[1]);
}

TEST(lines_longer_than_the_buffer_arrive_whole)
{
    enum {
        SIZE = 300000
    };
    char path[] = "/tmp/test-ctl-window-XXXXXX", *text = malloc(SIZE);
    struct reader reader;
    const char *line;
    size_t size;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(unlink(path), 0);
    memset(text, 'x', SIZE);
    text[SIZE - 100] = '\n';
    ck_assert_int_eq(write(fd, text, SIZE), SIZE);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    reader = reader_make(fd, '\n', false, PIECE_MAX);
    ck_assert_int_eq(reader_next(&reader, 0, &line, &size), 0);
    ck_assert_uint_eq(size, SIZE - 100);
    ck_assert_int_eq(reader_next(&reader, 0, &line, &size), 0);
    ck_assert_uint_eq(size, 99);
    reader_deinit(&reader);
    close(fd);
    free(text);
}

TEST(input_without_separators_does_not_fill_the_memory)
{
    const char *line;
    size_t size;
    int fd = open("/dev/zero", O_RDONLY);

    ck_assert_int_ge(fd, 0);
    struct reader reader = reader_make(fd, '\n', false, PIECE_MAX);
    ck_assert_int_eq(reader_next(&reader, 0, &line, &size), -EMSGSIZE);
    ck_assert_uint_lt(reader.allocated, 4 * PIECE_MAX);
    reader_deinit(&reader);
    close(fd);
}

const struct suite suite = {.teardown = teardown};
