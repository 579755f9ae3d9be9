/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The part of an older libtroupe's header that tests/e2e/old-layout.c needs: the first layout of
 * each struct that may grow. Never change it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TROUPE_USEC_INFINITY UINT64_MAX

struct troupe_client;
struct troupe_actor;
struct troupe_message;
typedef uint64_t troupe_ref;
typedef int (*troupe_message_fn)(struct troupe_actor *actor, struct troupe_message *message,
                                 void *userdata);

enum troupe_end {
    TROUPE_SUCCEEDED = 0
};

struct troupe_job_options {
    size_t struct_size;
    const char *id;
    const void *key;
    size_t key_size;
    int64_t max_retries;
    uint64_t timeout_usec;
    uint64_t backoff_min_usec, backoff_max_usec;
};

struct troupe_result {
    size_t struct_size;
    uint64_t cookie;
    int error;
    enum troupe_end end;
    int code;
    unsigned attempts;
    char id[65];
    const char *reason;
    const void *data;
    size_t size;
    void *internal;
};

struct troupe_message_options {
    size_t struct_size;
    const char *type;
    const void *data;
    size_t size;
    const char *text;
    const void *key;
    size_t key_size;
    uint64_t timeout_usec;
    const char *reply_type;
};

int troupe_client_connect(struct troupe_client **ret, const char *socket_path);
void troupe_client_free(struct troupe_client *client);
int troupe_client_group(struct troupe_client *client, const char *name, uint64_t *ret_group);
int troupe_client_do(struct troupe_client *client, uint64_t group,
                     const struct troupe_job_options *options, const void *data, size_t size,
                     struct troupe_result *ret);
int troupe_client_submit(struct troupe_client *client, uint64_t group,
                         const struct troupe_job_options *options, const void *data, size_t size,
                         uint64_t cookie);
int troupe_client_next(struct troupe_client *client, struct troupe_result *ret,
                       uint64_t timeout_usec);
void troupe_result_release(struct troupe_result *result);
struct troupe_actor *troupe_client_actor(struct troupe_client *client);
int troupe_actor_self(struct troupe_actor *actor, troupe_ref *ret);
int troupe_actor_on_message(struct troupe_actor *actor, const char *type, troupe_message_fn fn,
                            void *userdata);
int troupe_actor_turn(struct troupe_actor *actor, uint64_t timeout_usec);
int troupe_actor_tell_with(struct troupe_actor *actor, troupe_ref to,
                           const struct troupe_message_options *options);
int troupe_actor_timer_after_with(struct troupe_actor *actor, troupe_ref to, uint64_t delay_usec,
                                  uint64_t *ret_id, const struct troupe_message_options *options);
const char *troupe_message_type(const struct troupe_message *message);
const void *troupe_message_payload(const struct troupe_message *message, size_t *ret_size);
