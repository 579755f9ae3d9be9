/* SPDX-License-Identifier: MIT */
#include "supervisor/event/event.h"
#include "supervisor/event/output-log.h"
#include "supervisor/process/journal.h"
#include "supervisor/process/process.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

static char directory[] = "/tmp/test-journal-XXXXXX";
static char path[64], entry[256 * 1024];
static int server = -1;
static struct journal journal = JOURNAL_NULL;

static void bind_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    server = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(server, 0);
    ck_assert_int_eq(bind(server, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/socket", directory);
    bind_server();
    ck_assert_int_eq(journal_init(&journal, "trouped", path), 0);
}

static void tear_down(void)
{
    journal_deinit(&journal);
    journal_deinit(&journal);
    close_fd(server);
    (void)unlink(path);
    (void)rmdir(directory);
}

/* What journald would see: the datagram, or the contents of the sealed file that came instead. */
static ssize_t receive(void)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec piece = {.iov_base = entry, .iov_len = sizeof(entry) - 1};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(server, &message, MSG_DONTWAIT);
    const struct cmsghdr *header = n == 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header) {
        int fd;
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
        ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & seals, seals);
        n = pread(fd, entry, sizeof(entry) - 1, 0);
        close_fd(fd);
    }
    entry[n > 0 ? n : 0] = '\0';
    return n;
}

TEST(an_entry_carries_priority_identifier_message_and_fields)
{
    ck_assert(journal_send(&journal, LOG_LEVEL_WARNING, NULL,
                           LOG_FIELDS({"TROUPE_WORKER", "digest/0"}, {"TROUPE_JOB", NULL}),
                           "hello"));
    ck_assert_int_gt(receive(), 0);
    ck_assert_str_eq(
        entry, "PRIORITY=4\nSYSLOG_IDENTIFIER=trouped\nMESSAGE=hello\nTROUPE_WORKER=digest/0\n");
}

TEST(a_workers_line_has_its_own_identifier)
{
    ck_assert(journal_send(&journal, LOG_LEVEL_INFO, "digest", LOG_NO_FIELDS, "hello"));
    ck_assert_int_gt(receive(), 0);
    ck_assert_str_eq(entry, "PRIORITY=6\nSYSLOG_IDENTIFIER=digest\nMESSAGE=hello\n");
}

static void write_output(struct process *process, const char *text)
{
    static int fd = -1;

    if (process->output.fd < 0)
        ck_assert_int_eq(capture_open(&process->output, &fd), 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    capture_catch_up(&process->output);
}

TEST(a_workers_output_carries_its_own_pid)
{
    struct event_bus events;
    struct process_context context = {.journal = &journal, .events = &events};
    struct process process;
    static struct capture_memory memory;
    ck_assert_int_eq(event_bus_init(&events), 0);
    context.loop = new_loop();
    work_queue_init(&context.outputs, context.loop);
    process_init(&process, &context,
                 &(struct process_subject){.group = "digest", .worker = "digest/0", .key = ""},
                 &memory);
    process.pid = 4711;
    write_output(&process, "hello\n");
    ck_assert_int_gt(receive(), 0);
    ck_assert_str_eq(entry, "PRIORITY=6\nSYSLOG_IDENTIFIER=digest\nMESSAGE=hello\n"
                            "TROUPE_GROUP=digest\nTROUPE_WORKER=digest/0\n"
                            "SYSLOG_PID=4711\nOBJECT_PID=4711\n");
    process_deinit(&process);
    loop_free(context.loop);
    event_bus_deinit(&events);
}

static bool job_of_process(struct process *process, struct process_job *ret)
{
    *ret = (struct process_job){"nightly", 7};
    return true;
}

TEST(M6_a_line_of_a_job_carries_its_id_key_and_priority)
{
    static const struct process_handler handler = {.job = job_of_process};
    struct event_bus events;
    struct process_context context = {.journal = &journal, .events = &events};
    struct output_log log;
    struct process_subject subject = {
        .group = "mail", .worker = "mail/acme/0", .key = "acme", .log = &log};
    struct process process;
    static struct capture_memory memory;
    ck_assert_int_eq(event_bus_init(&events), 0);
    context.loop = new_loop();
    work_queue_init(&context.outputs, context.loop);
    output_log_init(subject.log);
    process_init(&process, &context, &subject, &memory);
    process.handler = &handler;
    write_output(&process, "<2>hello\n");
    ck_assert_int_gt(receive(), 0);
    ck_assert_str_eq(entry, "PRIORITY=2\nSYSLOG_IDENTIFIER=mail\nMESSAGE=hello\n"
                            "TROUPE_GROUP=mail\nTROUPE_WORKER=mail/acme/0\n"
                            "TROUPE_JOB=nightly\nTROUPE_KEY=acme\n");
    ck_assert_str_eq(output_log_after(subject.log, 0)->text, "hello");
    ck_assert_str_eq(output_log_after(subject.log, 0)->job, "nightly");
    ck_assert_uint_eq(output_log_after(subject.log, 0)->job_at, 7);
    process.level_prefix = false;
    write_output(&process, "<2>hello\n");
    ck_assert_int_gt(receive(), 0);
    ck_assert_ptr_nonnull(strstr(entry, "PRIORITY=6\n"));
    ck_assert_ptr_nonnull(strstr(entry, "MESSAGE=<2>hello\n"));
    process_deinit(&process);
    loop_free(context.loop);
    output_log_deinit(subject.log);
    event_bus_deinit(&events);
}

TEST(a_value_with_a_newline_cannot_forge_a_field)
{
    static const char expected[] = "MESSAGE\n\x14\0\0\0\0\0\0\0hello\n_UID=0\nX=y\nend\n";
    ck_assert(
        journal_send(&journal, LOG_LEVEL_INFO, NULL, LOG_NO_FIELDS, "hello\n_UID=0\nX=y\nend"));
    ssize_t n = receive();
    ck_assert_int_ge(n, (ssize_t)sizeof(expected) - 1);
    ck_assert_mem_eq(entry + n - (ssize_t)(sizeof(expected) - 1), expected, sizeof(expected) - 1);
}

TEST(more_fields_than_there_is_room_for_are_left_out)
{
    struct log_field fields[100];
    for (size_t i = 0; i < ELEMENTS(fields); i++)
        fields[i] = (struct log_field){"FIELD", "with\nnewline"};
    ck_assert(journal_send(&journal, LOG_LEVEL_INFO, NULL, (struct log_fields){fields, 100}, "m"));
    ck_assert_int_gt(receive(), 0);
}

TEST(a_journal_that_takes_nothing_does_not_block_and_what_was_dropped_is_reported)
{
    unsigned sent = 0;
    while (journal_send(&journal, LOG_LEVEL_INFO, NULL, LOG_NO_FIELDS, "filling"))
        sent++;
    ck_assert(!journal_send(&journal, LOG_LEVEL_INFO, NULL, LOG_NO_FIELDS, "lost"));
    for (unsigned i = 0; i < sent; i++)
        ck_assert_int_gt(receive(), 0);
    ck_assert(journal_send(&journal, LOG_LEVEL_INFO, NULL, LOG_NO_FIELDS, "again"));
    ck_assert_int_gt(receive(), 0);
    ck_assert_ptr_nonnull(strstr(entry, "PRIORITY=4\n"));
    ck_assert_ptr_nonnull(strstr(entry, "MESSAGE=2 log entries were dropped"));
    ck_assert_int_gt(receive(), 0);
    ck_assert_ptr_nonnull(strstr(entry, "MESSAGE=again\n"));
    ck_assert_int_lt(receive(), 0);
    ck_assert(journal_send(&journal, LOG_LEVEL_INFO, NULL, LOG_NO_FIELDS, "more"));
    ck_assert_int_gt(receive(), 0);
    ck_assert_ptr_nonnull(strstr(entry, "MESSAGE=more\n"));
}

TEST(a_journald_that_comes_back_is_found_again)
{
    close_fd(server);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!journal_send(&journal, LOG_LEVEL_INFO, NULL, LOG_NO_FIELDS, "lost"));
    bind_server();
    ck_assert(journal_send(&journal, LOG_LEVEL_INFO, NULL, LOG_NO_FIELDS, "found"));
    ck_assert_int_gt(receive(), 0);
    ck_assert_ptr_nonnull(strstr(entry, "MESSAGE=1 log entries were dropped"));
}

TEST(the_log_goes_to_it_until_it_is_torn_down)
{
    log_init("trouped", LOG_LEVEL_INFO);
    journal_log_to(&journal);
    log_warning("job %d", 7);
    ck_assert_int_gt(receive(), 0);
    ck_assert_ptr_nonnull(strstr(entry, "MESSAGE=job 7\n"));
    journal_deinit(&journal);
    log_set_max_level(LOG_LEVEL_ERROR);
    log_warning("not shown");
    ck_assert_int_lt(receive(), 0);
}

TEST(standard_error_is_the_journal_only_if_the_environment_names_it)
{
    struct stat st;
    char stream[64];
    ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
    unsetenv("JOURNAL_STREAM");
    ck_assert(!journal_is_stderr());
    (void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    ck_assert(journal_is_stderr());
    (void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino + 1);
    setenv("JOURNAL_STREAM", stream, 1);
    ck_assert(!journal_is_stderr());
    setenv("JOURNAL_STREAM", "rubbish", 1);
    ck_assert(!journal_is_stderr());
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
