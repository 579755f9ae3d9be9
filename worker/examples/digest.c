/* SPDX-License-Identifier: MIT */

/*
 * An example worker: the payload is the path of a file, the result its SHA-256 as sha256sum(1)
 * writes it.
 *
 * With --crash-share= it fails on purpose in that share of first attempts (and of second and third
 * ones), in all the ways in which workers fail. The failures depend only on the seed, the path and
 * the attempt's number, so that a run can be repeated.
 */

#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_SIZE      (256 * 1024)
#define CRASH_ATTEMPTS  3 /* later ones work, so that every job ends */
#define RUNAWAY_STEP    ((size_t)16 << 20)
#define RUNAWAY_LIMIT   ((rlim_t)1 << 30) /* if no other limit is set */
#define EXIT_ON_PURPOSE 3

struct digest {
    double crash_share; /* of 1 */
    uint64_t seed;
};

/* ---- breaking down ---- */

static void crash_segv(void)
{
    volatile int *volatile nowhere = NULL;

    *nowhere = 1;
}

static void crash_abort(void)
{
    abort();
}

static void crash_exit(void)
{
    exit(EXIT_ON_PURPOSE);
}

static void crash_hang(void)
{
    for (;;)
        pause();
}

static void crash_runaway(void)
{
    struct rlimit limit;

    /* The group's LimitAS= or MemoryMax= is meant to end this. The machine must not suffer
     * without one. */
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur > RUNAWAY_LIMIT) {
        limit.rlim_cur = RUNAWAY_LIMIT;
        (void)setrlimit(RLIMIT_AS, &limit);
    }
    for (;;) {
        void *memory = malloc(RUNAWAY_STEP);

        if (!memory)
            abort();
        explicit_bzero(memory, RUNAWAY_STEP); /* written for real, which memset() would not be */
    }
}

static void (*const crashes[])(void) = {
    crash_segv, crash_abort, crash_exit, crash_hang, crash_runaway,
};

/* 16 bytes that look random and are the same in every run with this seed. */
static void draw(const struct digest *digest, struct troupe_job *job, uint64_t ret[2])
{
    uint64_t numbers[] = {digest->seed, troupe_job_attempt(job)};
    uint8_t hash[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    size_t size;
    const uint8_t *payload = troupe_job_payload(job, &size);

    sha256_init(&context);
    sha256_update(&context, sizeof(numbers), (const uint8_t *)numbers);
    sha256_update(&context, size, payload);
    sha256_digest(&context, sizeof(hash), hash);
    memcpy(ret, hash, 2 * sizeof(*ret));
}

static void maybe_crash(const struct digest *digest, struct troupe_job *job)
{
    uint64_t random[2];

    if (digest->crash_share <= 0 || troupe_job_attempt(job) > CRASH_ATTEMPTS)
        return;
    draw(digest, job, random);
    if ((double)(random[0] >> 11) / (double)(UINT64_C(1) << 53) < digest->crash_share)
        crashes[random[1] % (sizeof(crashes) / sizeof(crashes[0]))]();
}

/* ---- the work ---- */

static void publish(struct troupe_job *job, const char *path, uint64_t bytes)
{
    char state[TROUPE_STATE_MAX];
    int size = snprintf(state, sizeof(state), "%" PRIu64 " bytes of %s", bytes, path);

    if (size >= (int)sizeof(state))
        size = (int)sizeof(state) - 1;
    (void)troupe_worker_publish_state(troupe_job_worker(job), state, (size_t)size);
}

/* 0 and the digest; -ECANCELED; or why the file could not be read. */
static int digest_file(struct troupe_job *job, const char *path, int fd,
                       uint8_t ret[SHA256_DIGEST_SIZE])
{
    static uint8_t chunk[CHUNK_SIZE];
    struct sha256_ctx context;
    uint64_t bytes = 0;
    ssize_t n;

    sha256_init(&context);
    for (;;) {
        publish(job, path, bytes);
        if (troupe_job_is_cancelled(job))
            return -ECANCELED;
        n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        if (n > 0) {
            sha256_update(&context, (size_t)n, chunk);
            bytes += (uint64_t)n;
        }
    }
    sha256_digest(&context, SHA256_DIGEST_SIZE, ret);
    return 0;
}

/* Opens a regular file; opening other files might wait forever. */
static int open_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
    }
    return fd;
}

static int refuse(struct troupe_job *job, const char *path, int error)
{
    char text[4352];

    snprintf(text, sizeof(text), "%s: %s", path,
             error == -EINVAL ? "not a regular file" : strerror(-error));
    return troupe_job_reject(job, -error, text, strlen(text));
}

static int succeed(struct troupe_job *job, const uint8_t digest[SHA256_DIGEST_SIZE])
{
    char text[2 * SHA256_DIGEST_SIZE + 1];

    for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return troupe_job_succeed(job, text, sizeof(text) - 1);
}

static int handle(struct troupe_job *job, void *userdata)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    char path[4096];
    const char *payload;
    size_t size;
    int fd, r;

    payload = troupe_job_payload(job, &size);
    if (size == 0 || size >= sizeof(path) || memchr(payload, '\0', size))
        return refuse(job, "payload", -ENAMETOOLONG);
    memcpy(path, payload, size);
    path[size] = '\0';
    publish(job, path, 0);
    maybe_crash(userdata, job);

    fd = open_file(path);
    if (fd < 0)
        return refuse(job, path, fd);
    r = digest_file(job, path, fd, digest);
    close(fd);
    if (r == -ECANCELED)
        return troupe_job_cancelled(job);
    return r < 0 ? refuse(job, path, r) : succeed(job, digest);
}

/* ---- the command line ---- */

static int usage(void)
{
    fputs("digest [--crash-share=PERCENT] [--seed=NUMBER]\n"
          "Works for trouped: payload = path of a file, result = its SHA-256.\n"
          "Breaks down on purpose on PERCENT of the attempts (default 0).\n",
          stderr);
    return -EINVAL;
}

static int parse_options(struct digest *digest, int argc, char *argv[])
{
    static const struct option options[] = {{"crash-share", required_argument, NULL, 'c'},
                                            {"seed", required_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        char *end;

        if (option == 'c') {
            digest->crash_share = strtod(optarg, &end) / 100;
            if (!(digest->crash_share >= 0 && digest->crash_share <= 1))
                return usage();
        } else if (option == 's')
            digest->seed = strtoull(optarg, &end, 10);
        else
            return usage();
        if (end == optarg || *end != '\0')
            return usage();
    }
    return optind == argc ? 0 : usage();
}

int main(int argc, char *argv[])
{
    struct digest digest = {.crash_share = 0, .seed = 1};
    struct troupe_worker *worker;
    int r;

    if (parse_options(&digest, argc, argv) < 0)
        return 2;
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, &digest);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
