/* SPDX-License-Identifier: MIT */
#include "supervisor/web/guard.h"
#include "tests/unit/suite.h"
#include <microhttpd.h>

static const char *const names[] = {"box.example", "192.0.2.1"};
static struct guard guard;
static struct guard_request request;
static char path[64];

static void set_up(void)
{
    guard = (struct guard){.hosts = names, .n_hosts = 2, .allow_changes = true};
    strcpy(guard.token.text, "0123456789abcdef");
    guard.token.size = 16;
    request = (struct guard_request){.n_hosts = 1, .host = "localhost:7670"};
    strcpy(path, "/tmp/test-guard-XXXXXX");
    close_fd(mkstemp(path));
}

static void tear_down(void)
{
    unlink(path);
}

static void expect(unsigned status)
{
    const char *reason = NULL;

    ck_assert_uint_eq(guard_check(&guard, &request, &reason), status);
    ck_assert((reason != NULL) == (status != 0));
}

static void make_change(void)
{
    request.change = true;
    request.content_type = "application/json";
    request.authorization = "Bearer 0123456789abcdef";
}

TEST(knows_this_machine_and_the_names_that_were_given)
{
    static const char *const known[] = {"localhost",       "LOCALHOST",     "127.0.0.1:1",
                                        "[::1]",           "[::1]:65535",   "box.example",
                                        "Box.Example:443", "192.0.2.1:7670"};
    static const char *const unknown[] = {
        "",
        "evil.example",
        "localhost.",
        "localhost:",
        "localhost:x",
        "localhost:123456",
        "local host",
        "127.0.0.1.evil",
        "[::1",
        "[::1]x",
        "::1",
        "box.example/",
        "@localhost",
        "[]",
        "notbox.example",
    };

    for (size_t i = 0; i < ELEMENTS(known); i++)
        ck_assert_msg(guard_knows_host(&guard, known[i]), "%s", known[i]);
    for (size_t i = 0; i < ELEMENTS(unknown); i++)
        ck_assert_msg(!guard_knows_host(&guard, unknown[i]), "%s", unknown[i]);
}

TEST(looking_needs_nothing_but_the_right_host)
{
    expect(0);
    request.host = "evil.example";
    expect(MHD_HTTP_MISDIRECTED_REQUEST);
    request.n_hosts = 0;
    request.host = NULL;
    expect(MHD_HTTP_BAD_REQUEST);
}

TEST(a_body_has_one_length)
{
    request.n_lengths = 1;
    expect(0);
    request.n_lengths = 2;
    expect(MHD_HTTP_BAD_REQUEST);
}

TEST(other_sites_are_refused_but_may_link_to_the_page)
{
    request.fetch_site = "cross-site";
    expect(MHD_HTTP_FORBIDDEN);
    request.page = true;
    expect(0);
    request.page = false;
    request.fetch_site = "same-origin";
    request.origin = "https://localhost:7670";
    expect(0);
    request.origin = "https://localhost:7671";
    expect(MHD_HTTP_FORBIDDEN);
}

TEST(a_change_needs_all_of_permission_json_and_token)
{
    make_change();
    expect(0);
    request.content_type = "application/json; charset=utf-8";
    expect(0);
    request.content_type = "application/jsonp";
    expect(MHD_HTTP_UNSUPPORTED_MEDIA_TYPE);
    make_change();
    request.authorization = "Bearer 0123456789abcdeg";
    expect(MHD_HTTP_UNAUTHORIZED);
    make_change();
    guard.allow_changes = false;
    expect(MHD_HTTP_FORBIDDEN);
}

TEST(the_size_of_a_change_is_bounded)
{
    make_change();
    request.content_length = "65536";
    expect(0);
    request.content_length = "65537";
    expect(MHD_HTTP_CONTENT_TOO_LARGE);
    request.content_length = "18446744073709551617";
    expect(MHD_HTTP_CONTENT_TOO_LARGE);
}

TEST(looking_needs_the_token_if_that_is_required)
{
    guard.require_token = true;
    expect(MHD_HTTP_UNAUTHORIZED);
    request.authorization = "bearer 0123456789abcdef";
    expect(0);
}

TEST(a_token_matches_nothing_but_itself)
{
    static const char *const others[] = {"",
                                         "Bearer ",
                                         "Bearer 0123456789abcde",
                                         "Bearer 0123456789abcdef0",
                                         "Bearer  0123456789abcdef",
                                         "Basic 0123456789abcdef",
                                         "0123456789abcdef"};
    const struct token none = {.size = 0};

    for (size_t i = 0; i < ELEMENTS(others); i++)
        ck_assert_msg(!token_matches(&guard.token, others[i]), "%s", others[i]);
    ck_assert(!token_matches(&guard.token, NULL));
    ck_assert(!token_matches(&none, "Bearer "));
}

static int read_file(const char *text, mode_t mode)
{
    struct token token;
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    ck_assert_int_eq(chmod(path, mode), 0);
    int r = token_read(&token, path);
    ck_assert(r < 0 ? token.size == 0 : strncmp(token.text, text, token.size) == 0);
    return r;
}

TEST(a_token_file_has_a_long_line_that_others_cannot_read)
{
    char long_text[TOKEN_SIZE_MAX + 2];

    ck_assert_int_eq(read_file("0123456789abcdef\nmore", 0600), 0);
    ck_assert_int_eq(read_file("0123456789abcdef", 0640), 0);
    ck_assert_int_eq(read_file("0123456789abcdef", 0644), -EPERM);
    ck_assert_int_eq(read_file("0123456789abcdef", 0660), -EPERM);
    ck_assert_int_eq(read_file("0123456789abcde\n", 0600), -EINVAL);
    ck_assert_int_eq(read_file("0123456789 abcdef", 0600), -EINVAL);
    memset(long_text, 'x', sizeof(long_text));
    long_text[TOKEN_SIZE_MAX + 1] = '\0';
    ck_assert_int_eq(read_file(long_text, 0600), -EINVAL);
    long_text[TOKEN_SIZE_MAX] = '\0';
    ck_assert_int_eq(read_file(long_text, 0600), 0);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
