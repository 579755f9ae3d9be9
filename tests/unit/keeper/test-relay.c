/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/relay.h"
#include "tests/unit/suite.h"

static char directory[] = "/tmp/test-relay-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int manager = -1, supervisor = -1;
static struct relay relay;

static void bind_manager(void)
{
    close_fd(manager);
    (void)unlink(address.sun_path);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", directory);
    bind_manager();
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
    supervisor = relay_open(&relay);
    ck_assert_int_ge(supervisor, 0);
}

static void tear_down(void)
{
    close_fd(relay.from);
    close_fd(relay.to);
    close_fd(supervisor);
    close_fd(manager);
    (void)unlink(address.sun_path);
    (void)rmdir(directory);
}

static void say(const char *text)
{
    ck_assert_int_eq(send(supervisor, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void assert_told(const char *text)
{
    char told[RELAY_TEXT_MAX];
    ssize_t n = recv(manager, told, sizeof(told) - 1, 0);
    ck_assert_int_ge(n, 0);
    told[n] = '\0';
    ck_assert_str_eq(told, text);
}

/* Says numbers until one is held back. Returns how many the manager has. */
static int fill_manager(void)
{
    char text[16];
    int n = 0;
    for (; relay.size == 0; n++) {
        (void)snprintf(text, sizeof(text), "%d", n);
        say(text);
        relay_run(&relay);
    }
    return n - 1;
}

static bool may_run(int wait_ms)
{
    struct pollfd wait = relay_wait(&relay);
    return poll(&wait, 1, wait_ms) == 1;
}

TEST(texts_reach_the_manager_in_order)
{
    ck_assert(!may_run(0));
    say("STATUS=x");
    say("READY=1");
    ck_assert(may_run(0));
    relay_run(&relay);
    assert_told("STATUS=x");
    assert_told("READY=1");
}

TEST(an_empty_text_holds_up_no_other)
{
    say("");
    say("READY=1");
    relay_run(&relay);
    assert_told("READY=1");
    ck_assert(!may_run(0));
}

TEST(texts_wait_while_the_manager_is_full)
{
    const int n = fill_manager();
    char text[16];
    ck_assert_int_gt(relay_wait_ms(&relay), 0);
    ck_assert(!may_run(0));
    for (int i = 0; i < n; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        assert_told(text);
    }
    relay_run(&relay);
    (void)snprintf(text, sizeof(text), "%d", n);
    assert_told(text);
    ck_assert_int_eq(relay_wait_ms(&relay), -1);
}

TEST(a_manager_that_starts_anew_hears_what_its_predecessor_had_no_room_for)
{
    char text[16];
    const int n = fill_manager();
    bind_manager();
    relay_run(&relay);
    (void)snprintf(text, sizeof(text), "%d", n);
    assert_told(text);
}

TEST(texts_for_a_manager_that_is_gone_are_dropped)
{
    (void)fill_manager();
    manager = close_fd(manager);
    relay_run(&relay);
    ck_assert(relay.size == 0);
    bind_manager();
    relay_run(&relay);
    ck_assert_int_eq(recv(manager, (char[8]){0}, 8, 0), -1);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
