/* SPDX-License-Identifier: MIT */
#include "supervisor/otlp/exporter.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "shared/base/log.h"
#include "shared/base/utf8.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#define BATCH_MAX  512u
#define BATCH_WAIT (2 * USEC_PER_SEC) /* for a fuller batch */
#define PAUSE_MIN  USEC_PER_SEC
#define PAUSE_MAX  (30 * USEC_PER_SEC)
/* The longest pause that the collector may ask for. */
#define RETRY_AFTER_MAX 3600u
#define ANSWER_MAX      ((size_t)64 << 10)
#define TELL_EVERY      (60 * USEC_PER_SEC)

/* Called with a part of the answer: more than ANSWER_MAX is not of interest. */
static size_t on_answer(const char *data, size_t one, size_t size, void *userdata)
{
    struct exporter *exporter = userdata;

    if (exporter->answer.size + size <= ANSWER_MAX)
        buffer_add(&exporter->answer, data, size);
    return size;
}

/* libcurl does not limit trailers. A return value other than `size` ends the transfer. */
static size_t on_header(const char *data, size_t one, size_t size, void *userdata)
{
    struct exporter *exporter = userdata;

    exporter->header_bytes += size;
    return exporter->header_bytes <= ANSWER_MAX ? size : 0;
}

int exporter_init(struct exporter *exporter, const struct collector *collector)
{
    *exporter = (struct exporter){.collector = collector, .send_at = USEC_INFINITY};
    exporter->multi = curl_multi_init();
    exporter->request = curl_easy_init();
    if (!exporter->multi || !exporter->request)
        return -ENOMEM;
    (void)curl_easy_setopt(exporter->request, CURLOPT_URL, collector->url);
    (void)curl_easy_setopt(exporter->request, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(exporter->request, CURLOPT_HTTPHEADER, collector->headers);
    (void)curl_easy_setopt(exporter->request, CURLOPT_TIMEOUT_MS,
                           (long)(collector->timeout / USEC_PER_MSEC));
    (void)curl_easy_setopt(exporter->request, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(exporter->request, CURLOPT_USERAGENT, "troupe-otlp/" TROUPE_VERSION);
    (void)curl_easy_setopt(exporter->request, CURLOPT_WRITEFUNCTION, on_answer);
    (void)curl_easy_setopt(exporter->request, CURLOPT_WRITEDATA, exporter);
    (void)curl_easy_setopt(exporter->request, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(exporter->request, CURLOPT_HEADERDATA, exporter);
    return 0;
}

/* ---- the spans ---- */

static char **span_at(struct exporter *exporter, unsigned i)
{
    return &exporter->spans[(exporter->first + i) % EXPORTER_SPANS_MAX];
}

static void forget(struct exporter *exporter, unsigned n)
{
    for (; n > 0; n--) {
        char **span = span_at(exporter, 0);

        exporter->bytes -= strlen(*span);
        free(TAKE_PTR(*span));
        exporter->first = (exporter->first + 1) % EXPORTER_SPANS_MAX;
        exporter->n--;
    }
}

void exporter_deinit(struct exporter *exporter)
{
    if (exporter->n_sent > 0)
        (void)curl_multi_remove_handle(exporter->multi, exporter->request);
    curl_easy_cleanup(exporter->request);
    (void)curl_multi_cleanup(exporter->multi);
    forget(exporter, exporter->n);
    buffer_deinit(&exporter->body);
    buffer_deinit(&exporter->answer);
}

void exporter_drop(struct exporter *exporter, unsigned n)
{
    exporter->n_dropped += n;
}

void exporter_add(struct exporter *exporter, char *span, usec_t now)
{
    const size_t size = span ? strlen(span) : 0;

    if (!span || exporter->n == EXPORTER_SPANS_MAX || exporter->bytes + size > EXPORTER_BYTES_MAX) {
        free(span);
        exporter_drop(exporter, 1);
        return;
    }
    *span_at(exporter, exporter->n++) = span;
    exporter->bytes += size;
    if (exporter->send_at == USEC_INFINITY && exporter->n_sent == 0)
        exporter->send_at = usec_add(now, BATCH_WAIT);
    if (exporter->n >= BATCH_MAX && exporter->pause == 0 && exporter->n_sent == 0)
        exporter->send_at = now;
}

static void tell_dropped(struct exporter *exporter, usec_t now)
{
    const uint64_t n = exporter->n_dropped - exporter->n_told;

    if (n == 0 || (now < exporter->told_at && !exporter->stopping))
        return;
    log_warning("%" PRIu64 " spans are dropped, %" PRIu64 " since the start", n,
                exporter->n_dropped);
    exporter->n_told = exporter->n_dropped;
    exporter->told_at = usec_add(now, TELL_EVERY);
}

/* ---- requests ---- */

/* Adds what comes before the spans. */
static bool add_envelope(const struct exporter *exporter, struct buffer *body)
{
    char host[256] = "";
    json_auto_t *resource = NULL, *scope = NULL;
    _cleanup_free_ char *resource_text = NULL, *scope_text = NULL;

    if (gethostname(host, sizeof(host) - 1) < 0 || !utf8_is_text(host, strlen(host)))
        host[0] = '\0';
    resource = json_pack("{s:[{s:s, s:{s:s}}, {s:s, s:{s:s}}, {s:s, s:{s:s}}]}", "attributes",
                         "key", "service.name", "value", "stringValue", "troupe", "key",
                         "service.version", "value", "stringValue", TROUPE_VERSION, "key",
                         "host.name", "value", "stringValue", host);
    scope = json_pack("{s:s, s:s, s:[{s:s, s:{s:o}}]}", "name", "troupe-otlp", "version",
                      TROUPE_VERSION, "attributes", "key", "troupe.otlp.dropped_spans", "value",
                      "intValue", json_sprintf("%" PRIu64, exporter->n_dropped));
    resource_text = resource ? json_dumps(resource, JSON_COMPACT) : NULL;
    scope_text = scope ? json_dumps(scope, JSON_COMPACT) : NULL;
    if (!resource_text || !scope_text)
        return false;
    buffer_add_string(body, "{\"resourceSpans\":[{\"resource\":");
    buffer_add_string(body, resource_text);
    buffer_add_string(body, ",\"scopeSpans\":[{\"scope\":");
    buffer_add_string(body, scope_text);
    buffer_add_string(body, ",\"spans\":[");
    return true;
}

static bool make_body(struct exporter *exporter, unsigned n)
{
    struct buffer *body = &exporter->body;

    body->size = 0;
    if (!add_envelope(exporter, body))
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            buffer_add_char(body, ',');
        buffer_add_string(body, *span_at(exporter, i));
    }
    buffer_add_string(body, "]}]}]}");
    if (!body->failed)
        return true;
    buffer_deinit(body);
    return false;
}

/* Schedules the next attempt after `pause`, or if that is 0, after a random part of a growing time.
 */
static void fail(struct exporter *exporter, usec_t pause, usec_t now, const char *problem)
{
    if (exporter->pause == 0)
        log_warning("cannot export to %s: %s; trying again", exporter->collector->name, problem);
    exporter->pause = usec_clamp(exporter->pause * 2, PAUSE_MIN, PAUSE_MAX);
    if (pause == 0)
        pause = exporter->pause / 2 + hash_mix(now ^ hash_secret()) % (exporter->pause / 2);
    exporter->send_at = usec_add(now, pause);
    if (!exporter->stopping)
        return;
    exporter_drop(exporter, exporter->n);
    forget(exporter, exporter->n);
}

static void begin(struct exporter *exporter, usec_t now)
{
    const unsigned n = exporter->n < BATCH_MAX ? exporter->n : BATCH_MAX;

    if (!make_body(exporter, n)) {
        fail(exporter, 0, now, "out of memory");
        return;
    }
    exporter->answer.size = exporter->header_bytes = 0;
    (void)curl_easy_setopt(exporter->request, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)exporter->body.size);
    (void)curl_easy_setopt(exporter->request, CURLOPT_POSTFIELDS, exporter->body.bytes);
    if (curl_multi_add_handle(exporter->multi, exporter->request) != CURLM_OK) {
        fail(exporter, 0, now, "out of memory");
        return;
    }
    exporter->n_sent = n;
    exporter->send_at = USEC_INFINITY;
}

/* How many spans the collector has refused, as it says in its answer. */
static unsigned count_refused(const struct exporter *exporter)
{
    json_auto_t *answer = json_loadb(exporter->answer.bytes ? exporter->answer.bytes : "",
                                     exporter->answer.size, 0, NULL);
    const json_t *n = json_object_get(json_object_get(answer, "partialSuccess"), "rejectedSpans");
    const long long value =
        json_is_string(n) ? strtoll(json_string_value(n), NULL, 10) : json_integer_value(n);

    return value > 0 && value <= (long long)exporter->n_sent ? (unsigned)value : 0;
}

static void finish_batch(struct exporter *exporter, unsigned n_lost, usec_t now)
{
    if (exporter->pause > 0)
        log_notice("exporting to %s again", exporter->collector->name);
    exporter_drop(exporter, n_lost);
    forget(exporter, exporter->n_sent);
    exporter->pause = 0;
    exporter->send_at = exporter->n == 0          ? USEC_INFINITY
                        : exporter->n < BATCH_MAX ? usec_add(now, BATCH_WAIT)
                                                  : now;
}

/* The statuses after which the protocol permits another attempt. */
static bool may_retry(long status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static void end(struct exporter *exporter, CURLcode code, usec_t now)
{
    curl_off_t after = 0;
    char problem[64];
    long status = 0;

    (void)curl_easy_getinfo(exporter->request, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(exporter->request, CURLINFO_RETRY_AFTER, &after);
    (void)curl_multi_remove_handle(exporter->multi, exporter->request);
    (void)snprintf(problem, sizeof(problem), "HTTP status %ld", status);
    if (code == CURLE_OK && status >= 200 && status <= 299) {
        finish_batch(exporter, count_refused(exporter), now);
    } else if (code == CURLE_OK && !may_retry(status)) {
        log_warning("%s refuses %u spans: %s", exporter->collector->name, exporter->n_sent,
                    problem);
        finish_batch(exporter, exporter->n_sent, now);
    } else {
        if (after > RETRY_AFTER_MAX)
            after = RETRY_AFTER_MAX;
        fail(exporter, after > 0 ? (usec_t)after * USEC_PER_SEC : 0, now,
             code == CURLE_OK ? problem : curl_easy_strerror(code));
    }
    exporter->n_sent = 0;
}

void exporter_run(struct exporter *exporter, usec_t now)
{
    const CURLMsg *message;
    int running, left;

    if (exporter->n_sent == 0 && exporter->n > 0 && now >= exporter->send_at)
        begin(exporter, now);
    if (exporter->n_sent > 0) {
        (void)curl_multi_perform(exporter->multi, &running);
        message = curl_multi_info_read(exporter->multi, &left);
        if (message)
            end(exporter, message->data.result, now);
    }
    tell_dropped(exporter, now);
}

usec_t exporter_deadline(const struct exporter *exporter)
{
    const bool untold = exporter->n_dropped > exporter->n_told;

    return usec_min(exporter->send_at, untold ? exporter->told_at : USEC_INFINITY);
}

bool exporter_stop(struct exporter *exporter)
{
    if (exporter->n_sent == 0 && exporter->n > 0)
        exporter->send_at = 0;
    exporter->stopping = true;
    return exporter->n == 0;
}
