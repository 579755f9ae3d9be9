/* SPDX-License-Identifier: MIT */
/* Makes the streams, consumers and buckets that troupe-nats needs in JetStream. */
#include "worker/nats/verbs.h"

#include "shared/base/log.h"
#include "worker/nats/bucket.h"
#include "worker/nats/client.h"
#include "worker/nats/engine-connection.h"
#include "worker/nats/engine.h"
#include "worker/nats/message.h"
#include "worker/nats/publication.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The names of settings on the server that are not as wanted; "" = all are. */
struct difference {
    char names[256];
    size_t length;
};

/* clang-format off */
#define DIFFERENCE_NULL {.length = 0}
/* clang-format on */

static void compare(struct difference *difference, const char *name, bool is_equal)
{
    if (!is_equal)
        difference->length += (size_t)snprintf(difference->names + difference->length,
                                               sizeof(difference->names) - difference->length,
                                               "%s%s", difference->length > 0 ? ", " : "", name);
}

/* ---- results of an earlier stream of the same name ---- */

#define QUESTION_SUBJECT "$JS.API.STREAM.MSG.GET." PUBLICATION_STREAM
#define PURGE_SUBJECT    "$JS.API.STREAM.PURGE." PUBLICATION_STREAM
#define FILTER_SIZE      128

static int refuse(const struct config *config, const char *found, const char *filter)
{
    log_error("stream %s: not made, as the stream " PUBLICATION_STREAM
              " holds what an earlier stream of this name has left: %s. The new stream would start "
              "at sequence 1, and its jobs would be taken for jobs that are done. Choose another "
              "name (Stream=); or wait until no machine keeps results of the old jobs "
              "(ResultTTLSec=), then send {\"filter\":\"%s\"} to " PURGE_SUBJECT,
              config->stream, found, filter);
    return -EEXIST;
}

static int fail(const struct config *config, const char *problem)
{
    log_error("stream %s: not made, as " QUESTION_SUBJECT
              " does not say whether there are results of an earlier stream of this name: %s",
              config->stream, problem);
    return -EIO;
}

static int judge(const struct config *config, const char *filter, const json_t *reply)
{
    const json_int_t code = client_error_code(reply);
    const char *text =
        json_string_value(json_object_get(json_object_get(reply, "error"), "description"));
    const char *found =
        json_string_value(json_object_get(json_object_get(reply, "message"), "subject"));

    if (code == JSNoMessageFoundErr || code == JSStreamNotFoundErr)
        return 0;
    if (found)
        return refuse(config, found, filter);
    return fail(config, text ? text : "the answer cannot be understood");
}

/* The list of subjects in STREAM.INFO would have a line for each result; this has one at most. */
static int ask(const struct client *client, const struct config *config, const char *filter)
{
    json_auto_t *reply = NULL;
    natsStatus s = client_find_message(client, PUBLICATION_STREAM, filter, 1, &reply);

    if (s != NATS_OK)
        return fail(config, s == NATS_NO_RESPONDERS ? ENGINE_NO_JETSTREAM : engine_error(s));
    return judge(config, filter, reply);
}

static int check_earlier_results(const struct client *client, const struct config *config)
{
    char filter[FILTER_SIZE];
    int r;

    (void)snprintf(filter, sizeof(filter), PUBLICATION_RESULT_SUBJECT "%s.>", config->stream);
    r = ask(client, config, filter);
    if (r != 0)
        return r;
    (void)snprintf(filter, sizeof(filter), PUBLICATION_LETTER_SUBJECT "*.%s.>", config->stream);
    return ask(client, config, filter);
}

/* ---- what is made ---- */

#define NSEC_PER_SEC (INT64_C(1000) * 1000 * 1000)

/* How long results and dead letters stay. */
#define RESULTS_AGE (INT64_C(7) * 24 * 3600 * NSEC_PER_SEC)
/* Within this time the stream of jobs drops messages with an id that it has seen. */
#define DOUBLES_AGE (INT64_C(600) * NSEC_PER_SEC)

/* For all machines together. The server needs a number, but each machine has its own bound,
 * InFlight=. */
#define ACK_PENDING_MAX 1000000

static int report(const char *what, const char *name, natsStatus s)
{
    if (s == NATS_OK)
        return 0;
    log_error("%s %s: %s", what, name,
              s == NATS_NO_RESPONDERS ? ENGINE_NO_JETSTREAM : engine_error(s));
    return -EIO;
}

static int report_made(const char *what, const char *name, natsStatus s)
{
    if (s == NATS_OK)
        log_info("%s %s is new", what, name);
    return report(what, name, s);
}

static int report_existing(const char *what, const char *name, const struct difference *difference)
{
    if (difference->length > 0)
        log_warning("%s %s exists, and is left as it is, though it differs in its %s", what, name,
                    difference->names);
    else
        log_info("%s %s exists", what, name);
    return 0;
}

/* ---- streams ---- */

static bool have_equal_subjects(const jsStreamConfig *have, const jsStreamConfig *wanted)
{
    if (have->SubjectsLen != wanted->SubjectsLen)
        return false;
    for (int i = 0; i < have->SubjectsLen; i++)
        if (strcmp(have->Subjects[i], wanted->Subjects[i]) != 0)
            return false;
    return true;
}

static void compare_stream(struct difference *difference, const jsStreamConfig *have,
                           const jsStreamConfig *wanted)
{
    compare(difference, "subjects", have_equal_subjects(have, wanted));
    compare(difference, "retention", have->Retention == wanted->Retention);
    compare(difference, "storage", have->Storage == wanted->Storage);
    compare(difference, "replicas", have->Replicas == wanted->Replicas);
    compare(difference, "max age", have->MaxAge == wanted->MaxAge);
    compare(difference, "duplicate window",
            wanted->Duplicates == 0 || have->Duplicates == wanted->Duplicates);
}

typedef natsStatus (*make_stream_fn)(jsCtx *js, jsStreamConfig *stream);

static int add(jsCtx *js, const char *what, const char *name, jsStreamConfig *wanted,
               make_stream_fn make)
{
    struct difference difference = DIFFERENCE_NULL;
    jsStreamInfo *info = NULL;
    natsStatus s = client_stream(&info, js, wanted->Name);

    if (s == NATS_NOT_FOUND)
        return report_made(what, name, make(js, wanted));
    if (s != NATS_OK)
        return report(what, name, s);
    compare_stream(&difference, info->Config, wanted);
    jsStreamInfo_Destroy(info);
    return report_existing(what, name, &difference);
}

static natsStatus make_stream(jsCtx *js, jsStreamConfig *stream)
{
    return js_AddStream(NULL, js, stream, NULL, NULL);
}

static int add_stream(jsCtx *js, const struct config *config, const char *name,
                      const char **subjects, int n_subjects, jsRetentionPolicy retention)
{
    jsStreamConfig stream;

    (void)jsStreamConfig_Init(&stream);
    stream.Name = name;
    stream.Subjects = subjects;
    stream.SubjectsLen = n_subjects;
    stream.Retention = retention;
    stream.Replicas = (int64_t)config->replicas;
    stream.Duplicates = DOUBLES_AGE;
    stream.MaxAge = retention == js_LimitsPolicy ? RESULTS_AGE : 0;
    return add(js, "stream", name, &stream, make_stream);
}

static natsStatus make_bucket(jsCtx *js, jsStreamConfig *stream)
{
    kvConfig bucket;
    kvStore *store = NULL;
    natsStatus s;

    (void)kvConfig_Init(&bucket);
    bucket.Bucket = BUCKET_NAME;
    bucket.TTL = stream->MaxAge;
    bucket.StorageType = stream->Storage;
    bucket.Replicas = (int)stream->Replicas;
    s = js_CreateKeyValue(&store, js, &bucket);
    kvStore_Destroy(store);
    return s;
}

/* On disk, although the state is written every few seconds: if most servers crash at the same time,
 * the others would wait for their part of a bucket in memory. */
static int add_bucket(jsCtx *js, const struct config *config)
{
    const char *subjects[] = {BUCKET_SUBJECT ">"};
    jsStreamConfig stream;

    (void)jsStreamConfig_Init(&stream);
    stream.Name = BUCKET_STREAM;
    stream.Subjects = subjects;
    stream.SubjectsLen = 1;
    stream.Storage = js_FileStorage;
    stream.Replicas = (int64_t)config->replicas;
    stream.MaxAge = (int64_t)(BUCKET_AGE * NSEC_PER_USEC);
    return add(js, "bucket", BUCKET_NAME, &stream, make_bucket);
}

/* ---- the consumer ---- */

static void compare_consumer(struct difference *difference, const jsConsumerConfig *have,
                             const jsConsumerConfig *wanted)
{
    compare(difference, "filter",
            have->FilterSubject && strcmp(have->FilterSubject, wanted->FilterSubject) == 0);
    compare(difference, "ack policy", have->AckPolicy == wanted->AckPolicy);
    compare(difference, "ack wait", have->AckWait == wanted->AckWait);
    compare(difference, "max deliver", have->MaxDeliver == wanted->MaxDeliver);
    compare(difference, "max ack pending", have->MaxAckPending == wanted->MaxAckPending);
}

static int make_consumer(jsCtx *js, const struct config *config, jsConsumerConfig *consumer)
{
    jsErrCode code = 0;
    natsStatus s = js_AddConsumer(NULL, js, config->stream, consumer, NULL, &code);

    if (code != JSConsumerWQConsumerNotUniqueErr && code != JSConsumerWQMultipleUnfilteredErr)
        return report_made("consumer", consumer->Durable, s);
    log_error("consumer %s: another consumer of stream %s has messages of %s, and must be removed "
              "first",
              consumer->Durable, config->stream, consumer->FilterSubject);
    return -EEXIST;
}

static int add_consumer(jsCtx *js, const struct config *config)
{
    struct difference difference = DIFFERENCE_NULL;
    const char *name = config_consumer(config);
    jsConsumerInfo *info = NULL;
    jsConsumerConfig consumer;
    char filter[160];
    natsStatus s;

    (void)snprintf(filter, sizeof(filter), MESSAGE_SUBJECT "%s.>", config->group);
    (void)jsConsumerConfig_Init(&consumer);
    consumer.Durable = name;
    consumer.FilterSubject = config->filter ? config->filter : filter;
    consumer.AckPolicy = js_AckExplicit;
    consumer.AckWait = (int64_t)(config->ack_wait * NSEC_PER_USEC);
    consumer.MaxDeliver = -1;
    consumer.MaxAckPending = ACK_PENDING_MAX;
    s = js_GetConsumerInfo(&info, js, config->stream, name, NULL, NULL);
    if (s == NATS_NOT_FOUND) /* creating an existing one may change it */
        return make_consumer(js, config, &consumer);
    if (s != NATS_OK)
        return report("consumer", name, s);
    compare_consumer(&difference, info->Config, &consumer);
    jsConsumerInfo_Destroy(info);
    return report_existing("consumer", name, &difference);
}

/* Comes first, so that a refusal leaves nothing behind. An existing stream may have results. */
static int add_jobs(const struct client *client, const struct config *config)
{
    /* Refuses subjects without a key, which no group takes. */
    const char *subjects[] = {MESSAGE_SUBJECT "*.>"};
    jsStreamInfo *info = NULL;
    natsStatus s = client_stream(&info, client->js, config->stream);
    int r = s == NATS_NOT_FOUND ? check_earlier_results(client, config) : 0;

    jsStreamInfo_Destroy(info);
    return r == 0 ? add_stream(client->js, config, config->stream, subjects, 1, js_WorkQueuePolicy)
                  : r;
}

static int make_all(const struct client *client, const struct config *config)
{
    const char *results[] = {PUBLICATION_RESULT_SUBJECT ">", PUBLICATION_LETTER_SUBJECT "*.*.*"};
    int r = add_jobs(client, config);

    if (r == 0)
        r = add_stream(client->js, config, PUBLICATION_STREAM, results, 2, js_LimitsPolicy);
    if (r == 0)
        r = add_consumer(client->js, config);
    return r == 0 ? add_bucket(client->js, config) : r;
}

int setup(const struct config *config)
{
    struct client client = CLIENT_NULL;
    int r = client_open_early(&client, config) == CLIENT_OK ? make_all(&client, config) : -ENOTCONN;

    if (r < 0 && client.connection && client_is_denied(&client))
        (void)client_fail_denied(&client);
    client_close(&client);
    return r < 0 ? CLIENT_FAILED : CLIENT_OK;
}
