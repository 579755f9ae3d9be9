/* SPDX-License-Identifier: MIT */
#include "worker/nats/metrics.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_MIN USEC_PER_SEC
#define WRITE_MAX (30 * USEC_PER_SEC)

static const struct {
    const char *name, *type, *help;
} families[_METRIC_N] = {
    [METRIC_CONNECTED] = {"connected", "gauge", "Whether it is connected to NATS."},
    [METRIC_TAKING] = {"taking", "gauge", "Whether it asks for messages when there is room."},
    [METRIC_STALLED] = {"stalled", "gauge", "Whether the consumer has messages and delivers none."},
    [METRIC_IN_FLIGHT] = {"in_flight", "gauge", "Messages fetched and not yet acknowledged."},
    [METRIC_UNPUBLISHED] = {"unpublished", "gauge",
                            "Jobs that have ended, not yet stored by NATS."},
    [METRIC_MESSAGES] = {"messages_total", "counter", "Messages that were delivered."},
    [METRIC_REDELIVERED] = {"redelivered_total", "counter",
                            "Those not delivered for the first time."},
    [METRIC_RESULTS] = {"results_total", "counter",
                        "Messages that were done, whose results are stored if wanted."},
    [METRIC_DEAD] = {"dead_total", "counter", "Those that became dead letters."},
    [METRIC_GIVEN_BACK] = {"given_back_total", "counter", "Messages left to other machines."},
    [METRIC_CONNECTIONS] = {"connections_total", "counter", "Connections to NATS that were made."},
    [METRIC_PUBLISH_FAILURES] = {"publish_failures_total", "counter",
                                 "Attempts to publish that failed, or were not confirmed in time."},
};

void metrics_init(struct metrics *metrics, const struct config *config)
{
    *metrics = (struct metrics){.config = config};
}

void metrics_remove(struct metrics *metrics)
{
    if (metrics->config->metrics_file && metrics->written_at > 0)
        (void)unlink(metrics->config->metrics_file);
}

static void print(const struct metrics *metrics, FILE *file)
{
    for (size_t i = 0; i < _METRIC_N; i++) {
        fprintf(file, "# HELP troupe_nats_%s %s\n# TYPE troupe_nats_%s %s\n", families[i].name,
                families[i].help, families[i].name, families[i].type);
        fprintf(file, "troupe_nats_%s{group=\"%s\",stream=\"%s\"} %" PRIu64 "\n", families[i].name,
                metrics->config->group, metrics->config->stream, metrics->n[i]);
    }
}

/* Does not follow a link that others may have put there. */
static FILE *create(const char *path)
{
    _cleanup_close_ int fd = -1;
    FILE *file;

    if (unlink(path) < 0 && errno != ENOENT)
        return NULL;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    file = fd < 0 ? NULL : fdopen(fd, "w");
    if (file)
        fd = -1; /* `file` has it */
    return file;
}

/* Replaces the file atomically. */
static int write_file(const struct metrics *metrics)
{
    const char *path = metrics->config->metrics_file;
    _cleanup_free_ char *temporary = NULL;
    FILE *file;
    int r = 0;

    if (asprintf(&temporary, "%s.new", path) < 0) {
        temporary = NULL;
        return -ENOMEM;
    }
    file = create(temporary);
    if (!file)
        return -errno;
    print(metrics, file);
    (void)fchmod(fileno(file), S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH); /* despite the umask */
    if (ferror(file))
        r = -EIO;
    if (fclose(file) != 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(temporary);
    return r;
}

static void metrics_write(struct metrics *metrics)
{
    int r = write_file(metrics);

    if (r < 0 && !metrics->failing)
        log_warning("MetricsFile=%s: %s; tried again later", metrics->config->metrics_file,
                    strerror(-r));
    metrics->failing = r < 0;
}

usec_t metrics_serve(struct metrics *metrics, usec_t now)
{
    const bool changed = memcmp(metrics->n, metrics->written, sizeof(metrics->n)) != 0;
    const usec_t due = metrics->written_at + (changed && !metrics->failing ? WRITE_MIN : WRITE_MAX);

    if (!metrics->config->metrics_file)
        return USEC_INFINITY;
    if (metrics->written_at > 0 && now < due)
        return due;
    metrics_write(metrics);
    metrics->written_at = now;
    memcpy(metrics->written, metrics->n, sizeof(metrics->n));
    return now + WRITE_MAX;
}
