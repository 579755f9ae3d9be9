/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/message.h"
#include "tests/unit/suite.h"

static struct message out, in;
static struct message_spawn taken;
static int pair[2];

static void set_up(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void tear_down(void)
{
    close_fd(pair[0]);
    close_fd(pair[1]);
}

static char *const argv[] = {"/bin/echo", "", "two words", NULL};
static char *const environment[] = {"A=1", "B=", NULL};

static const struct sandbox SANDBOX = {
    .bounding = 6,
    .ambient = 4,
    .no_new_privileges = true,
    .strict = true,
    .scopes = 2,
    .set_umask = true,
    .umask = 027,
    .filter = {"abcdefghABCDEFGH", 16},
};

static const struct sandbox_files FILES = {
    .hidepid = SANDBOX_HIDEPID_INVISIBLE,
    .only_processes = true,
    .n_paths = 2,
    .paths = {{SANDBOX_READ_ONLY, false, "/"}, {SANDBOX_READ_WRITE, true, "/srv/data"}},
};

static const struct sandbox_network NETWORK = {{1, 2}};

static const struct spawn_options OPTIONS = {
    .argv = argv,
    .environment = environment,
    .working_directory = "/tmp",
    .fds = (const struct spawn_fd[]){{1, 7}, {2, 1}},
    .n_fds = 2,
    .rlimits = (const struct spawn_rlimit[]){{RLIMIT_CORE, {1, 2}}},
    .n_rlimits = 1,
    .report_fd = 2,
    .cgroup_fd = 1,
    .set_user = true,
    .uid = 4711,
    .gid = 4712,
    .groups = (const gid_t[]){1, 2, 3},
    .n_groups = 3,
    .sandbox = &SANDBOX,
    .files = &FILES,
    .network = &NETWORK,
    .pipe_output = true,
    .private_pids = true,
    .set_nice = true,
    .nice = -5,
    .set_oom_score_adjust = true,
    .oom_score_adjust = -17,
};

static int transfer(void)
{
    ck_assert_int_eq(message_send(pair[0], &out), 0);
    return message_receive(pair[1], &in);
}

TEST(a_request_arrives_as_it_was_put)
{
    const struct spawn_options *options = &taken.options;
    ck_assert_int_eq(message_put_spawn(&out, 42, &OPTIONS), 0);
    ck_assert_int_eq(transfer(), 0);
    ck_assert_uint_eq(message_kind_of(&in), MESSAGE_SPAWN);
    ck_assert_int_eq(message_take_spawn(&in, &taken), 0);
    ck_assert_uint_eq(in.record.id, 42);
    for (size_t i = 0; i < ELEMENTS(argv) - 1; i++)
        ck_assert_str_eq(options->argv[i], argv[i]);
    ck_assert_ptr_null(options->argv[3]);
    ck_assert_str_eq(options->environment[1], "B=");
    ck_assert_ptr_null(options->environment[2]);
    ck_assert_str_eq(options->working_directory, "/tmp");
    ck_assert_uint_eq(options->n_fds, 2);
    ck_assert_int_eq(options->fds[0].number, 7);
    ck_assert_int_eq(options->fds[1].number, 1);
    ck_assert_uint_eq(in.n_fds, 6);
    ck_assert_int_eq(options->network->storage[0], in.fds[4]);
    ck_assert_int_eq(options->network->storage[1], in.fds[5]);
    for (size_t i = 0; i < in.n_fds; i++)
        ck_assert_int_eq(fcntl(in.fds[i], F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(options->rlimits[0].resource, RLIMIT_CORE);
    ck_assert_uint_eq(options->rlimits[0].limit.rlim_max, 2);
    ck_assert(options->set_user && options->uid == 4711 && options->gid == 4712);
    ck_assert_uint_eq(options->n_groups, 3);
    ck_assert_uint_eq(options->groups[2], 3);
    ck_assert_uint_eq(options->sandbox->bounding, 6);
    ck_assert_uint_eq(options->sandbox->ambient, 4);
    ck_assert(options->sandbox->no_new_privileges && options->sandbox->set_umask);
    ck_assert(options->sandbox->strict);
    ck_assert_uint_eq(options->sandbox->scopes, 2);
    ck_assert_uint_eq(options->sandbox->umask, 027);
    ck_assert_uint_eq(options->sandbox->filter.size, 16);
    ck_assert_mem_eq(options->sandbox->filter.code, "abcdefghABCDEFGH", 16);
    ck_assert(options->pipe_output);
    ck_assert(options->private_pids && !options->private_ipc);
    ck_assert_int_eq(options->files->hidepid, SANDBOX_HIDEPID_INVISIBLE);
    ck_assert(options->files->only_processes);
    ck_assert_uint_eq(options->files->n_paths, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct sandbox_path *path = &options->files->paths[i];
        ck_assert_int_eq(path->kind, FILES.paths[i].kind);
        ck_assert_int_eq(path->optional, FILES.paths[i].optional);
        ck_assert_str_eq(path->path, FILES.paths[i].path);
    }
    ck_assert(options->set_nice && options->nice == -5);
    ck_assert(options->set_oom_score_adjust && options->oom_score_adjust == -17);
    message_close_fds(&in);
}

TEST(what_is_cut_off_or_has_more_at_its_end_is_refused)
{
    ck_assert_int_eq(message_put_spawn(&out, 42, &OPTIONS), 0);
    const size_t whole = out.size;
    for (size_t size = 0; size <= whole + 1; size++) {
        memcpy(&in, &out, offsetof(struct message, data) + whole + 1);
        in.size = size;
        int r = message_kind_of(&in) == MESSAGE_SPAWN ? message_take_spawn(&in, &taken) : -EBADMSG;
        ck_assert_int_eq(r, size == whole ? 0 : -EBADMSG);
    }
    in.size = whole;
    in.n_fds--;
    ck_assert_uint_eq(message_kind_of(&in), MESSAGE_SPAWN);
    ck_assert_int_eq(message_take_spawn(&in, &taken), -EBADMSG);
}

/* Whatever it says, taking it apart stays within its bounds (this is for the sanitizers). */
TEST(any_bytes_are_taken_apart_safely)
{
    srand(1);
    for (int round = 0; round < 20000; round++) {
        ck_assert_int_eq(message_put_spawn(&in, 42, &OPTIONS), 0);
        for (int i = 0; i < 3; i++)
            in.data[4 + (size_t)rand() % (in.size - 4)] = (uint8_t)rand();
        ck_assert_uint_eq(message_kind_of(&in), MESSAGE_SPAWN);
        int r = message_take_spawn(&in, &taken);
        ck_assert(r == 0 || r == -EBADMSG);
    }
}

TEST(a_process_without_an_id_is_refused)
{
    ck_assert_int_eq(message_put_spawn(&out, 0, &OPTIONS), 0);
    ck_assert_int_eq(transfer(), 0);
    ck_assert_uint_eq(message_kind_of(&in), MESSAGE_SPAWN);
    ck_assert_int_eq(message_take_spawn(&in, &taken), -EBADMSG);
    message_close_fds(&in);
}

TEST(what_is_too_large_is_refused_before_it_is_sent)
{
    static char large[MESSAGE_SIZE_MAX], *many[MESSAGE_STRINGS_MAX + 2];
    struct spawn_options options = OPTIONS;
    memset(large, 'x', sizeof(large) - 1);
    options.environment = (char *const[]){large, NULL};
    ck_assert_int_eq(message_put_spawn(&out, 1, &options), -E2BIG);
    for (size_t i = 0; i <= MESSAGE_STRINGS_MAX; i++)
        many[i] = "x";
    options.environment = many;
    ck_assert_int_eq(message_put_spawn(&out, 1, &options), -E2BIG);
    options = OPTIONS;
    options.n_groups = SPAWN_GROUPS_MAX + 1;
    options.groups = calloc(options.n_groups, sizeof(gid_t));
    ck_assert_int_eq(message_put_spawn(&out, 1, &options), -E2BIG);
    free((void *)options.groups);
}

TEST(the_largest_request_arrives)
{
    static char large[MESSAGE_SIZE_MAX - 1024];
    struct spawn_options options = OPTIONS;
    const int size = 4 * (int)MESSAGE_SIZE_MAX;
    memset(large, 'x', sizeof(large) - 1);
    options.environment = (char *const[]){large, NULL};
    (void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    ck_assert_int_eq(message_put_spawn(&out, 1, &options), 0);
    ck_assert_int_eq(transfer(), 0);
    ck_assert_uint_eq(message_kind_of(&in), MESSAGE_SPAWN);
    ck_assert_int_eq(message_take_spawn(&in, &taken), 0);
    ck_assert_str_eq(taken.options.environment[0], large);
    message_close_fds(&in);
}

/* The kernel reports the unread one first. */
TEST(what_a_supervisor_sent_last_arrives_although_it_has_left_a_reply_unread)
{
    (void)message_begin(&out, MESSAGE_EXITED, 7);
    ck_assert_int_eq(message_send(pair[1], &out), 0);
    (void)message_begin(&out, MESSAGE_RELEASE, 7);
    ck_assert_int_eq(message_send(pair[0], &out), 0);
    pair[0] = close_fd(pair[0]);
    ck_assert_int_eq(message_receive(pair[1], &in), 0);
    ck_assert_uint_eq(message_kind_of(&in), MESSAGE_RELEASE);
    ck_assert_int_eq(message_receive(pair[1], &in), -EPIPE);
}

TEST(what_is_held_arrives_as_it_was_put)
{
    message_begin(&out, MESSAGE_HELD, 7)->how.code = 3;
    ck_assert_int_eq(message_put_held(&out, "bytes", 5, (int[]){1, 2}, 2), 0);
    message_put_fd(&out, 0);
    ck_assert_int_eq(transfer(), 0);
    ck_assert_uint_eq(message_kind_of(&in), MESSAGE_HELD);
    ck_assert(in.record.id == 7 && in.record.how.code == 3 && in.record.pid == 0);
    ck_assert(in.record.size == 5 && in.record.n_fds == 2 && in.n_fds == 3);
    ck_assert_mem_eq(in.record.bytes, "bytes", 5);
    message_close_fds(&in);
}

TEST(a_record_that_is_cut_off_or_has_more_at_its_end_is_none)
{
    const int fds[HOLD_FDS_MAX + 1] = {0};
    (void)message_begin(&out, MESSAGE_HOLD, 7);
    ck_assert_int_eq(message_put_held(&out, "bytes", 5, fds, 2), 0);
    const size_t whole = out.size;
    for (size_t size = 0; size <= whole + 1; size++) {
        out.size = size;
        ck_assert_uint_eq(message_kind_of(&out), size == whole ? MESSAGE_HOLD : 0);
    }
    out.record.size = UINT16_MAX;
    out.size = whole - 5 + UINT16_MAX;
    ck_assert_uint_eq(message_kind_of(&out), 0);
    ck_assert_int_eq(message_put_held(&out, NULL, 0, fds, HOLD_FDS_MAX + 1), -E2BIG);
    ck_assert_int_eq(message_put_held(&out, out.data, HOLD_BYTES_MAX + 1, NULL, 0), -E2BIG);
}

TEST(a_full_channel_and_a_closed_one_are_told)
{
    int r;
    ck_assert_int_eq(message_receive(pair[1], &in), -EAGAIN);
    (void)message_begin(&out, MESSAGE_KILL, 1);
    while ((r = message_send(pair[0], &out)) == 0)
        ;
    ck_assert_int_eq(r, -EAGAIN);
    close_fd(pair[0]);
    pair[0] = -1;
    while ((r = message_receive(pair[1], &in)) == 0)
        ;
    ck_assert_int_eq(r, -EPIPE);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
