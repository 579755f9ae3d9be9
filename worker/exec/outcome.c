/* SPDX-License-Identifier: MIT */
#include "worker/exec/outcome.h"

#include "shared/base/interpreter.h"
#include "shared/base/log.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The maximum size of a reason in the supervisor, with a NUL. */
#define TEXT_SIZE 1025
/* The longest pause that libtroupe accepts: 366 days. */
#define PAUSE_SECONDS_MAX (366.0 * 24 * 3600)

static size_t describe_signal(const struct command_end *end, char *text, size_t size)
{
    const char *name = sigabbrev_np(end->code);
    const char *core = end->core_dumped ? " (core dumped)" : "";

    if (name)
        return (size_t)snprintf(text, size, "killed by SIG%s%s", name, core);
    return (size_t)snprintf(text, size, "killed by signal %d%s", end->code, core);
}

/* The kernel names the sender only to the process that handles the signal. */
static size_t describe_termination(const struct command_end *end, char *text, size_t size)
{
    const char *name = sigabbrev_np(end->signal);

    if (end->sender == 0)
        return (size_t)snprintf(text, size, "ended because troupe-exec got SIG%s", name);
    return (size_t)snprintf(text, size,
                            "ended because troupe-exec got SIG%s, sent by process %d of uid %u",
                            name, (int)end->sender, (unsigned)end->sender_uid);
}

/* Copies lines without their priorities, which are for the log; writes a NUL behind them. */
static void copy_lines(char *to, const char *lines, size_t size)
{
    memcpy(to, lines, size);
    size = line_levels_remove(to, size);
    for (size_t i = 0; i < size; i++)
        if (to[i] == '\0')
            to[i] = ' ';
    to[size] = '\0';
}

/* Appends as much of the tail's end as fits, without trailing white space, beginning at a
 * character. */
static void append_tail(const struct command_end *end, char *text, size_t size)
{
    const char *tail = end->tail;
    size_t length = end->tail_size;

    while (length > 0 && strchr(" \n\r\t", tail[length - 1]))
        length--;
    if (length == 0 || size < 4)
        return;
    if (length > size - 3) {
        tail += length - (size - 3);
        length = size - 3;
    }
    while (length > 0 && ((unsigned char)*tail & 0xc0) == 0x80) {
        tail++;
        length--;
    }
    *text++ = ':';
    *text++ = ' ';
    copy_lines(text, tail, length);
}

char *outcome_describe(const struct command_end *end, char *text, size_t size)
{
    size_t length;

    if (end->stop == COMMAND_OVERFLOW)
        length = (size_t)snprintf(text, size, "wrote more to standard output than --max-output=");
    else if (end->stop == COMMAND_TRACED)
        length = (size_t)snprintf(text, size,
                                  "ended in an unknown way, because another process traces it");
    else if (end->stop == COMMAND_UNREAD)
        length = (size_t)snprintf(text, size,
                                  "ended, but its output is lost: its reader was killed, or "
                                  "another process holds the lock of its pipes");
    else if (end->stop == COMMAND_TERMINATED)
        length = describe_termination(end, text, size);
    else if (end->signalled)
        length = describe_signal(end, text, size);
    else
        length = (size_t)snprintf(text, size, "exited with status %d", end->code);
    if (end->start_error < 0 && length < size)
        length += (size_t)snprintf(text + length, size - length, ", before it could be started: %s",
                                   strerror(-end->start_error));
    if (end->hidden && length < size)
        length +=
            (size_t)snprintf(text + length, size - length,
                             ", and the sandbox does not show the file in its argument: if the "
                             "file exists, list it, or a directory above, in ReadOnlyPaths= and "
                             "run 'troupectl reload'");
    if (length < size)
        append_tail(end, text + length, size - length);
    return text;
}

#define PAUSE_LABEL "retry-after: "
#define PAUSE_NONE  UINT64_MAX

/* Returns the pause that the command has chosen by the last line of its standard error, in seconds
 * as in HTTP's header of that name; PAUSE_NONE if it has not. */
static uint64_t chosen_pause(const struct command_end *end)
{
    char tail[COMMAND_TAIL_MAX + 1], *line, *rest;
    size_t length = end->tail_size;
    double seconds;

    while (length > 0 && end->tail[length - 1] == '\n')
        length--;
    memcpy(tail, end->tail, length);
    tail[length] = '\0';
    line = memrchr(tail, '\n', length);
    line = line ? line + 1 : tail;
    if (strncasecmp(line, PAUSE_LABEL, strlen(PAUSE_LABEL)) != 0)
        return PAUSE_NONE;
    seconds = strtod(line + strlen(PAUSE_LABEL), &rest);
    if (rest == line + strlen(PAUSE_LABEL) || *rest != '\0' ||
        !(seconds >= 0 && seconds <= PAUSE_SECONDS_MAX))
        return PAUSE_NONE;
    return (uint64_t)(seconds * USEC_PER_SEC);
}

static int retry(struct troupe_job *job, int code, const struct command_end *end)
{
    const uint64_t pause = end->signalled ? PAUSE_NONE : chosen_pause(end);
    char text[TEXT_SIZE];

    (void)outcome_describe(end, text, sizeof(text));
    if (pause == PAUSE_NONE)
        return troupe_job_retry(job, code, text);
    return troupe_job_retry_after(job, pause, code, text);
}

static int reject(struct troupe_job *job, const struct command_end *end)
{
    if (end->output_size > 0)
        return troupe_job_reject(job, end->code, end->output, end->output_size);
    return troupe_job_reject(job, end->code, end->tail, end->tail_size);
}

int outcome_end_job(struct troupe_job *job, const struct command_end *end,
                    const struct outcome_policy *policy)
{
    int code;

    switch (end->stop) {
    case COMMAND_CANCELLED:
        return troupe_job_cancelled(job);
    case COMMAND_OVERFLOW:
        code = EFBIG;
        break;
    case COMMAND_TRACED:
        code = ECHILD;
        break;
    case COMMAND_UNREAD:
        code = EIO;
        break;
    case COMMAND_TERMINATED:
        code = EINTR;
        break;
    default:
        if (!end->signalled && end->code == 0)
            return troupe_job_succeed(job, end->output, end->output_size);
        if (!end->signalled && policy->rejected[end->code & 255])
            return reject(job, end);
        code = end->signalled ? 128 + end->code : end->code;
    }
    return retry(job, code, end);
}

/* Joins the words with blanks, cut to `size`. */
static void join(char *text, size_t size, char *const *argv)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; argv[i] && length < size - 1; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? " " : "", argv[i]);
}

static uint64_t usec_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * USEC_PER_SEC + (uint64_t)time.tv_usec;
}

int outcome_report_crash(struct troupe_job *job, const struct command_end *end, char *const *argv)
{
    char command[256];
    const struct troupe_crash crash = {
        .struct_size = sizeof(crash),
        .pid = end->pid,
        .signal = end->code,
        .core_dumped = end->core_dumped,
        .uptime_usec = end->uptime,
        .user_usec = usec_of(end->usage.ru_utime),
        .system_usec = usec_of(end->usage.ru_stime),
        .max_rss_bytes = (uint64_t)end->usage.ru_maxrss * 1024,
        .command = command,
    };

    if (end->stop != COMMAND_NOT_STOPPED || !end->signalled)
        return 0;
    join(command, sizeof(command), argv);
    return troupe_job_crashed(job, &crash);
}

/* Returns why the program cannot run. execve(2) returns ENOENT even for a script that exists but
 * whose interpreter does not. */
static const char *why_not_run(const char *path, int error, char *clause)
{
    const char *fault = NULL;

    if (error == -ENOENT || error == -EACCES)
        fault = interpreter_fault(path, clause, INTERPRETER_TEXT);
    if (error == -ENOENT && !fault && access(path, F_OK) == 0)
        return "it exists, but its loader does not: it may be of another architecture";
    return fault ? fault : strerror(-error);
}

int outcome_end_unstarted(struct troupe_job *job, const struct outcome_program *program, int error)
{
    char text[TEXT_SIZE], clause[INTERPRETER_TEXT];
    const bool final = error == -EINVAL || error == -E2BIG || error == -EFBIG;

    if (error == -EINVAL)
        snprintf(text, sizeof(text), "the payload or key has a NUL byte and cannot be an argument");
    else if (error == -E2BIG)
        snprintf(text, sizeof(text), "the payload is too long for an argument");
    else if (error == -EFBIG)
        snprintf(text, sizeof(text),
                 "the payload or checkpoint is above the limit on the size of files "
                 "(RLIMIT_FSIZE)");
    else
        snprintf(text, sizeof(text), "cannot run %s: %s", program->name,
                 why_not_run(program->path, error, clause));
    if (final)
        return troupe_job_reject(job, -error, text, strlen(text));
    return troupe_job_retry(job, -error, text);
}
