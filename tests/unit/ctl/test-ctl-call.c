/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "tests/unit/suite.h"
#include <sys/un.h>

/* A supervisor that says what it is told to, whatever it is asked: pieces are separate writes. */
static char directory[64], path[96];
static int listener;
static pid_t server;

static void set_up(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(directory, "/tmp/test-ctl-call-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/sock", directory);
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
}

static void tear_down(void)
{
    int status;

    close(listener);
    if (server > 0) {
        ck_assert_int_eq(waitpid(server, &status, 0), server);
        ck_assert_int_eq(status, 0);
    }
    unlink(path);
    rmdir(directory);
}

/* `expected`: the request, without its NUL; the server stays until the client goes, or goes at
 * once. */
static void serve(const char *expected, const char *const *pieces, const size_t *sizes, size_t n,
                  bool stay)
{
    char request[4096];
    ssize_t size = 0;

    server = fork();
    ck_assert_int_ge(server, 0);
    if (server > 0)
        return;
    int fd = accept(listener, NULL, NULL);
    while (size == 0 || request[size - 1] != '\0') {
        ssize_t got = read(fd, request + size, sizeof(request) - (size_t)size);

        if (got <= 0)
            _exit(2);
        size += got;
    }
    if (expected && strcmp(request, expected) != 0) {
        fprintf(stderr, "request: %s\n", request);
        _exit(3);
    }
    for (size_t i = 0; i < n; i++)
        if (send(fd, pieces[i], sizes[i], MSG_NOSIGNAL) != (ssize_t)sizes[i])
            _exit(4);
    if (stay)
        (void)!read(fd, request, sizeof(request));
    _exit(0);
}

static void serve_text(const char *expected, const char *reply)
{
    size_t size = strlen(reply) + 1;

    serve(expected, &reply, &size, 1, true);
}

static struct invocation invocation_of_test(void)
{
    struct invocation invocation = {.options = OPTIONS_DEFAULTS, .client = VARLINK_CLIENT_NULL};

    invocation.options.socket = path;
    return invocation;
}

static int call_once(usec_t timeout, json_t *parameters, json_t **ret)
{
    struct invocation invocation = invocation_of_test();

    invocation.options.timeout = timeout;
    int r = call(&invocation, "a.b.C", parameters, false, ret);
    varlink_client_deinit(&invocation.client);
    return r;
}

TEST(without_parameters_none_are_needed)
{
    json_t *reply;

    serve_text("{\"method\":\"a.b.C\",\"parameters\":{}}", "{}");
    ck_assert_int_eq(call_once(0, json_object(), &reply), EXIT_OK);
    ck_assert_uint_eq(json_object_size(reply), 0);
    json_decref(reply);
}

TEST(a_reply_in_pieces_is_put_together)
{
    static const char *const pieces[] = {"{\"para", "meters\":{\"n\"", ":7}}", ""};
    static const size_t sizes[] = {6, 12, 4, 1};
    json_t *reply;

    serve(NULL, pieces, sizes, 4, true);
    ck_assert_int_eq(call_once(0, json_object(), &reply), EXIT_OK);
    ck_assert_int_eq(field_int(reply, "n"), 7);
    json_decref(reply);
}

TEST(silence_ends_with_the_time_out)
{
    json_t *reply;

    serve(NULL, NULL, NULL, 0, true);
    ck_assert_int_eq(call_once(20 * USEC_PER_MSEC, json_object(), &reply), EXIT_TIMEOUT);
}

TEST(a_supervisor_that_goes_away_is_unreachable)
{
    static const char *const half[] = {"{\"parameters\":{"};
    static const size_t size[] = {15};
    json_t *reply;

    serve(NULL, half, size, 1, false);
    ck_assert_int_eq(call_once(0, json_object(), &reply), EXIT_UNREACHABLE);
}

TEST(what_is_no_varlink_is_unreachable_too)
{
    json_t *reply;

    serve_text(NULL, "HTTP/1.1 400 Bad Request");
    ck_assert_int_eq(call_once(0, json_object(), &reply), EXIT_UNREACHABLE);
}

TEST(parameters_that_are_no_object_are_no_varlink)
{
    json_t *reply;

    serve_text(NULL, "{\"parameters\":[1]}");
    ck_assert_int_eq(call_once(0, json_object(), &reply), EXIT_UNREACHABLE);
}

TEST(where_nobody_listens_it_is_unreachable)
{
    json_t *reply;

    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(call_once(0, json_object(), &reply), EXIT_UNREACHABLE);
}

struct seen {
    int64_t numbers[8];
    size_t n;
    bool last;
};

static int remember(struct invocation *invocation, const json_t *parameters, bool last,
                    void *userdata)
{
    struct seen *seen = userdata;

    seen->numbers[seen->n++] = field_int(parameters, "n");
    seen->last = last;
    return EXIT_OK;
}

TEST(a_stream_ends_with_the_reply_that_does_not_continue)
{
    static const char stream[] = "{\"continues\":true,\"parameters\":{\"n\":1}}\0"
                                 "{\"continues\":true,\"parameters\":{\"n\":2}}\0"
                                 "{\"parameters\":{\"n\":3}}\0"
                                 "{\"parameters\":{\"n\":4}}";
    static const char *const pieces[] = {stream};
    static const size_t sizes[] = {sizeof(stream)};
    struct invocation invocation = invocation_of_test();
    struct seen seen = {0};

    serve("{\"method\":\"a.b.C\",\"parameters\":{},\"more\":true}", pieces, sizes, 1, true);
    ck_assert_int_eq(call_more(&invocation, "a.b.C", json_object(), true, remember, &seen),
                     EXIT_OK);
    ck_assert_uint_eq(seen.n, 3);
    ck_assert_int_eq(seen.numbers[2], 3);
    ck_assert(seen.last);
    varlink_client_deinit(&invocation.client);
}

TEST(every_documented_error_has_its_exit_status)
{
    static const struct {
        const char *error;
        int status;
    } cases[] = {
        {"io.troupe.Jobs.NoSuchGroup", EXIT_NOT_FOUND},
        {"io.troupe.Jobs.NoSuchJob", EXIT_NOT_FOUND},
        {"io.troupe.Supervisor.NoSuchTarget", EXIT_NOT_FOUND},
        {"io.troupe.Jobs.Busy", EXIT_BUSY},
        {"io.troupe.Jobs.JobExists", EXIT_BUSY},
        {"io.troupe.Jobs.CancelAlreadyRequested", EXIT_BUSY},
        {"io.troupe.Jobs.TooManyClients", EXIT_BUSY},
        {"io.troupe.Supervisor.Stopping", EXIT_BUSY},
        {"io.troupe.Jobs.BadId", EXIT_USAGE},
        {"io.troupe.Jobs.BadOption", EXIT_USAGE},
        {"io.troupe.Jobs.BadPayload", EXIT_USAGE},
        {"io.troupe.Supervisor.BadSize", EXIT_USAGE},
        {"io.troupe.Supervisor.NotPermitted", EXIT_NOT_PERMITTED},
        {"io.troupe.Jobs.NotAnActor", EXIT_FAILED},
        {"io.troupe.Jobs.BadVersion", EXIT_FAILED},
        {"io.troupe.Supervisor.BadConfiguration", EXIT_INVALID},
        {"org.varlink.service.MethodNotFound", EXIT_FAILED},
        {"something.else.Entirely", EXIT_FAILED},
    };
    json_t *nothing = json_object();

    for (size_t i = 0; i < ELEMENTS(cases); i++)
        ck_assert_int_eq(explain_error(cases[i].error, nothing), cases[i].status);
    json_decref(nothing);
}

TEST(refusals_of_the_fast_path_have_the_same_exit_statuses)
{
    ck_assert_int_eq(explain_refused("", "g", -EBUSY, ""), EXIT_BUSY);
    ck_assert_int_eq(explain_refused("", "g", -EEXIST, ""), EXIT_BUSY);
    ck_assert_int_eq(explain_refused("", "g", -ENOENT, ""), EXIT_NOT_FOUND);
    ck_assert_int_eq(explain_refused("", "g", -EINVAL, "why"), EXIT_USAGE);
    ck_assert_int_eq(explain_refused("", "g", -EPERM, ""), EXIT_NOT_PERMITTED);
    ck_assert_int_eq(explain_refused("", "g", -EPIPE, ""), EXIT_UNREACHABLE);
    ck_assert_int_eq(explain_connect("/s", -EACCES), EXIT_NOT_PERMITTED);
    ck_assert_int_eq(explain_connect("/s", -EUSERS), EXIT_BUSY);
    ck_assert_int_eq(explain_connect("/s", -ENOENT), EXIT_UNREACHABLE);
}

TEST(payloads_survive_whatever_their_bytes_are)
{
    static const struct {
        const char *data;
        size_t size;
        const char *encoding;
    } cases[] = {{"", 0, "utf8"},       {"text ü\n\x1b", 9, "utf8"},
                 {"a\0b", 3, "base64"}, {"\xff", 1, "base64"},
                 {"\xc3", 1, "base64"}, {"\x80\x81\x82\x83", 4, "base64"}};

    for (size_t i = 0; i < ELEMENTS(cases); i++) {
        json_t *object = json_pack("{s:o}", "p", field_payload_new(cases[i].data, cases[i].size));
        char *data;
        size_t size;

        ck_assert_str_eq(field_text(json_object_get(object, "p"), "encoding"), cases[i].encoding);
        ck_assert_int_eq(field_payload(object, "p", &data, &size), 0);
        ck_assert_uint_eq(size, cases[i].size);
        ck_assert_int_eq(memcmp(data, cases[i].data, size), 0);
        free(data);
        json_decref(object);
    }
}

TEST(a_payload_that_is_absent_or_wrong_is_told_apart)
{
    json_t *object = json_pack("{s:n, s:s, s:{s:s,s:s}}", "null", "text", "x", "bad", "encoding",
                               "base64", "data", "@@@@");
    char *data = NULL;
    size_t size;

    ck_assert_int_eq(field_payload(object, "null", &data, &size), 0);
    ck_assert_ptr_null(data);
    ck_assert_int_eq(field_payload(object, "absent", &data, &size), 0);
    ck_assert_ptr_null(data);
    ck_assert_int_eq(field_payload(object, "text", &data, &size), -EPROTO);
    ck_assert_int_eq(field_payload(object, "bad", &data, &size), -EPROTO);
    json_decref(object);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
