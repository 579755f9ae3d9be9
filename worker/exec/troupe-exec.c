/* SPDX-License-Identifier: MIT */

/* troupe-exec: the worker that runs a command for each job, see troupe-exec(1). */

#include "shared/base/cleanup.h"
#include "shared/base/standard.h"
#include "worker/exec/leftovers.h"
#include "worker/exec/options.h"
#include "worker/exec/reader.h"
#include "worker/exec/template.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The exit statuses of a shell for a command that is not found, or not executable. */
#define STATUS_NOT_FOUND  127
#define STATUS_NOT_RUN    126
#define STATUS_BAD_OPTION 2

static const char *why_not_found(int error)
{
    if (error == -ENOENT && template_has_private_root())
        return "not in the root of this worker: with PrivateRoot=yes or Profile=strict, name it in "
               "ReadOnlyPaths=, then run 'troupectl reload'";
    return error == -EACCES ? "not executable" : strerror(-error);
}

static int find_program(struct run_context *context)
{
    const char *program = context->options.argv[0];
    int r = template_find_program(program, &context->path);

    if (r == 0)
        return 0;
    if (r == -ENOENT && !strchr(program, '/'))
        fprintf(
            stderr,
            "troupe-exec: %s: no such command in PATH=%s: install it, or correct ExecStart= and "
            "run 'troupectl reload'\n",
            program, getenv("PATH") ? getenv("PATH") : "");
    else
        fprintf(stderr, "troupe-exec: %s: %s\n", program, why_not_found(r));
    return r == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN;
}

static int work(struct run_context *context)
{
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, run_job, context);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    if (r < 0)
        fprintf(stderr, "troupe-exec: %s\n", strerror(-r));
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void on_signal(int signo)
{
    _exit(128 + signo);
}

/* The kernel drops signals that process 1 of a PID namespace has no handler for. */
static void end_by_signals(void)
{
    if (getpid() != 1)
        return;
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGHUP, on_signal);
}

int main(int argc, char *argv[])
{
    struct reader reader = READER_NULL;
    struct run_context context = {.reader = &reader};
    int r;

    (void)standard_open();
    standard_survive_file_limit();
    r = options_parse(&context.options, argc, argv);
    if (r != 0)
        return r == OPTIONS_E_DONE ? EXIT_SUCCESS : STATUS_BAD_OPTION;
    /* A command that closes its input early must not end this process. */
    (void)signal(SIGPIPE, SIG_IGN);
    end_by_signals();
    /* Commands run as the same user, and must not reach other jobs in this memory. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    /* Early, since the reader is a copy of this process and would keep copies of payloads. If this
     * fails, the first job tries again. */
    (void)reader_start(&reader);
    /* If this fails, they end with the worker. */
    (void)leftovers_begin();
    r = find_program(&context);
    if (r == 0)
        r = work(&context);
    (void)reader_end(&reader, 0);
    free(context.path);
    return r;
}
