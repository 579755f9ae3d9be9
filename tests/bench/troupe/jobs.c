/* SPDX-License-Identifier: MIT */

/*
 * Troupe, jobs with their whole life cycle. ADDRESS is one of
 *
 *     GROUP@SOCKET
 *     GROUP/KEY@SOCKET         the key of all jobs
 *     cells=N:GROUP@SOCKET     the jobs go round N keys
 *     blob:GROUP@SOCKET        each payload is memory of its own that is handed over, not copied;
 * only its first eight bytes are written
 *     create:GROUP@SOCKET      each job is created, and when its id is known, its end is waited for
 *     unique:GROUP@SOCKET      each job has a unique key of its own
 */

#include "tests/bench/load/load.h"
#include "worker/client/client.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct troupe {
    struct troupe_client *client;
    uint64_t group;
    bool blobs, creates, unique;
    uint64_t n_cells, cell, n_unique;
    char name[256]; /* the group's; behind it in `options` the key */
    struct troupe_job_options options;
};

static int open_client(const char *address, unsigned window, void **ret)
{
    struct troupe *self = calloc(1, sizeof(*self));

    if (!self)
        return -ENOMEM;
    *ret = self;
    self->blobs = strncmp(address, "blob:", 5) == 0;
    address += self->blobs ? 5 : 0;
    self->creates = strncmp(address, "create:", 7) == 0;
    address += self->creates ? 7 : 0;
    self->unique = strncmp(address, "unique:", 7) == 0;
    address += self->unique ? 7 : 0;
    if (strncmp(address, "cells=", 6) == 0) {
        self->n_cells = strtoull(address + 6, NULL, 10);
        address += strcspn(address, ":") + 1;
    }
    const char *at = strchr(address, '@');
    if (!at || (size_t)(at - address) >= sizeof(self->name))
        return -EINVAL;
    snprintf(self->name, sizeof(self->name), "%.*s", (int)(at - address), address);
    self->options = (struct troupe_job_options)TROUPE_JOB_DEFAULTS;
    char *key = strchr(self->name, '/');
    if (key) {
        *key++ = '\0';
        self->options.key = key;
        self->options.key_size = strlen(key);
    }
    int r = troupe_client_connect(&self->client, at + 1);
    return r == 0 ? troupe_client_group(self->client, self->name, &self->group) : r;
}

/* Cookies of `create:`. */
enum {
    CREATED,
    ENDED
};

static int create(struct troupe *self, const void *data, size_t size)
{
    const struct request_job job = {.group = self->group,
                                    .options = &self->options,
                                    .data = data,
                                    .size = size,
                                    .cookie = CREATED};
    uint64_t number;

    return request_submit(self->client, &job, &number);
}

/* -EAGAIN has another meaning for the caller. */
static int wait_created(struct troupe *self, const char *id)
{
    int r = troupe_client_wait(self->client, id, ENDED);

    return r == -EAGAIN ? -ENOBUFS : r;
}

static int submit(void *userdata, const void *data, size_t size)
{
    struct troupe *self = userdata;
    char key[24];

    if (self->creates)
        return create(self, data, size);
    if (self->unique) {
        self->options.unique = &self->n_unique;
        self->options.unique_size = sizeof(self->n_unique);
        self->n_unique++;
    }
    if (self->n_cells > 0) {
        self->options.key = key;
        self->options.key_size = (size_t)snprintf(
            key, sizeof(key), "c%llu", (unsigned long long)(self->cell++ % self->n_cells));
    }
    if (self->blobs) {
        void *blob;
        int r = troupe_client_blob(self->client, size, &blob);
        if (r < 0)
            return r;
        memcpy(blob, data, sizeof(uint64_t));
        data = blob;
    }
    return troupe_client_submit(self->client, self->group, &self->options, data, size, 0);
}

static int flush(void *userdata)
{
    struct troupe *self = userdata;

    troupe_client_flush(self->client);
    return 0;
}

static int next(void *userdata, int wait, void *data, size_t size)
{
    struct troupe *self = userdata;
    struct troupe_result result = TROUPE_RESULT_INIT;
    bool created;
    int r;

    do {
        r = troupe_client_next(self->client, &result, wait ? TROUPE_USEC_INFINITY : 0);
        created = r == 0 && self->creates && result.cookie == CREATED && result.error == 0;
        if (created)
            r = wait_created(self, result.id);
        if (r < 0)
            return r;
    } while (created);
    r = result.error;
    if (r == 0 && (result.end != TROUPE_SUCCEEDED || result.size != size))
        r = -EBADMSG;
    if (r == 0)
        memcpy(data, result.data, size);
    troupe_result_release(&result);
    return r;
}

int main(int argc, char **argv)
{
    static const struct load_system system = {"jobs", open_client, submit, flush, next, NULL};

    return load_main(argc, argv, &system);
}
