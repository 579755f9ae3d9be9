/* SPDX-License-Identifier: MIT */
#include "tests/world/programs.h"

#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "shared/protocol/payload-wire.h"
#include "shared/protocol/template-wire.h"
#include "supervisor/keeper/spawn.h"
#include "tests/world/machine.h"
#include "tests/world/model.h"
#include "tests/world/sched.h"
#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOVED (SIM_TRACE_FD + 100)

#define BYTES_MAX 1500000

/* A job's payload is its index, followed by bytes of fill(). */

/* Below and above InlineMax=; the largest one is stored in pieces. */
static uint32_t draw_size(void)
{
    static const uint32_t sizes[] = {3000, 100000, 100000, 100000, 100000, BYTES_MAX, 0, 0, 100};
    const uint64_t large = sim_below(6), small = 6 + sim_below(3);

    return sizes[sim_one_in(sim_chances[SIM_LARGE]) ? large : small];
}

/* How long a client waits for ends before it goes on. */
#define PAUSE_MAX (200 * USEC_PER_MSEC)
/* How often a client asks for a job that may be on disk, where some rows could not be read. */
#define ASKED_MAX 1000

/* The checkpoint of an attempt, followed by bytes of fill(). */
struct saved {
    uint32_t index, attempt;
};

/* Returns `head_size` bytes of `head`, followed by `size` others. */
static uint8_t *fill(const void *head, size_t head_size, uint32_t size, uint32_t index)
{
    uint8_t *bytes = malloc(head_size + size + 1);

    for (size_t i = 0; i < head_size; i++)
        bytes[i] = ((const uint8_t *)head)[i];
    for (uint32_t i = 0; i < size; i++)
        bytes[head_size + i] = (uint8_t)(index * 7 + i);
    return bytes;
}

static bool is_filled(const uint8_t *bytes, size_t size, uint32_t index)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (uint8_t)(index * 7 + i))
            return false;
    return true;
}

void program_prepare(struct program_start *ret, const struct spawn_options *options)
{
    for (char *const *at = options->environment; *at && ret->n_variables < PROGRAM_VARIABLES; at++)
        if (strncmp(*at, "TROUPE_", 7) == 0)
            ret->variables[ret->n_variables++] = strdup(*at);
    ret->n_fds = options->n_fds;
    memcpy(ret->fds, options->fds, options->n_fds * sizeof(*options->fds));
    (void)snprintf(ret->name, sizeof(ret->name), "%s",
                   options->argv[1] ? options->argv[1] : options->argv[0]);
}

void program_keep_fds(const struct spawn_fd *fds, size_t n)
{
    int moved[SPAWN_FDS_MAX];

    for (size_t i = 0; i < n; i++)
        moved[i] = fcntl(fds[i].fd, F_DUPFD_CLOEXEC, MOVED);
    (void)syscall(SYS_close_range, 3, SIM_TRACE_FD - 1, 0);
    (void)syscall(SYS_close_range, SIM_CLOCK + 1, MOVED - 1, 0);
    for (size_t i = 0; i < n; i++)
        (void)dup2(moved[i], fds[i].number);
    (void)syscall(SYS_close_range, MOVED, ~0U, 0);
}

/* ---- workers ---- */

/* Works until it is cancelled, or for ever if `deaf`. */
static int work_on(struct troupe_job *job, uint32_t index, bool deaf)
{
    while (deaf || !troupe_job_is_cancelled(job)) {
        sim_rest(100 * USEC_PER_MSEC + sim_below(USEC_PER_SEC));
        model_works(index);
    }
    model_stops(index);
    return troupe_job_cancelled(job);
}

static int succeed(struct troupe_job *job, uint32_t index)
{
    const uint32_t size = model_job(index)->result_size;
    _cleanup_free_ uint8_t *result = fill(NULL, 0, size, index);

    return troupe_job_succeed(job, result, size);
}

static int retry(struct troupe_job *job, uint32_t index)
{
    const usec_t pause = sim_below(3 * USEC_PER_SEC), until = sim_now() + pause;
    int r;

    if (index % 2)
        return troupe_job_retry(job, 4, "again");
    r = troupe_job_retry_after(job, pause, 4, "again");
    if (r == 0)
        model_pauses(index, until);
    return r;
}

/* Looks at the checkpoint of an earlier attempt, and saves one. */
static void save(struct troupe_job *job, uint32_t index)
{
    static const uint32_t sizes[] = {0, 100, 20000};
    _cleanup_free_ uint8_t *bytes = NULL;
    const uint32_t padding = sizes[index / 2 % ELEMENTS(sizes)];
    struct saved saved = {0};
    size_t size;
    const uint8_t *found = troupe_job_last_checkpoint(job, &size);

    if (size >= sizeof(saved))
        memcpy(&saved, found, sizeof(saved)); /* it may not be aligned */
    model_found(index, saved.attempt,
                size == 0 || (size == sizeof(saved) + padding && saved.index == index &&
                              is_filled(found + sizeof(saved), padding, index)));
    saved = (struct saved){index, troupe_job_attempt(job)};
    model_job(index)->maybe_saved = saved.attempt;
    bytes = fill(&saved, sizeof(saved), padding, index);
    if (troupe_job_checkpoint(job, bytes, sizeof(saved) + padding) == 0)
        model_saved(index);
}

/* Returns the job's index, and whether the payload is right. */
static uint32_t look_at(struct troupe_job *job, bool *ret_right)
{
    size_t size;
    const uint8_t *payload = troupe_job_payload(job, &size);
    uint32_t index;

    if (strchr(troupe_job_id(job), '@')) {
        *ret_right =
            size == strlen(PROGRAM_SLOT_DATA) && memcmp(payload, PROGRAM_SLOT_DATA, size) == 0;
        return model_slot(troupe_job_id(job));
    }
    sim_expect(size >= sizeof(index), "%s has no payload", troupe_job_id(job));
    memcpy(&index, payload, sizeof(index));
    *ret_right = size == sizeof(index) + model_job(index)->size &&
                 is_filled(payload + sizeof(index), model_job(index)->size, index);
    return index;
}

static int handle(struct troupe_job *job, void *userdata)
{
    bool right;
    const uint32_t index = look_at(job, &right);
    const enum model_kind kind = model_job(index)->kind;

    sim_trace("attempt %u of job %u", troupe_job_attempt(job), index);
    model_run(index, troupe_job_attempt(job), right);
    sim_fault_point("handler");
    if (index % 2)
        save(job, index);
    if (kind == MODEL_SLOW)
        sim_rest(sim_below(3 * USEC_PER_SEC));
    if (kind < MODEL_CRASH)
        model_stops(index);
    switch (kind) {
    case MODEL_REJECT:
        return troupe_job_reject(job, 3, "no", 2);
    case MODEL_RETRY:
        return retry(job, index);
    case MODEL_CRASH:
        sim_kill(sim_self, SIGSEGV);
        return 0;
    case MODEL_STUCK:
        return work_on(job, index, true);
    case MODEL_ENDLESS:
        return work_on(job, index, index % 2);
    default:
        return succeed(job, index);
    }
}

/* ---- templates ---- */

/* Forks what it is asked for: the gate, the output, and what the variables refer to. */
static void fork_worker(const struct program_start *start, char *text, size_t size, const int *fds,
                        size_t n)
{
    struct program_start worker = {.is_forked = true};

    memcpy(worker.name, start->name, sizeof(worker.name));
    for (size_t at = 0; at < size; at += strlen(text + at) + 1)
        worker.variables[worker.n_variables++] = text + at;
    for (size_t i = 0; i < start->n_variables; i++)
        worker.variables[worker.n_variables++] = start->variables[i];
    for (size_t i = 2; i < n; i++)
        worker.fds[worker.n_fds++] = (struct spawn_fd){fds[i], TEMPLATE_FIRST_FD + (int)i - 2};
    worker.fds[worker.n_fds++] = (struct spawn_fd){fds[0], TEMPLATE_FIRST_FD + TEMPLATE_FDS_MAX};
    machine_fork(&worker);
}

/* Now and then a fork fails. */
static void serve(const struct program_start *start)
{
    const bool fails = sim_one_in(16);
    union scm_control control;
    char *text = malloc(TEMPLATE_REQUEST_MAX); /* stays that of the worker */
    struct iovec data = {text, TEMPLATE_REQUEST_MAX};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int fds[TEMPLATE_PASSED_MAX];
    const ssize_t size = recvmsg(TEMPLATE_FIRST_FD, &message, MSG_CMSG_CLOEXEC);
    const size_t n = size > 0 ? scm_take(&message, fds, ELEMENTS(fds), payload_drop_fd) : 0;

    if (n < 2)
        sim_exit(size > 0);
    sim_trace("%s to fork", fails ? "fails" : "is");
    sim_rest(sim_below(2 * USEC_PER_MSEC));
    if (fails)
        (void)send(TEMPLATE_FIRST_FD, "f", 1, MSG_NOSIGNAL);
    else
        fork_worker(start, text, (size_t)size, fds, n);
    for (size_t i = 0; i < n; i++)
        close_fd(fds[i]);
}

static void be_template(const struct program_start *start)
{
    sim_rest(sim_below(300 * USEC_PER_MSEC));
    (void)send(TEMPLATE_FIRST_FD, sim_one_in(20) ? "u" : "r", 1, MSG_NOSIGNAL);
    for (;;)
        serve(start);
}

/* Waits until the keeper has taken it. */
static void pass_gate(const struct program_start *start)
{
    const int gate = TEMPLATE_FIRST_FD + TEMPLATE_FDS_MAX;
    char byte;
    struct iovec data = {&byte, 1};

    (void)send(gate, &start->task, 1, MSG_NOSIGNAL);
    if (recvmsg(gate, &(struct msghdr){.msg_iov = &data, .msg_iovlen = 1}, 0) != 1)
        sim_exit(1);
    close_fd(gate);
}

void program_main(struct program_start *start)
{
    struct troupe_worker *worker;

    program_keep_fds(start->fds, start->n_fds);
    if (strcmp(start->name, "--check") == 0)
        sim_exit(0);
    if (start->is_forked)
        pass_gate(start);
    else if (getenv(TEMPLATE_VARIABLE))
        be_template(start);
    if (troupe_worker_new(&worker) < 0)
        sim_exit(1);
    actors_listen(worker);
    troupe_worker_on_job(worker, handle, NULL);
    sim_exit(troupe_worker_run(worker) < 0);
}

/* ---- clients ---- */

struct client {
    const char *socket_path, *group;
    unsigned n_jobs, n_submitted;
    usec_t pause_max;
    struct troupe_client *client;
    uint64_t reference;
    uint32_t last;     /* the job that it submitted last */
    uint32_t *unknown; /* durable jobs whose ends are to be asked for by id */
    unsigned n_unknown;
};

unsigned program_n_clients;

static char *id_of(uint32_t index, char text[32])
{
    (void)snprintf(text, 32, "job-%u", index);
    return text;
}

static void take_end(struct client *client, const struct troupe_result *result)
{
    const uint32_t index = (uint32_t)result->cookie;
    struct model_job *job = model_job(index);
    /* If there is no memory or descriptor for a large result, or no room for it on disk, the client
     * is told so. */
    const bool is_lost = result->size == 0 && (strstr(result->reason, "could not be handed over") ||
                                               strstr(result->reason, "too little space left"));
    char id[32];

    if (job->durable && (result->error == -ECONNRESET ||
                         (job->n_unsure > 0 && result->error < 0 && result->error != -ESRCH))) {
        if (job->n_unsure > 0)
            sim_rest(100 * USEC_PER_MSEC); /* the store does not work yet */
        if (++job->n_unsure < ASKED_MAX)
            client->unknown[client->n_unknown++] = index;
        else
            model_unknown(index);
        return;
    }
    sim_trace("job %u: error %d, end %d after %u", index, result->error, (int)result->end,
              result->attempts);
    if (result->error == -ENOENT) /* another group has its name by now */
        (void)troupe_client_group(client->client, client->group, &client->reference);
    if (result->error == -ECONNRESET || (result->error == -ESRCH && model_allowed & MODEL_REMOVES))
        model_unknown(index);
    else if (result->error != 0)
        model_refused(index, result->error);
    else if (strcmp(result->id, id_of(index, id)) != 0)
        model_refused(index, -EEXIST); /* that of the job that has its unique key */
    else
        model_ended(
            index, result,
            result->end != TROUPE_SUCCEEDED || is_lost ||
                (result->size == job->result_size && is_filled(result->data, result->size, index)));
}

/* Takes what has ended. Returns false when the connection is over. */
static bool take_ends(struct client *client, usec_t timeout)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r;

    while ((r = troupe_client_next(client->client, &result, timeout)) == 0) {
        take_end(client, &result);
        troupe_result_release(&result);
        timeout = 0;
    }
    return r == -EAGAIN || r == -EINTR;
}

static const char *const KEYS[] = {"red", "green", "blue"};

/* Returns 1 to `max` if the job has this property, else 0. */
static usec_t draw(enum sim_fault property, usec_t max)
{
    return sim_one_in(sim_chances[property]) ? 1 + sim_below(max) : 0;
}

/* Each draw is a statement of its own: within one, compilers choose the order. */
static struct model_job draw_job(const struct client *client)
{
    struct model_job job = {.durable = strcmp(client->group, "durable") == 0};

    for (unsigned kind = MODEL_REJECT; kind < _MODEL_N_KINDS; kind++)
        if (sim_one_in(sim_chances[SIM_REJECT + kind - MODEL_REJECT]))
            job.kind = kind;
    job.size = draw_size();
    job.result_size = draw_size();
    job.key = (uint8_t)sim_below(ELEMENTS(KEYS));
    job.unique = (uint8_t)draw(SIM_UNIQUE, MODEL_N_UNIQUE - 1);
    job.delay = draw(SIM_DELAY, 5 * USEC_PER_SEC);
    job.deadline = draw(SIM_DEADLINE, 20 * USEC_PER_SEC);
    job.cost = 1 + (unsigned)sim_below(3);
    job.parent = draw(SIM_AFTER, 1) ? client->last : 0;
    job.condition = (unsigned)sim_below(TROUPE_CONDITION_END + 1);
    if (job.kind == MODEL_ENDLESS && job.deadline == 0)
        job.deadline = 1 + sim_below(MODEL_ENDLESS_MAX);
    return job;
}

static void set_options(struct troupe_job_options *options, const struct model_job *job,
                        const char *parent)
{
    options->key = KEYS[job->key];
    options->key_size = strlen(options->key);
    options->keep_result = job->durable;
    options->priority = sim_one_in(3) ? (int)sim_below(64) : -1;
    options->deadline_usec = job->deadline;
    options->cost = job->cost;
    options->after = job->parent > 0 ? parent : NULL;
    options->condition = (enum troupe_condition)job->condition;
    options->timeout_usec = job->kind == MODEL_ENDLESS ? TROUPE_USEC_INFINITY : 0;
    if (job->unique > 0) {
        options->unique = &job->unique;
        options->unique_size = sizeof(job->unique);
        options->on_conflict = (enum troupe_conflict)job->unique;
    }
    if (job->unique == TROUPE_CONFLICT_REPLACE)
        options->debounce_usec = job->delay;
    else
        options->delay_usec = job->delay;
}

static void submit(struct client *client)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    struct model_job job = draw_job(client);
    const uint32_t index = model_add(&job);
    _cleanup_free_ uint8_t *bytes = fill(&index, sizeof(index), job.size, index);
    char id[32], parent[32];
    int r;

    options.id = id_of(index, id);
    set_options(&options, &job, id_of(job.parent, parent));
    sim_trace("submits job %u of kind %u, unique %u to %s, delay %.6f, deadline %.6f, after %u",
              index, job.kind, job.unique, client->group, (double)job.delay / 1e6,
              (double)job.deadline / 1e6, job.parent);
    r = troupe_client_submit(client->client, client->reference, &options, bytes,
                             sizeof(index) + job.size, index);
    client->n_submitted++;
    if (r < 0)
        model_refused(index, r);
    else
        client->last = index;
}

/* Asks for the end of its last job, without an answer. */
static void give_up(struct client *client)
{
    char id[32];

    if (client->last == 0 || !sim_one_in(sim_chances[SIM_ABANDON]))
        return;
    sim_trace("abandons job %u", client->last);
    model_job(client->last)->may_be_cancelled = true;
    if (sim_one_in(2))
        (void)troupe_client_abandon(client->client, id_of(client->last, id));
    else
        (void)troupe_client_withdraw(client->client, id_of(client->last, id));
}

static bool connect_client(struct client *client)
{
    while (troupe_client_connect(&client->client, client->socket_path) < 0)
        sim_rest(20 * USEC_PER_MSEC + sim_below(100 * USEC_PER_MSEC));
    if (troupe_client_group(client->client, client->group, &client->reference) == 0)
        return true;
    troupe_client_free(client->client);
    return false;
}

static void ask_for_unknown(struct client *client)
{
    char id[32];

    while (client->n_unknown > 0 &&
           troupe_client_wait(client->client, id_of(client->unknown[client->n_unknown - 1], id),
                              client->unknown[client->n_unknown - 1]) == 0)
        client->n_unknown--;
}

static void *run_client(void *argument)
{
    struct client *client = argument;
    usec_t pause;

    while (client->n_submitted < client->n_jobs || model_n_open > 0) {
        if (!connect_client(client)) {
            sim_rest(50 * USEC_PER_MSEC);
            continue;
        }
        do {
            ask_for_unknown(client);
            pause = PAUSE_MAX;
            if (client->n_submitted < client->n_jobs) {
                submit(client);
                pause = client->pause_max;
            }
            give_up(client);
        } while (take_ends(client, sim_below(pause)) &&
                 (client->n_submitted < client->n_jobs || model_n_open > 0));
        troupe_client_free(client->client);
    }
    program_n_clients--;
    return NULL;
}

void program_start_client(const char *socket_path, const char *group, unsigned n_jobs)
{
    struct client *client = calloc(1, sizeof(*client));

    *client = (struct client){.socket_path = socket_path,
                              .group = group,
                              .n_jobs = n_jobs,
                              .pause_max = PAUSE_MAX >> sim_below(16),
                              .unknown = calloc(n_jobs, sizeof(uint32_t))};
    program_n_clients++;
    (void)sim_start("client", run_client, client, NULL);
}
