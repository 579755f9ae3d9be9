/* SPDX-License-Identifier: MIT */
/* Makes the streams, consumers and buckets that troupe-nats needs in JetStream. */
#include "worker/nats/client.h"

#include "shared/base/log.h"
#include "worker/nats/bucket.h"
#include "worker/nats/engine-connection.h"
#include "worker/nats/engine.h"
#include "worker/nats/message.h"
#include "worker/nats/publication.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- results and dead letters of an earlier stream of the same name ---- */

/* The list of subjects in STREAM.INFO would have a line for each; this has one at most. */
static int check_earlier(const struct client *client, const struct config *config,
                         const char *filter)
{
    json_auto_t *reply = NULL;
    natsStatus s = client_find_message(client, PUBLICATION_STREAM, filter, 1, &reply);
    const json_int_t code = client_error_code(reply);
    const char *found =
        json_string_value(json_object_get(json_object_get(reply, "message"), "subject"));

    if (code == JSNoMessageFoundErr || code == JSStreamNotFoundErr)
        return 0;
    if (found)
        log_error("stream %s: not made, as the stream " PUBLICATION_STREAM
                  " has a result of an earlier stream of this name, %s, so that new jobs would be "
                  "taken for jobs that are done; choose another name (Stream=), or see "
                  "troupe-nats(8)",
                  config->stream, found);
    else
        log_error("stream %s: not made, as it is not known whether there are results of an "
                  "earlier stream of this name: %s",
                  config->stream, s == NATS_OK ? "the server says no more" : engine_error(s));
    return -EEXIST;
}

/* A new dead letter is not stored where its subject has one: it counts as published. */
static int check_earlier_results(const struct client *client, const struct config *config)
{
    char filter[128];
    int r;

    (void)snprintf(filter, sizeof(filter), PUBLICATION_RESULT_SUBJECT "%s.>", config->stream);
    r = check_earlier(client, config, filter);
    if (r != 0)
        return r;
    (void)snprintf(filter, sizeof(filter), PUBLICATION_LETTER_SUBJECT "*.%s.>", config->stream);
    return check_earlier(client, config, filter);
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

static int report_existing(const char *what, const char *name, natsStatus s)
{
    if (s == NATS_OK)
        log_info("%s %s exists, and is left as it is", what, name);
    return report(what, name, s);
}

static int report_made(const char *what, const char *name, natsStatus s)
{
    if (s == NATS_OK)
        log_info("%s %s is new", what, name);
    return report(what, name, s);
}

/* ---- streams ---- */

typedef natsStatus (*make_stream_fn)(jsCtx *js, jsStreamConfig *stream);

static int add(jsCtx *js, const char *what, const char *name, jsStreamConfig *wanted,
               make_stream_fn make)
{
    jsStreamInfo *info = NULL;
    natsStatus s = js_GetStreamInfo(&info, js, wanted->Name, NULL, NULL);

    jsStreamInfo_Destroy(info);
    return s == NATS_NOT_FOUND ? report_made(what, name, make(js, wanted))
                               : report_existing(what, name, s);
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

/* On disk, although the state is written every few seconds: if most servers crash at the same time,
 * the others would wait for their part of a bucket in memory. */
static natsStatus make_bucket(jsCtx *js, jsStreamConfig *stream)
{
    kvConfig bucket;
    kvStore *store = NULL;
    natsStatus s;

    (void)kvConfig_Init(&bucket);
    bucket.Bucket = BUCKET_NAME;
    bucket.TTL = (int64_t)(BUCKET_AGE * NSEC_PER_USEC);
    bucket.StorageType = js_FileStorage;
    bucket.Replicas = (int)stream->Replicas;
    s = js_CreateKeyValue(&store, js, &bucket);
    kvStore_Destroy(store);
    return s;
}

static int add_bucket(jsCtx *js, const struct config *config)
{
    jsStreamConfig stream;

    (void)jsStreamConfig_Init(&stream);
    stream.Name = BUCKET_STREAM;
    stream.Replicas = (int64_t)config->replicas;
    return add(js, "bucket", BUCKET_NAME, &stream, make_bucket);
}

/* ---- the consumer ---- */

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
    jsConsumerInfo_Destroy(info);
    return report_existing("consumer", name, s);
}

/* Comes first, so that a refusal leaves nothing behind. An existing stream may have results. */
static int add_jobs(const struct client *client, const struct config *config)
{
    /* Refuses subjects without a key, which no group takes. */
    const char *subjects[] = {MESSAGE_SUBJECT "*.>"};
    jsStreamInfo *info = NULL;
    natsStatus s = js_GetStreamInfo(&info, client->js, config->stream, NULL, NULL);
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
    int r = client_open(&client, config) == CLIENT_OK ? make_all(&client, config) : -ENOTCONN;

    if (r < 0 && client.connection && client_is_denied(&client))
        (void)client_fail_denied(&client);
    client_close(&client);
    return r < 0 ? CLIENT_FAILED : CLIENT_OK;
}
