/* SPDX-License-Identifier: MIT */
#pragma once

/* The current call of a client; a client has one at a time. A method replies with
 *
 *     struct reply *reply = request_begin(request);
 *     reply_int(reply, "pid", …);
 *     request_end(request);
 *
 * immediately or later. In the latter case it sets `state` and `drop`, which ends it when the
 * client disconnects. With "more" it calls request_end_more() any number of times, then
 * request_end(). */

#include "supervisor/varlink/connection.h"
#include "supervisor/varlink/reply.h"
#include "supervisor/varlink/varlink.h"
#include <stdbool.h>
#include <stddef.h>

struct attachment;
struct control_context;
struct control;
struct limited_log;
struct request;

struct request_method {
    const char *name; /* without the interface; NULL ends the table */
    void (*call)(struct request *request);
    bool changes; /* needs permission */
    bool submits; /* submitters also may; it checks that itself */
    bool begins;  /* refused while the supervisor stops */
    bool always;  /* also without groups; see NotConfigured */
};

struct request_interface {
    const char *name;
    const char *text;                            /* of its .varlink file */
    const struct request_method *const *methods; /* tables; NULL-terminated */
    struct interface description;                /* the declarations in `text` */
};

struct request {
    struct control_context *context;
    struct control *control;
    struct connection *connection;
    struct limited_log *log;
    struct varlink_call call;
    struct request_interface *interface;
    const struct request_method *method;
    struct reply reply;
    struct varlink_object parameters;      /* those that the interface describes */
    void *state;                           /* of a method that answers later */
    void (*drop)(struct request *request); /* frees `state`; called when the request ends */
    void (*sent)(struct request *request); /* NULL, or called when everything has been sent */
    void (*answer)(struct request *request, void *what); /* see request_answer_in_turn(); or NULL */
    void *what;
    struct task turn;              /* calls it */
    struct attachment *attachment; /* the client's; NULL = not attached */
    bool active;
};

/* The largest reply. */
#define REQUEST_REPLY_MAX CONNECTION_OUTPUT_MAX

/* No call is being made yet. All are borrowed, and outlive the request. */
void request_init(struct request *request, struct control_context *context, struct control *control,
                  struct connection *connection, struct limited_log *log);
/* Also drops a call that is under way. */
void request_deinit(struct request *request);

/* Parses a call. False if it is malformed; then it has been answered. */
bool request_start(struct request *request, const char *text, size_t size);

/* The call has "more". */
bool request_wants_more(const struct request *request);

/* Reads the parameters of the method, and checks them. False if they are wrong; then it has been
 * answered. */
bool request_take_parameters(struct request *request);

/* See varlink_string() and so on. */
static inline const char *request_string(const struct request *request, const char *name)
{
    return varlink_string(&request->parameters, name);
}

static inline bool request_bool(const struct request *request, const char *name)
{
    return varlink_bool(&request->parameters, name);
}

static inline bool request_has(const struct request *request, const char *name)
{
    return varlink_has(&request->parameters, name);
}

static inline int64_t request_int(const struct request *request, const char *name,
                                  int64_t otherwise)
{
    return varlink_int(&request->parameters, name, otherwise);
}

/* Returns whether a number is in a range, or absent; if not, it has been answered. */
bool request_range(struct request *request, const char *name, int64_t min, int64_t max);

/* Zeroed memory for a method's state. NULL = out of memory; then it has been answered. */
void *request_allocate(struct request *request, size_t size);

/* Has `answer` end the call. If this turn has spent its time for clients, that is in a later turn,
 * as many calls may wait for the same event: then it returns false, and the caller sets
 * request->what to what lasts that long, and `state` and `drop` to what frees it. */
bool request_answer_in_turn(struct request *request,
                            void (*answer)(struct request *request, void *what), void *what);
/* Does not wait for its turn, if it does. */
void request_answer_now(struct request *request);

struct reply *request_begin(struct request *request);
/* name: of the method's own interface ("NoSuchJob"), or a full one with dots. */
struct reply *request_begin_error(struct request *request, const char *name);
void request_end(struct request *request);
void request_end_more(struct request *request);
/* Sends descriptors with the reply. 0, or -errno after an error reply. */
int request_end_with_fds(struct request *request, const int *fds, unsigned n_fds);

/* Replies with parameters, if any; those that are NULL are left out. */
void request_done(struct request *request);
void request_fail(struct request *request, const char *name);
void request_fail_string(struct request *request, const char *name, const char *key,
                         const char *value);
void request_fail_strings(struct request *request, const char *name, const char *key,
                          const char *value, const char *second_key, const char *second);
void request_fail_int(struct request *request, const char *name, const char *key, int64_t value);
void request_invalid(struct request *request, const char *parameter);
/* Error BadOption. Returns false. */
bool request_refuse(struct request *request, const char *option, const char *allowed);
/* Error Internal, for lack of memory and the like. Logged. */
void request_internal(struct request *request, int error);
