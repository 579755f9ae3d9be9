/* SPDX-License-Identifier: MIT */

/* The control socket in front of the real core: protocol, bounds, permission, listening. */

#include "supervisor/control/interfaces.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange.h"
#include "tests/unit/control/calls.h"
#include <poll.h>
#include <sys/un.h>

/* ---- what every Varlink service does ---- */

TEST(it_says_what_it_is)
{
    json_t *info = ask(CALL("org.varlink.service.GetInfo", "{}"));

    ck_assert_str_eq(string(info, "product"), "Troupe");
    ck_assert_uint_eq(json_array_size(json_object_get(info, "interfaces")), 5);
}

TEST(each_interface_is_described)
{
    static const char *const names[] = {"org.varlink.service", "io.troupe.Supervisor",
                                        "io.troupe.Jobs", "io.troupe.Actors",
                                        "io.troupe.Schedules"};
    char text[256], line[128];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(text, sizeof(text),
                 CALL("org.varlink.service.GetInterfaceDescription", "{\"interface\":\"%s\"}"),
                 names[i]);
        snprintf(line, sizeof(line), "\ninterface %s\n", names[i]);
        json_t *answer = ask(text);
        ck_assert_ptr_nonnull(strstr(string(answer, "description"), line));
    }
}

TEST(each_method_that_is_described_is_there_and_no_other)
{
    for (struct request_interface *const *i = control_interfaces; *i; i++) {
        struct interface *description = &(*i)->description;
        unsigned described = 0, there = 0;

        for (size_t d = 0; d < description->n; d++)
            described += description->declarations[d].kind == 'm';
        for (const struct request_method *const *table = (*i)->methods; *table; table++)
            for (const struct request_method *method = *table; method->name; method++, there++)
                ck_assert_msg(
                    interface_find(description, 'm', method->name, strlen(method->name)) != NULL,
                    "%s", method->name);
        ck_assert_uint_eq(described, there);
    }
}

/* Checks that the words of a type are those of an enumeration, in its order. */
#define CHECK_WORDS(interface, type, enumeration, to_string, n_words)                              \
    do {                                                                                           \
        const struct interface_field *words = words_of(interface, type);                           \
        for (int i = 0; i < (n_words); i++)                                                        \
            ck_assert_int_eq(interface_word(words, to_string((enum enumeration)i)), i);            \
        ck_assert_uint_eq(count_words(words), (n_words));                                          \
    } while (0)

static const struct interface_field *words_of(const char *interface, const char *type)
{
    for (struct request_interface *const *i = control_interfaces; *i; i++)
        if (strcmp((*i)->name, interface) == 0)
            return interface_find(&(*i)->description, 't', type, strlen(type));
    return NULL;
}

static unsigned count_words(const struct interface_field *words)
{
    unsigned n = 0;

    while (words[n].name)
        n++;
    return n;
}

TEST(words_are_those_of_their_enumerations)
{
    CHECK_WORDS("io.troupe.Jobs", "State", job_state, job_state_to_string, _JOB_N_STATES);
    CHECK_WORDS("io.troupe.Actors", "Kind", actor_kind, actor_kind_to_string, _ACTOR_N_KINDS);
    CHECK_WORDS("io.troupe.Actors", "ExchangeKind", exchange_kind, exchange_kind_to_string,
                _EXCHANGE_N_KINDS);
    CHECK_WORDS("io.troupe.Actors", "Reason", dead_letter_reason, dead_letter_reason_to_string,
                _DEAD_N_REASONS);
    CHECK_WORDS("io.troupe.Supervisor", "Cause", death_cause, death_cause_to_string,
                _DEATH_N_CAUSES);
}

TEST(what_does_not_exist_is_named)
{
    check_refused("InterfaceNotFound", "interface", "io.troupe.Nothing",
                  CALL("io.troupe.Nothing.Do", "{}"));
    check_refused("MethodNotFound", "method", "io.troupe.Jobs.Undo", JOBS("Undo", "{}"));
    check_refused("InvalidParameter", "parameter", "method", CALL("Do", "{}"));
    check_refused("InterfaceNotFound", "interface", "x",
                  CALL("org.varlink.service.GetInterfaceDescription", "{\"interface\":\"x\"}"));
    check_refused("InvalidParameter", "parameter", "extra", SUPERVISOR("GetInfo", "{\"extra\":1}"));
    check_refused("InvalidParameter", "parameter", "upgrade",
                  "{\"method\":\"io.troupe.Supervisor.GetInfo\",\"upgrade\":true}");
}

TEST(a_malformed_message_is_answered_and_ends_the_connection)
{
    check_refused("InvalidParameter", "parameter", "message", "{]");
    ck_assert_ptr_null(fake_receive(client));
}

TEST(calls_in_a_row_are_answered_in_order)
{
    fake_send(client, SUPERVISOR("GetStatus", "{}"));
    fake_send(client, ONEWAY("io.troupe.Supervisor.GetInfo", "{}"));
    fake_send(client, SUPERVISOR("GetInfo", "{}"));
    json_t *answer = parameters_of(fake_receive(client));
    ck_assert_ptr_nonnull(json_object_get(answer, "groups"));
    answer = parameters_of(fake_receive(client));
    ck_assert_str_eq(string(answer, "state"), "running");
}

TEST(a_client_that_sends_no_more_still_gets_its_answer_and_then_the_end)
{
    fake_send(client, SUPERVISOR("GetInfo", "{}"));
    shutdown(client->fd, SHUT_WR);
    parameters_of(fake_receive(client));
    ck_assert_ptr_null(fake_receive(client));
}

/* ---- bounds ---- */

TEST(a_message_beyond_a_mebibyte_is_refused_and_ends_the_connection)
{
    size_t size = CONNECTION_INPUT_MAX + 1, sent = 0;
    char *text = malloc(size);

    memset(text, 'x', size);
    fcntl(client->fd, F_SETFL, O_NONBLOCK);
    while (sent < size) {
        ssize_t n = send(client->fd, text + sent, size - sent, MSG_NOSIGNAL);

        if (n > 0)
            sent += (size_t)n;
        else
            fake_settle();
    }
    free(text);
    json_t *answer = fake_receive(client);
    ck_assert_str_eq(string(answer, "error"), "io.troupe.Supervisor.TooLarge");
    /* The end comes with the answer, not when the supervisor loses patience. */
    ck_assert_ptr_null(fake_receive(client));
    ck_assert_uint_eq(control_n_clients(fake_control), 1);
    fake_disconnect(client);
    fake_settle();
    ck_assert_uint_eq(control_n_clients(fake_control), 0);
    client = fake_connect();
}

TEST(a_client_that_asks_ahead_is_answered_as_it_reads_however_much_it_asked)
{
    static const char text[] =
        CALL("org.varlink.service.GetInterfaceDescription", "{\"interface\":\"io.troupe.Jobs\"}");
    /* Enough for more than 4 MiB of answers; each takes a turn. */
    enum {
        N_CALLS = 900
    };
    static char calls[N_CALLS * sizeof(text)];
    json_t *answer;

    for (unsigned i = 0; i < N_CALLS; i++)
        memcpy(calls + i * sizeof(text), text, sizeof(text));
    ck_assert_int_eq(send(client->fd, calls, sizeof(calls), MSG_NOSIGNAL), sizeof(calls));
    for (unsigned i = 0; i < N_CALLS; i += 10)
        fake_settle();
    for (unsigned i = 0; i < N_CALLS; i++) {
        answer = fake_receive(client);
        ck_assert_ptr_nonnull(answer);
        ck_assert_ptr_null(json_object_get(answer, "error"));
    }
    check_done(SUPERVISOR("GetInfo", "{}"));
}

TEST(a_client_that_is_told_more_than_it_reads_is_cut_off)
{
    static char message[60000];

    memset(message, 'x', sizeof(message) - 1);
    fake_send(client,
              "{\"method\":\"io.troupe.Supervisor.Watch\",\"parameters\":{},\"more\":true}");
    fake_settle();
    /* It may read them later, as long as they are kept. */
    for (unsigned i = 0; i < EVENTS_KEPT; i++)
        event_emit(&fake_parts.events,
                   (struct event){.level = LOG_LEVEL_INFO, .type = "test", .message = message});
    while (fake_receive(client))
        ;
    ck_assert_uint_eq(control_n_clients(fake_control), 0);
}

TEST(many_who_watch_get_an_event_over_many_turns)
{
    enum {
        N = 6
    };
    struct fake_client *clients[N];
    unsigned n_told = 0;
    char byte;

    for (unsigned i = 0; i < N; i++) {
        clients[i] = fake_connect();
        fake_send(clients[i], MORE("io.troupe.Supervisor.Watch", "{}"));
    }
    fake_settle();
    slow_down();
    event_emit(&fake_parts.events,
               (struct event){.level = LOG_LEVEL_INFO, .type = "test", .message = "told"});
    for (unsigned i = 0; i < N; i++)
        n_told += recv(clients[i]->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    ck_assert_uint_lt(n_told, N / 2);
    for (unsigned i = 0; i < N; i++) {
        json_t *events = json_object_get(parameters_of(fake_receive(clients[i])), "events");

        ck_assert_str_eq(string(json_array_get(events, 0), "message"), "told");
        fake_disconnect(clients[i]);
    }
}

TEST(an_idle_client_is_closed_and_one_that_waits_is_not)
{
    fake_daemon.client_idle = 1000;
    struct fake_client *waiting = fake_connect();
    fake_send(waiting, MORE("io.troupe.Supervisor.Watch", "{}"));
    ck_assert_ptr_null(fake_receive(client));
    ck_assert_uint_eq(control_n_clients(fake_control), 1);
    fake_disconnect(waiting);
}

/* ---- permission ---- */

TEST(who_may_change_things)
{
    gid_t groups[] = {5, 70};
    struct peer peer = {.uid = 0};
    struct config_daemon config = {.admin_group = (char *)"operators", .admin_gid = 70};
    const struct config_daemon none = {.admin_gid = 70};
    char needed[PEER_NEEDED_MAX];

    ck_assert(peer_may_change(&peer, &none));
    peer = (struct peer){.uid = geteuid() + 1, .gid = 4};
    ck_assert(!peer_may_change(&peer, &config));
    peer.gid = 70;
    ck_assert(peer_may_change(&peer, &config));
    ck_assert(!peer_may_change(&peer, &none));
    peer.gid = 4;
    peer.groups = groups;
    peer.n_groups = 2;
    ck_assert(peer_may_change(&peer, &config));
    peer.n_groups = 1;
    ck_assert(!peer_may_change(&peer, &config));
    peer_describe_needed(needed, &config);
    ck_assert_ptr_nonnull(strstr(needed, "operators"));
}

TEST(the_kernel_says_who_the_peer_is)
{
    struct peer peer;
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert_int_eq(peer_init(&peer, pair[0]), 0);
    ck_assert_int_eq(peer.pid, getpid());
    ck_assert_uint_eq(peer.uid, geteuid());
    ck_assert_int_eq((int)peer.n_groups, getgroups(0, NULL));
    peer_deinit(&peer);
    close(pair[0]);
    close(pair[1]);
}

/* ---- the listening socket ---- */

TEST(a_path_that_was_left_behind_is_taken_over)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    char path[80];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(path, sizeof(path), "%s2", fake_path);
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    fd = control_listen(path, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0666);
    close(fd);
    unlink(path);
}

/* Listens at the path, and ends as soon as somebody connects. */
static pid_t listen_until_asked(const char *path)
{
    int told[2];
    char byte;

    ck_assert_int_eq(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct pollfd asked = {.fd = control_listen(path, 0), .events = POLLIN};

        if (asked.fd < 0 || write(told[1], "", 1) != 1)
            _exit(1);
        (void)poll(&asked, 1, -1);
        /* Not at once: it is still there when it is looked at. */
        (void)poll(NULL, 0, 100);
        _exit(0);
    }
    close(told[1]);
    ck_assert_int_eq((int)read(told[0], &byte, 1), 1);
    close(told[0]);
    return pid;
}

TEST(a_start_waits_for_a_supervisor_that_is_being_killed)
{
    char path[80];

    snprintf(path, sizeof(path), "%s5", fake_path);
    pid_t pid = listen_until_asked(path);
    int fd = control_listen(path, 60000);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(fd);
    unlink(path);
}

TEST(a_lock_keeps_others_away_even_if_the_socket_is_removed)
{
    int first = -1, second = -1, again;
    char path[80], file[96];

    snprintf(path, sizeof(path), "%s4", fake_path);
    snprintf(file, sizeof(file), "%s.lock", path);
    ck_assert_int_eq(control_lock(path, &first, 0), 0);
    ck_assert_int_eq(control_lock(path, &second, 0), -EADDRINUSE);
    ck_assert_int_eq(second, -1);
    again = first;
    ck_assert_int_eq(control_lock(path, &again, 0), 0);
    ck_assert_int_eq(again, first);
    /* With the file, the lock is lost: its owner makes another one. */
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(control_lock(path, &first, 0), 0);
    ck_assert_int_eq(control_lock(path, &second, 0), -EADDRINUSE);
    control_unlock(path, first);
    ck_assert_int_ne(access(file, F_OK), 0);
    ck_assert_int_eq(control_lock(path, &second, 0), 0);
    control_unlock(path, second);
}

TEST(what_is_no_socket_is_left_alone)
{
    char path[80];

    snprintf(path, sizeof(path), "%s3", fake_path);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    ck_assert_int_eq(control_listen(path, 0), -EEXIST);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(control_listen("/nonexistent-directory/s", 0), -ENOENT);
    ck_assert_int_eq(control_listen("", 0), -ENAMETOOLONG);
}

static void check_farewell(bool restarting, const char *error)
{
    fake_send(client, JOBS("Do", "{\"group\":\"test\"}"));
    fake_settle();
    control_drain(fake_control, restarting);
    json_t *answer = fake_receive(client);
    ck_assert_str_eq(string(answer, "error"), error);
}

TEST(at_the_end_everybody_who_waits_is_answered_and_the_path_is_gone)
{
    check_farewell(false, "io.troupe.Jobs.Stopping");
    ck_assert_int_ne(access(fake_path, F_OK), 0);
}

TEST(who_waits_when_another_supervisor_takes_over_is_told_to_connect_again)
{
    check_farewell(true, "io.troupe.Jobs.Restarting");
}

const struct suite suite = {.setup = connect_client, .teardown = disconnect_client};
