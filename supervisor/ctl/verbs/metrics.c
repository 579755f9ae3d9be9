/* SPDX-License-Identifier: MIT */

/* The verb metrics: numbers as text for monitoring systems. */

#include "supervisor/metrics/metrics.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Everybody may read it, as the umask allows: a collector runs as another user. */
static mode_t file_mode(void)
{
    const mode_t mask = umask(0);

    (void)umask(mask);
    return 0644 & ~mask;
}

/* Writes another file beside it, whose name no collector reads, and renames that. 0 or -errno. */
static int replace_file(const char *path, const char *text, size_t size)
{
    _cleanup_free_ char *new = NULL;
    int fd, r;

    if (asprintf(&new, "%s.XXXXXX", path) < 0) {
        new = NULL;
        return -ENOMEM;
    }
    fd = mkostemp(new, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = write_all(fd, text, size);
    if (r == 0 && fchmod(fd, file_mode()) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(new, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(new);
    return r;
}

static int write_text(const struct invocation *invocation, const char *text, size_t size)
{
    const char *path = invocation->options.output;
    int r;

    if (!path)
        return fwrite(text, 1, size, stdout) == size ? EXIT_OK : EXIT_FAILED;
    r = replace_file(path, text, size);
    if (r == 0)
        return EXIT_OK;
    complain("%s: %s", SAFE(path), strerror(-r));
    return EXIT_FAILED;
}

static int print_text(const struct invocation *invocation, const json_t *reply)
{
    size_t size = 0;
    _cleanup_free_ char *text = metrics_to_text(reply, &size);

    return text ? write_text(invocation, text, size) : call_no_memory();
}

int verb_metrics(struct invocation *invocation)
{
    json_auto_t *reply = NULL;
    int r;

    if (invocation->options.json && invocation->options.output) {
        complain(
            "--output writes metrics, and --json prints the supervisor's reply: give only one");
        return EXIT_USAGE;
    }
    r = parts_of_metrics(invocation, &reply);
    if (r != EXIT_OK)
        return r;
    return invocation->options.json ? output_json(invocation, reply)
                                    : print_text(invocation, reply);
}
