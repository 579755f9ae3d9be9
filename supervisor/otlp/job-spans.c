/* SPDX-License-Identifier: MIT */
#include "supervisor/otlp/job-spans.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "shared/protocol/job-id.h"
#include "shared/protocol/traceparent.h"
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

/* Numbers of the protocol, opentelemetry/proto/trace/v1/trace.proto. */
enum kind {
    KIND_INTERNAL = 1,
    KIND_PRODUCER = 4,
    KIND_CONSUMER = 5,
};
#define STATUS_ERROR    2
#define FLAG_HAS_REMOTE 0x100 /* FLAG_REMOTE says whether the parent is of another process */
#define FLAG_REMOTE     0x200

#define NAME_MAX_ 160 /* of a worker or a group, with NUL */
#define TEXT_MAX  1024

struct traced_job {
    struct index_entry by_id; /* a hash of `id` */
    struct share *share;      /* of the group that it was in first */
    struct list link;         /* in share->entries[0], the one with the oldest event first */
    char id[PROTOCOL_ID_TEXT];
    char group[NAME_MAX_], worker[NAME_MAX_];
    char parent[TRACEPARENT_SIZE + 1];
    char attempt[TRACEPARENT_SIZE + 1]; /* the span of the present one; empty = there is none */
    char first[TRACEPARENT_SIZE + 1];   /* that of the first attempt; empty = it was not seen */
    long long number;                   /* of the attempt */
    usec_t waits_since, began_at;       /* realtime; 0 = it does not wait, or this was not seen */
    /* The death of its worker or command, and the reason, in the words of the supervisor. */
    char signal[16];
    long long exit_status; /* -1 = none */
    char text[TEXT_MAX];
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static void set_text(char *to, size_t size, const char *text)
{
    /* Cuts between characters: JSON must be valid UTF-8. */
    size_t length = strnlen(text, size);

    if (length == size)
        for (length--; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
            length--;
    memcpy(to, text, length);
    to[length] = '\0';
}

/* ---- jobs ---- */

static uint64_t hash_of(const char *id)
{
    return hash_bytes(id, strlen(id));
}

static struct traced_job *find(const struct job_spans *spans, const char *id)
{
    index_for_each_entry (job, &spans->by_id, hash_of(id), struct traced_job, by_id)
        if (strcmp(job->id, id) == 0)
            return job;
    return NULL;
}

static void forget(struct job_spans *spans, struct traced_job *job)
{
    index_remove(&spans->by_id, &job->by_id);
    list_unlink(&job->link);
    share_sub(job->share, 0, 1);
    share_unref(job->share);
    free(job);
}

/* Forgets the job with the oldest event of a group with at least an equal share. Returns whether
 * there was one. */
static bool forget_oldest(struct job_spans *spans)
{
    struct share *share = share_victim(&spans->shares, 0);

    if (!share)
        return false;
    forget(spans, list_first_entry(&share->entries[0], struct traced_job, link));
    exporter_drop(spans->exporter, 1);
    return true;
}

/* Finds the job of an event, or makes one. Returns NULL without memory. */
static struct traced_job *find_or_make(struct job_spans *spans, const char *id, const char *group)
{
    struct traced_job *job = find(spans, id);

    if (job) {
        list_unlink(&job->link);
        list_push_back(&job->share->entries[0], &job->link);
        return job;
    }
    if (spans->by_id.n_entries >= JOB_SPANS_MAX)
        (void)forget_oldest(spans);
    job = calloc(1, sizeof(*job));
    if (!job || !(job->share = share_get(&spans->shares, group, strlen(group)))) {
        free(job);
        return NULL;
    }
    set_text(job->id, sizeof(job->id), id);
    job->exit_status = -1;
    index_add(&spans->by_id, &job->by_id, hash_of(job->id));
    list_push_back(&job->share->entries[0], &job->link);
    share_add(job->share, 0, 1);
    return job;
}

void job_spans_init(struct job_spans *spans, struct exporter *exporter, bool contents)
{
    *spans = (struct job_spans){.exporter = exporter, .contents = contents};
    shares_init(&spans->shares);
}

void job_spans_deinit(struct job_spans *spans)
{
    while (forget_oldest(spans))
        ;
    shares_deinit(&spans->shares);
    index_deinit(&spans->by_id);
}

/* ---- spans as JSON ---- */

static void add_text(json_t *attributes, const char *key, const char *value)
{
    if (value && *value)
        (void)json_array_append_new(
            attributes, json_pack("{s:s, s:{s:s}}", "key", key, "value", "stringValue", value));
}

/* OTLP writes integers as text, since numbers of JSON have 53 bits. */
static void add_number(json_t *attributes, const char *key, long long value)
{
    (void)json_array_append_new(attributes, json_pack("{s:s, s:{s:o}}", "key", key, "value",
                                                      "intValue", json_sprintf("%lld", value)));
}

static json_t *make_attributes(const struct traced_job *job, const char *operation)
{
    json_t *attributes = json_array();

    add_text(attributes, "messaging.system", "troupe");
    add_text(attributes, "messaging.operation.name", operation);
    if (strcmp(operation, "wait") != 0)
        add_text(attributes, "messaging.operation.type", operation);
    add_text(attributes, "messaging.destination.name", job->group);
    add_text(attributes, "messaging.message.id", job->id);
    if (job->number > 0)
        add_number(attributes, "troupe.job.attempt", job->number);
    return attributes;
}

struct span {
    const char *context; /* its trace; for an attempt, also its own id */
    const char *parent;  /* NULL = none */
    const char *link;    /* NULL = none */
    const char *operation;
    enum kind kind;
    usec_t from, to;
    json_t *attributes; /* taken over */
    const char *error;  /* NULL = none */
    const char *text;   /* of the error; NULL = none */
};

static json_t *digits(const char *traceparent, size_t at, size_t n)
{
    return json_stringn(traceparent + at, n);
}

static json_t *trace_of(const char *traceparent)
{
    return digits(traceparent, TRACEPARENT_TRACE, TRACEPARENT_TRACE_DIGITS);
}

static json_t *span_of(const char *traceparent)
{
    return digits(traceparent, TRACEPARENT_SPAN, TRACEPARENT_SPAN_DIGITS);
}

static json_t *new_span_id(void)
{
    uint64_t id;

    if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
        id = hash_mix(clock_now()); /* too early in the boot */
    return json_sprintf("%016" PRIx64, id | 1);
}

static json_t *time_of(usec_t time)
{
    return json_sprintf("%" PRIu64, time * NSEC_PER_USEC);
}

static json_t *make_links(const char *link)
{
    return link ? json_pack("[{s:o, s:o}]", "traceId", trace_of(link), "spanId", span_of(link))
                : NULL;
}

static json_t *make_status(const struct span *span)
{
    return span->error ? json_pack("{s:i, s:s*}", "code", STATUS_ERROR, "message", span->text)
                       : NULL;
}

/* The attempt's own span is `context`; others get a new id. */
static void export_span(struct job_spans *spans, const struct traced_job *job,
                        const struct span *span, usec_t now)
{
    const bool own = span->kind == KIND_CONSUMER;
    const unsigned flags = (unsigned)strtoul(span->context + TRACEPARENT_FLAGS, NULL, 16) |
                           FLAG_HAS_REMOTE | (span->parent ? FLAG_REMOTE : 0);
    json_auto_t *root = NULL;

    if (span->error)
        add_text(span->attributes, "error.type", span->error);
    root =
        json_pack("{s:o, s:o, s:o*, s:i, s:o, s:i, s:o, s:o, s:o, s:o*, s:o*}", "traceId",
                  trace_of(span->context), "spanId", own ? span_of(span->context) : new_span_id(),
                  "parentSpanId", span->parent ? span_of(span->parent) : NULL, "flags", (int)flags,
                  "name", json_sprintf("%s %s", span->operation, job->group), "kind",
                  (int)span->kind, "startTimeUnixNano", time_of(span->from), "endTimeUnixNano",
                  time_of(span->to > span->from ? span->to : span->from), "attributes",
                  span->attributes, "links", make_links(span->link), "status", make_status(span));
    exporter_add(spans->exporter, root ? json_dumps(root, JSON_COMPACT) : NULL, now);
}

/* ---- events ---- */

static void export_create(struct job_spans *spans, const struct traced_job *job, usec_t now)
{
    export_span(spans, job,
                &(struct span){.context = job->parent,
                               .parent = job->parent,
                               .operation = "create",
                               .kind = KIND_PRODUCER,
                               .from = job->waits_since,
                               .to = job->waits_since,
                               .attributes = make_attributes(job, "create")},
                now);
}

/* `error` NULL = a worker has begun the job. */
static void end_wait(struct job_spans *spans, struct traced_job *job, usec_t at, const char *error,
                     usec_t now)
{
    if (job->waits_since == 0)
        return;
    export_span(spans, job,
                &(struct span){.context = job->parent,
                               .parent = job->parent,
                               .operation = "wait",
                               .kind = KIND_INTERNAL,
                               .from = job->waits_since,
                               .to = at,
                               .attributes = make_attributes(job, "wait"),
                               .error = error},
                now);
    job->waits_since = 0;
}

static json_t *make_attempt_attributes(const struct traced_job *job, const char *outcome)
{
    json_t *attributes = make_attributes(job, "process");

    add_text(attributes, "troupe.worker", job->worker);
    add_text(attributes, "troupe.attempt.outcome", outcome);
    add_text(attributes, "troupe.death.signal", job->signal);
    if (job->exit_status >= 0)
        add_number(attributes, "process.exit.code", job->exit_status);
    return attributes;
}

/* `error` NULL = it has not failed. */
static void end_attempt(struct job_spans *spans, struct traced_job *job, usec_t at,
                        const char *outcome, const char *error, usec_t now)
{
    const bool retry = strncmp(job->attempt + TRACEPARENT_TRACE, job->parent + TRACEPARENT_TRACE,
                               TRACEPARENT_TRACE_DIGITS) != 0;
    const char *text = spans->contents && *job->text ? job->text : NULL;

    if (!*job->attempt)
        return;
    export_span(spans, job,
                &(struct span){.context = job->attempt,
                               .parent = retry ? NULL : job->parent,
                               .link = !retry        ? NULL
                                       : *job->first ? job->first
                                                     : job->parent,
                               .operation = "process",
                               .kind = KIND_CONSUMER,
                               .from = job->began_at,
                               .to = at,
                               .attributes = make_attempt_attributes(job, outcome),
                               .error = error,
                               .text = text},
                now);
    job->attempt[0] = job->signal[0] = job->text[0] = '\0';
    job->exit_status = -1;
}

static void begin_attempt(struct job_spans *spans, struct traced_job *job, const json_t *event,
                          usec_t at, usec_t now)
{
    /* If an attempt is still open, its worker was stopped: it has not failed, and no event tells
     * of its end. */
    end_attempt(spans, job, at, "stopped", NULL, now);
    job->number = json_integer_value(json_object_get(event, "attempt"));
    end_wait(spans, job, at, NULL, now);
    set_text(job->attempt, sizeof(job->attempt), text_of(event, "span"));
    set_text(job->worker, sizeof(job->worker), text_of(event, "worker"));
    if (job->number == 1)
        set_text(job->first, sizeof(job->first), job->attempt);
    job->began_at = at;
}

/* Notes how a worker or a command of an attempt died, before the event of the attempt's end. */
static void note_death(struct traced_job *job, const json_t *event, const json_t *death)
{
    const json_t *status = json_object_get(death, "exit_status");

    if (!*job->attempt || json_integer_value(json_object_get(death, "attempt")) != job->number)
        return;
    set_text(job->signal, sizeof(job->signal), text_of(death, "signal"));
    job->exit_status = status ? json_integer_value(status) : -1;
    set_text(job->text, sizeof(job->text), text_of(event, "message"));
}

static void end_job(struct job_spans *spans, struct traced_job *job, const json_t *event, usec_t at,
                    usec_t now)
{
    const char *state = text_of(event, "job_state"), *cause = text_of(event, "cause");
    const char *error = strcmp(state, "succeeded") == 0 ? NULL : *cause ? cause : state;

    if (!*job->attempt && job->waits_since == 0)
        exporter_drop(spans->exporter, 1); /* its beginning was not seen */
    end_attempt(spans, job, at, state, error, now);
    end_wait(spans, job, at, error, now);
    forget(spans, job);
}

static void take_job_event(struct job_spans *spans, struct traced_job *job, const char *type,
                           const json_t *event, usec_t now)
{
    const usec_t at = (usec_t)json_integer_value(json_object_get(event, "at"));
    const char *cause = text_of(event, "cause");

    set_text(job->group, sizeof(job->group), text_of(event, "group"));
    if (strcmp(type, "job.accepted") == 0) {
        job->waits_since = at;
        export_create(spans, job, now);
    } else if (strcmp(type, "job.started") == 0) {
        begin_attempt(spans, job, event, at, now);
    } else if (strcmp(type, "job.ended") == 0) {
        end_job(spans, job, event, at, now);
    } else { /* retried, moved */
        end_attempt(spans, job, at, *cause ? cause : "stopped", *cause ? cause : NULL, now);
        job->waits_since = job->waits_since > 0 ? job->waits_since : at;
    }
}

void job_spans_take(struct job_spans *spans, const json_t *event, usec_t now)
{
    const char *type = text_of(event, "type"), *parent = text_of(event, "traceparent");
    const json_t *death = json_object_get(event, "death");
    const char *id = death ? text_of(death, "job") : text_of(event, "job");
    const bool is_traced = traceparent_valid(parent, strlen(parent));
    struct traced_job *job;

    if (!*id || (is_traced && !traceparent_is_sampled(parent)))
        return;
    job = is_traced ? find_or_make(spans, id, text_of(event, "group")) : find(spans, id);
    if (!job && is_traced)
        exporter_drop(spans->exporter, 1);
    if (!job)
        return;
    if (is_traced) {
        set_text(job->parent, sizeof(job->parent), parent);
        take_job_event(spans, job, type, event, now);
    } else if (strcmp(type, "job.recovered") == 0) { /* a crash has lost its traceparent */
        take_job_event(spans, job, "job.ended", event, now);
    } else if (death) {
        note_death(job, event, death);
    } else if (strcmp(type, "job.dead") == 0) {
        set_text(job->text, sizeof(job->text), text_of(event, "message"));
    }
}
