/* SPDX-License-Identifier: MIT */
/* Makes the streams, consumers and buckets that troupe-nats needs in JetStream. */
#include "worker/nats/client.h"

#include "shared/base/log.h"
#include "worker/nats/message.h"
#include "worker/nats/publication.h"
#include "worker/nats/report.h"
#include <stdio.h>

#define NSEC_PER_SEC (INT64_C(1000) * 1000 * 1000)

/* How long results and dead letters stay. */
#define RESULTS_AGE (INT64_C(7) * 24 * 3600 * NSEC_PER_SEC)
/* Within this time the stream of jobs drops messages with an id that it has seen. */
#define DOUBLES_AGE (INT64_C(600) * NSEC_PER_SEC)

/* For all machines together. The server needs a number, but each machine has its own bound,
 * InFlight=. */
#define ACK_PENDING_MAX 1000000

/* Says what has become of a thing that was found or made; returns an exit status. */
static int report(const struct client *client, const char *what, const char *name, const char *how,
                  natsStatus s)
{
    char title[128];

    (void)snprintf(title, sizeof(title), "%s %s", what, name);
    if (s != NATS_OK)
        return client_fail(client, title, s);
    log_info("%s %s", title, how);
    return CLIENT_OK;
}

#define EXISTS "exists and is unchanged"
#define IS_NEW "is new"

/* ---- streams ---- */

static natsStatus find_stream(const struct client *client, const char *name)
{
    jsStreamInfo *info = NULL;
    natsStatus s = js_GetStreamInfo(&info, client->js, name, NULL, NULL);

    jsStreamInfo_Destroy(info);
    return s;
}

static int add_stream(const struct client *client, const struct config *config, const char *name,
                      const char **subjects, int n_subjects, jsRetentionPolicy retention)
{
    natsStatus s = find_stream(client, name);
    jsStreamConfig stream;

    if (s != NATS_NOT_FOUND)
        return report(client, "stream", name, EXISTS, s);
    (void)jsStreamConfig_Init(&stream);
    stream.Name = name;
    stream.Subjects = subjects;
    stream.SubjectsLen = n_subjects;
    stream.Retention = retention;
    stream.Replicas = (int64_t)config->replicas;
    stream.Duplicates = DOUBLES_AGE;
    stream.MaxAge = retention == js_LimitsPolicy ? RESULTS_AGE : 0;
    return report(client, "stream", name, IS_NEW,
                  js_AddStream(NULL, client->js, &stream, NULL, NULL));
}

/* New jobs would be taken for jobs that are done if there is a result of an earlier stream of the
 * same name. A new dead letter would not be stored if its subject already had one. The list of
 * subjects in STREAM.INFO would have a line for each; this has one at most. */
static int check_earlier(const struct client *client, const struct config *config,
                         const char *prefix)
{
    json_auto_t *reply = NULL;
    char filter[128];
    const char *found;
    json_int_t code;
    natsStatus s;

    (void)snprintf(filter, sizeof(filter), "%s%s.>", prefix, config->stream);
    s = client_find_message(client, PUBLICATION_STREAM, filter, 1, &reply);
    code = client_error_code(reply);
    found = json_string_value(json_object_get(json_object_get(reply, "message"), "subject"));
    if (code == JSNoMessageFoundErr || code == JSStreamNotFoundErr)
        return CLIENT_OK;
    if (found)
        log_error("stream %s: not created, because the stream " PUBLICATION_STREAM
                  " has a result of an earlier stream of this name, %s, so that new jobs would be "
                  "taken for jobs that are done; choose another name (Stream=), or see "
                  "troupe-nats(8)",
                  config->stream, found);
    else
        log_error("stream %s: not created, because it is unknown whether there are results of an "
                  "earlier stream of this name: %s",
                  config->stream, s == NATS_OK ? "the server gives no reason" : engine_error(s));
    return CLIENT_FAILED;
}

/* Comes first, so that a refusal leaves nothing behind. An existing stream may have results. */
static int add_jobs(const struct client *client, const struct config *config)
{
    /* Refuses subjects without a key, which no group takes. */
    const char *subjects[] = {MESSAGE_SUBJECT "*.>"};
    int r = CLIENT_OK;

    if (find_stream(client, config->stream) == NATS_NOT_FOUND) {
        r = check_earlier(client, config, PUBLICATION_RESULT_SUBJECT);
        if (r == CLIENT_OK)
            r = check_earlier(client, config, PUBLICATION_LETTER_SUBJECT "*.");
    }
    return r == CLIENT_OK
               ? add_stream(client, config, config->stream, subjects, 1, js_WorkQueuePolicy)
               : r;
}

static int add_results(const struct client *client, const struct config *config)
{
    const char *subjects[] = {PUBLICATION_RESULT_SUBJECT ">", PUBLICATION_LETTER_SUBJECT "*.*.*"};

    return add_stream(client, config, PUBLICATION_STREAM, subjects, 2, js_LimitsPolicy);
}

/* On disk, although the state is written every few seconds: if most servers crash at the same time,
 * the others would wait for their part of a bucket in memory. */
static int add_bucket(const struct client *client, const struct config *config)
{
    natsStatus s = find_stream(client, BUCKET_STREAM);
    kvStore *store = NULL;
    kvConfig bucket;

    if (s != NATS_NOT_FOUND)
        return report(client, "bucket", BUCKET_NAME, EXISTS, s);
    (void)kvConfig_Init(&bucket);
    bucket.Bucket = BUCKET_NAME;
    bucket.TTL = (int64_t)(BUCKET_AGE * NSEC_PER_USEC);
    bucket.StorageType = js_FileStorage;
    bucket.Replicas = (int)config->replicas;
    s = js_CreateKeyValue(&store, client->js, &bucket);
    kvStore_Destroy(store);
    return report(client, "bucket", BUCKET_NAME, IS_NEW, s);
}

/* ---- the consumer ---- */

static int make_consumer(const struct client *client, const struct config *config)
{
    jsConsumerConfig consumer;
    jsErrCode code = 0;
    char filter[160];
    natsStatus s;

    (void)snprintf(filter, sizeof(filter), MESSAGE_SUBJECT "%s.>", config->group);
    (void)jsConsumerConfig_Init(&consumer);
    consumer.Durable = config_consumer(config);
    consumer.FilterSubject = config->filter ? config->filter : filter;
    consumer.AckPolicy = js_AckExplicit;
    consumer.AckWait = (int64_t)(config->ack_wait * NSEC_PER_USEC);
    consumer.MaxDeliver = -1;
    consumer.MaxAckPending = ACK_PENDING_MAX;
    s = js_AddConsumer(NULL, client->js, config->stream, &consumer, NULL, &code);
    if (code != JSConsumerWQConsumerNotUniqueErr && code != JSConsumerWQMultipleUnfilteredErr)
        return report(client, "consumer", consumer.Durable, IS_NEW, s);
    log_error("consumer %s: another consumer of stream %s has messages of %s, and must be removed "
              "first",
              consumer.Durable, config->stream, consumer.FilterSubject);
    return CLIENT_FAILED;
}

/* Creating an existing one may change it. */
static int add_consumer(const struct client *client, const struct config *config)
{
    jsConsumerInfo *info = NULL;
    natsStatus s =
        js_GetConsumerInfo(&info, client->js, config->stream, config_consumer(config), NULL, NULL);

    jsConsumerInfo_Destroy(info);
    return s == NATS_NOT_FOUND ? make_consumer(client, config)
                               : report(client, "consumer", config_consumer(config), EXISTS, s);
}

int setup(const struct config *config)
{
    struct client client;
    int r = client_open(&client, config);

    if (r == CLIENT_OK)
        r = add_jobs(&client, config);
    if (r == CLIENT_OK)
        r = add_results(&client, config);
    if (r == CLIENT_OK)
        r = add_consumer(&client, config);
    if (r == CLIENT_OK)
        r = add_bucket(&client, config);
    client_close(&client);
    return r == CLIENT_OK ? CLIENT_OK : CLIENT_FAILED;
}
