/* SPDX-License-Identifier: MIT */
#include "worker/nats/setup.h"

#include "shared/base/log.h"
#include "worker/nats/bucket.h"
#include "worker/nats/client.h"
#include "worker/nats/engine.h"
#include "worker/nats/message.h"
#include "worker/nats/publication.h"
#include <errno.h>
#include <stdio.h>

#define NSEC_PER_USEC INT64_C(1000)
#define NSEC_PER_SEC  (INT64_C(1000) * 1000 * 1000)

/* How long results and dead letters stay. */
#define RESULTS_AGE (INT64_C(7) * 24 * 3600 * NSEC_PER_SEC)
/* Within this time the stream of jobs drops messages with an id that it has seen. */
#define DOUBLES_AGE (INT64_C(600) * NSEC_PER_SEC)

/* Of all machines together. Each bounds its own by InFlight=, and the server needs a number. */
#define ACK_PENDING_MAX 1000000

static int report(const char *what, const char *name, natsStatus s)
{
    const char *text = nats_GetLastError(NULL);

    if (s == NATS_OK)
        return 0;
    if (s == NATS_NO_RESPONDERS)
        text = ENGINE_NO_JETSTREAM;
    log_error("%s %s: %s", what, name, text && *text != '\0' ? text : natsStatus_GetText(s));
    return -EIO;
}

static int add_stream(jsCtx *js, const struct config *config, const char *name,
                      const char **subjects, int n_subjects, jsRetentionPolicy retention)
{
    jsStreamConfig stream;
    jsErrCode code = 0;
    natsStatus s;

    (void)jsStreamConfig_Init(&stream);
    stream.Name = name;
    stream.Subjects = subjects;
    stream.SubjectsLen = n_subjects;
    stream.Retention = retention;
    stream.Replicas = (int64_t)config->replicas;
    stream.Duplicates = DOUBLES_AGE;
    stream.MaxAge = retention == js_LimitsPolicy ? RESULTS_AGE : 0;
    s = js_AddStream(NULL, js, &stream, NULL, &code);
    if (code == JSStreamNameExistErr) {
        log_info("stream %s exists, and is left as it is", name);
        return 0;
    }
    return report("stream", name, s);
}

static int add_consumer(jsCtx *js, const struct config *config)
{
    jsConsumerConfig consumer;
    const char *name = config_consumer(config);
    jsConsumerInfo *info = NULL;
    char filter[160];
    natsStatus s;

    if (js_GetConsumerInfo(&info, js, config->stream, name, NULL, NULL) == NATS_OK) {
        jsConsumerInfo_Destroy(info);
        log_info("consumer %s exists, and is left as it is", name);
        return 0;
    }
    (void)snprintf(filter, sizeof(filter), MESSAGE_SUBJECT "%s.>", config->group);
    (void)jsConsumerConfig_Init(&consumer);
    consumer.Durable = name;
    consumer.FilterSubject = config->filter ? config->filter : filter;
    consumer.AckPolicy = js_AckExplicit;
    consumer.AckWait = (int64_t)config->ack_wait * NSEC_PER_USEC;
    consumer.MaxDeliver = -1;
    consumer.MaxAckPending = ACK_PENDING_MAX;
    s = js_AddConsumer(NULL, js, config->stream, &consumer, NULL, NULL);
    return report("consumer", name, s);
}

/* On disk, though the state is said again every few seconds: of a bucket in memory, most servers
 * must not crash at once, or the others wait for what these had. */
static int add_bucket(jsCtx *js, const struct config *config, const char *name, usec_t age)
{
    kvConfig bucket;
    kvStore *store = NULL;
    natsStatus s = js_KeyValue(&store, js, name);

    if (s == NATS_OK) {
        kvStore_Destroy(store);
        log_info("bucket %s exists, and is left as it is", name);
        return 0;
    }
    (void)kvConfig_Init(&bucket);
    bucket.Bucket = name;
    bucket.TTL = (int64_t)age * NSEC_PER_USEC;
    bucket.StorageType = js_FileStorage;
    bucket.Replicas = (int)config->replicas;
    s = js_CreateKeyValue(&store, js, &bucket);
    kvStore_Destroy(store);
    return report("bucket", name, s);
}

static int add_buckets(jsCtx *js, const struct config *config)
{
    int r = add_bucket(js, config, BUCKET_STATE, BUCKET_STATE_PERIODS * config->state);

    return r == 0 ? add_bucket(js, config, BUCKET_MACHINES, BUCKET_MACHINES_AGE) : r;
}

static int make_all(jsCtx *js, const struct config *config)
{
    /* What has no key is refused: no group takes it. */
    const char *jobs[] = {MESSAGE_SUBJECT "*.>"};
    const char *results[] = {PUBLICATION_RESULT_SUBJECT ">", PUBLICATION_LETTER_SUBJECT "*.*.*"};
    int r = add_stream(js, config, config->stream, jobs, 1, js_WorkQueuePolicy);

    if (r == 0)
        r = add_stream(js, config, SETUP_RESULTS_STREAM, results, 2, js_LimitsPolicy);
    if (r == 0)
        r = add_consumer(js, config);
    return r == 0 ? add_buckets(js, config) : r;
}

int setup(const struct config *config)
{
    struct client client = CLIENT_NULL;
    int r =
        client_open_early(&client, config) == CLIENT_OK ? make_all(client.js, config) : -ENOTCONN;

    client_close(&client);
    return r;
}
