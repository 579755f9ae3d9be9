/* SPDX-License-Identifier: MIT */
/* The job handler of troupe-exec: runs the command for a job. */
#include "worker/exec/options.h"

#include "shared/base/cleanup.h"
#include "worker/exec/template.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct watcher {
    struct troupe_job *job;
    struct command_progress told;
    bool discarded; /* the log says so */
};

/* Publishes the command's pid and output size, or why it cannot start yet; without news, sends a
 * heartbeat. Returns whether the job is cancelled. */
static bool tick(void *userdata, const struct command_progress *progress)
{
    struct watcher *watcher = userdata;
    struct troupe_worker *worker = troupe_job_worker(watcher->job);
    const struct command_progress *told = &watcher->told;
    char state[256];
    int size;

    if (progress->pid > 0)
        size = snprintf(state, sizeof(state), "{\"pid\":%d,\"output_bytes\":%zu}", progress->pid,
                        progress->output_size);
    else
        size = snprintf(state, sizeof(state), "{\"waiting\":\"it cannot be started now: %s\"}",
                        strerror(-progress->start_error));
    if (progress->pid != told->pid || progress->start_error != told->start_error ||
        progress->output_size != told->output_size)
        (void)troupe_worker_publish_state(worker, state, (size_t)size);
    else
        troupe_worker_heartbeat(worker);
    watcher->told = *progress;
    return troupe_job_is_cancelled(watcher->job);
}

/* Ids have no NUL byte. */
static int set_parents(const struct template_values *values)
{
    _cleanup_free_ char *parents = strndup(values->parents, values->parents_size);

    if (!parents)
        return -1;
    return *parents != '\0' ? setenv("TROUPE_JOB_PARENTS", parents, 1)
                            : unsetenv("TROUPE_JOB_PARENTS");
}

/* That of an earlier job does not stay. */
static int set_traceparent(const char *traceparent)
{
    return traceparent ? setenv("TRACEPARENT", traceparent, 1) : unsetenv("TRACEPARENT");
}

/* Passes on an item or a checkpoint. The first one that is too large is logged. */
static void take(void *userdata, const struct reader_message *message)
{
    struct watcher *watcher = userdata;
    const bool item = message->tag == READER_ITEM;
    int r = item ? troupe_job_emit(watcher->job, message->data, message->size)
                 : troupe_job_checkpoint(watcher->job, message->data, message->size);

    if (r != -EMSGSIZE || watcher->discarded)
        return;
    watcher->discarded = true;
    fputs(item ? "troupe-exec: discarding an item that the command emitted: the limits are 4096 "
                 "bytes and InlineMax=\n"
               : "troupe-exec: discarding a checkpoint of the command: the limits are 65536 bytes "
                 "and half of MailboxSize= less InlineMax=\n",
          stderr);
}

/* Sets the variables that name descriptors of the command. */
static int set_descriptors(void)
{
    static char emit[32], checkpoint[32], last[40];

    snprintf(emit, sizeof(emit), "TROUPE_EMIT_FD=%d", COMMAND_EMIT_FD);
    snprintf(checkpoint, sizeof(checkpoint), "TROUPE_CHECKPOINT_FD=%d", COMMAND_CHECKPOINT_FD);
    snprintf(last, sizeof(last), "TROUPE_LAST_CHECKPOINT_FD=%d", COMMAND_LAST_FD);
    return putenv(emit) != 0 || putenv(checkpoint) != 0 || putenv(last) != 0 ? -ENOMEM : 0;
}

/* Sets the job's variables, which the command inherits. */
static int set_variables(const struct template_values *values)
{
    static char id[sizeof("TROUPE_JOB_ID=") + TROUPE_ID_MAX], attempt[32], key[512];

    snprintf(id, sizeof(id), "TROUPE_JOB_ID=%s", values->id);
    snprintf(attempt, sizeof(attempt), "TROUPE_JOB_ATTEMPT=%u", values->attempt);
    if (putenv(id) != 0 || putenv(attempt) != 0 || set_parents(values) != 0 ||
        set_traceparent(values->traceparent) != 0)
        return -ENOMEM;
    /* A variable cannot hold a NUL byte. */
    if (values->key_size == 0 || memchr(values->key, '\0', values->key_size))
        return unsetenv("TROUPE_JOB_KEY");
    snprintf(key, sizeof(key), "TROUPE_JOB_KEY=%.*s", (int)values->key_size,
             (const char *)values->key);
    return putenv(key) != 0 ? -ENOMEM : 0;
}

/* The supervisor ends all processes that a dead worker leaves: it can kill a whole cgroup. */
static _Noreturn void end_with_leftovers(void)
{
    fputs(
        "troupe-exec: processes of the job cannot be killed: this worker ends together with them\n",
        stderr);
    (void)raise(SIGKILL);
    _exit(EXIT_FAILURE);
}

static int end_unstarted(struct troupe_job *job, const struct run_context *context, int error)
{
    return outcome_end_unstarted(
        job, &(struct outcome_program){.name = context->options.argv[0], .path = context->path},
        error);
}

static int run_command(struct troupe_job *job, const struct run_context *context,
                       const struct template_values *values, char **argv)
{
    _cleanup_(command_end_deinit)
    struct command_end end = COMMAND_END_NULL;
    struct watcher watcher = {.job = job};
    struct command_options options = {
        .path = context->path,
        .argv = argv,
        .reader = context->reader,
        .max_output = context->options.max_output,
        .kill_after = context->options.kill_after,
        .tick = tick,
        .channels = context->options.channels,
        .take = take,
        .userdata = &watcher,
    };
    int r;

    r = set_variables(values);
    if (r < 0)
        return r;
    if (options.channels) {
        r = set_descriptors();
        if (r < 0)
            return r;
        options.last = troupe_job_last_checkpoint(job, &options.last_size);
    }
    if (context->options.literal || !template_takes_payload(context->options.argv)) {
        options.input = values->payload;
        options.input_size = values->payload_size;
    }
    r = command_run(&options, &end);
    if (r < 0)
        return end_unstarted(job, context, r);
    if (!options.input && (end.code != 0 || end.signalled))
        end.hidden = template_is_hidden(values->payload, values->payload_size);
    /* The configured arguments, since the expanded ones may hold contents of the job. */
    r = outcome_report_crash(job, &end, context->options.argv);
    if (r == 0)
        r = outcome_end_job(job, &end, &context->options.policy);
    /* The job has ended; now the signal takes its usual effect on this process. */
    if (end.signal != 0)
        (void)raise(end.signal);
    if (end.leftovers)
        end_with_leftovers();
    return r;
}

int run_job(struct troupe_job *job, void *userdata)
{
    const struct run_context *context = userdata;
    struct template_values values = {
        .id = troupe_job_id(job),
        .attempt = troupe_job_attempt(job),
        .traceparent = troupe_job_traceparent(job),
    };
    char **argv;
    int r;

    values.payload = troupe_job_payload(job, &values.payload_size);
    values.key = troupe_job_key(job, &values.key_size);
    values.parents = troupe_job_parents(job, &values.parents_size);
    if (context->options.literal)
        return run_command(job, context, &values, (char **)(uintptr_t)context->options.argv);
    r = template_expand(context->options.argv, &values, &argv);
    if (r < 0)
        return end_unstarted(job, context, r);
    r = run_command(job, context, &values, argv);
    template_free(argv);
    return r;
}
