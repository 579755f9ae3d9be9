/* SPDX-License-Identifier: MIT */
/* A work-queue stream of NATS JetStream, by libnats.
 *
 *     stream PORT flow COUNT SIZE
 *                               publishes messages, waits until all are acknowledged, prints
 *                               how fast that was
 *     stream PORT consume       acknowledges whatever comes and does nothing else, until it is
 * ended stream PORT answer        the same, but stores an empty result of each message before,
 * once, with the subject and headers that troupe-nats gives it
 *
 * The stream is JOBS with the subjects jobs.>, its consumer echo, as `troupe-nats setup echo` makes
 * them. */

#include <nats/nats.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAM      "JOBS"
#define SUBJECT     "jobs.echo.any"
#define CONSUMER    "echo"
#define BATCH       64   /* as many as troupe-nats has in flight here */
#define PENDING_MAX 1024 /* published and not yet stored */
#define PAYLOAD_MAX 65536
#define WAIT_MS     5000
#define STALL_MS    30000

static void check(natsStatus status, const char *what)
{
    if (status == NATS_OK)
        return;
    (void)fprintf(stderr, "stream: %s: %s\n", what, natsStatus_GetText(status));
    exit(1);
}

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t count_stored(jsCtx *js)
{
    jsStreamInfo *info = NULL;

    check(js_GetStreamInfo(&info, js, STREAM, NULL, NULL), "asking about the stream");
    uint64_t n = info->State.Msgs;
    jsStreamInfo_Destroy(info);
    return n;
}

static void flow(jsCtx *js, long count, int size)
{
    static char payload[PAYLOAD_MAX];
    double begin = now_s(), seconds;

    memset(payload, 'x', sizeof(payload));
    for (long i = 0; i < count; i++)
        check(js_PublishAsync(js, SUBJECT, payload, size, NULL), "publishing");
    check(js_PublishAsyncComplete(js, NULL), "publishing");
    while (count_stored(js) > 0)
        nats_Sleep(2);
    seconds = now_s() - begin;
    (void)printf("{\"jobs\": %ld, \"seconds\": %.6f, \"jobs_per_s\": %.1f}\n", count, seconds,
                 (double)count / seconds);
}

static void fetch(natsSubscription *subscription, natsMsgList *ret)
{
    natsStatus status;

    do
        status = natsSubscription_Fetch(ret, subscription, BATCH, WAIT_MS, NULL);
    while (status == NATS_TIMEOUT);
    check(status, "fetching");
}

/* All are published before the first is waited for. */
static void answer(jsCtx *js, const natsMsgList *list)
{
    for (int i = 0; i < list->Count; i++) {
        jsMsgMetaData *about = NULL;
        natsMsg *result = NULL;
        char subject[64], id[64];

        check(natsMsg_GetMetaData(&about, list->Msgs[i]), "reading");
        (void)snprintf(subject, sizeof(subject), "troupe.result." STREAM ".%llu",
                       (unsigned long long)about->Sequence.Stream);
        (void)snprintf(id, sizeof(id), STREAM ":%llu", (unsigned long long)about->Sequence.Stream);
        jsMsgMetaData_Destroy(about);
        check(natsMsg_Create(&result, subject, NULL, "", 0), "a result");
        check(natsMsgHeader_Set(result, "Nats-Msg-Id", id), "a result");
        check(natsMsgHeader_Set(result, "Nats-Expected-Last-Subject-Sequence", "0"), "a result");
        check(js_PublishMsgAsync(js, &result, NULL), "publishing");
    }
    check(js_PublishAsyncComplete(js, NULL), "publishing");
}

static void consume(jsCtx *js, bool answers)
{
    natsSubscription *subscription = NULL;
    jsSubOptions options;

    check(jsSubOptions_Init(&options), "options");
    options.Stream = STREAM;
    check(js_PullSubscribe(&subscription, js, "jobs.echo.>", CONSUMER, NULL, &options, NULL),
          "subscribing");
    (void)puts("ready");
    (void)fflush(stdout);
    for (;;) {
        natsMsgList list = {0};

        fetch(subscription, &list);
        if (answers)
            answer(js, &list);
        for (int i = 0; i < list.Count; i++)
            check(natsMsg_Ack(list.Msgs[i], NULL), "acknowledging");
        natsMsgList_Destroy(&list);
    }
}

int main(int argc, char **argv)
{
    char url[64];
    natsConnection *connection = NULL;
    jsCtx *js = NULL;
    jsOptions options;

    if (argc < 3)
        return 2;
    (void)snprintf(url, sizeof(url), "nats://127.0.0.1:%s", argv[1]);
    check(natsConnection_ConnectTo(&connection, url), "connecting");
    check(jsOptions_Init(&options), "options");
    options.PublishAsync.MaxPending = PENDING_MAX;
    options.PublishAsync.StallWait = STALL_MS;
    check(natsConnection_JetStream(&js, connection, &options), "JetStream");
    if (strcmp(argv[2], "consume") == 0)
        consume(js, false);
    else if (strcmp(argv[2], "answer") == 0)
        consume(js, true);
    else if (argc == 5 && strcmp(argv[2], "flow") == 0 && atoi(argv[4]) <= PAYLOAD_MAX)
        flow(js, atol(argv[3]), atoi(argv[4]));
    else
        return 2;
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    nats_Close();
    return 0;
}
