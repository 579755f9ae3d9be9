/* SPDX-License-Identifier: MIT */

/* troupe-exec: the worker for everything that is not linked with libtroupe. See troupe-exec(1). */

#include "shared/base/cleanup.h"
#include "shared/base/standard.h"
#include "worker/exec/run.h"
#include "worker/exec/template.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* What a shell says of a command that it cannot find, or may not run. */
#define STATUS_NOT_FOUND  127
#define STATUS_NOT_RUN    126
#define STATUS_BAD_OPTION 2

static int find_program(struct run_context *context)
{
    const char *program = context->options.argv[0];
    int r = template_resolve(program, &context->path);

    if (r == 0)
        return 0;
    if (r == -ENOENT && !strchr(program, '/'))
        fprintf(stderr, "troupe-exec: %s: no such command in PATH=%s\n", program,
                getenv("PATH") ? getenv("PATH") : "");
    else
        fprintf(stderr, "troupe-exec: %s: %s\n", program,
                r == -EACCES ? "not executable" : strerror(-r));
    return r == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN;
}

/* Pipes must not get the numbers of the standard streams: the child puts its own there. */
static void fill_standard_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    close_fd(fd);
}

static int work(struct run_context *context)
{
    struct troupe_worker *worker;
    int r;

    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, run_job, context);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    if (r < 0)
        fprintf(stderr, "troupe-exec: %s\n", strerror(-r));
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
    struct run_context context = {.path = NULL};
    int r;

    (void)standard_open();
    r = options_parse(&context.options, argc, argv);
    if (r != 0)
        return r == OPTIONS_E_DONE ? EXIT_SUCCESS : STATUS_BAD_OPTION;
    fill_standard_streams();
    /* A command that does not read its input must not end us. */
    (void)signal(SIGPIPE, SIG_IGN);
    r = find_program(&context);
    if (r == 0)
        r = work(&context);
    free(context.path);
    return r;
}
