/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A client and the call it is making: one at a time. A method answers with
 *
 *     struct reply *reply = request_begin(request);
 *     reply_int(reply, "pid", …);
 *     request_end(request);
 *
 * at once, or later: then it leaves `state` and `drop` behind, so that it can be called off when
 * the client goes away. For "more": request_end_more() as often as wanted, request_end() last.
 */

#include "supervisor/varlink/connection.h"
#include "supervisor/varlink/reply.h"
#include "supervisor/varlink/varlink.h"
#include <stdbool.h>

struct attachment;
struct context;
struct control;
struct limited_log;
struct request;

struct request_method {
    const char *name; /* without the interface; NULL ends the table */
    void (*call)(struct request *request);
    bool changes; /* needs permission */
};

struct request_interface {
    const char *name;
    const char *description; /* the text of its .varlink file */
    const struct request_method *methods;
};

struct request {
    struct context *context;
    struct control *control;
    struct connection *connection;
    struct limited_log *log;
    struct varlink_call call;
    const struct request_interface *interface;
    const struct request_method *method;
    struct reply reply;
    void *state;                           /* of a method that answers later */
    void (*drop)(struct request *request); /* lets go of `state`; called when the request ends */
    void (*sent)(struct request *request); /* or NULL: the client has all it was sent so far */
    struct attachment *attachment;         /* the client's, for as long as it is connected */
    bool active;
};

/* One answer, and so the bound of what a method may build up. */
#define REQUEST_REPLY_MAX CONNECTION_OUTPUT_MAX

/* No call is being made yet. All are borrowed, and outlive the request. */
void request_init(struct request *request, struct context *context, struct control *control,
                  struct connection *connection, struct limited_log *log);
/* Also drops what is still going on. */
void request_deinit(struct request *request);

/* What the request holds counts for another account from now on, which it borrows. */
void request_move(struct request *request, struct account *account);

/* Begins a call; ends with one of the functions below. Wrong ones are answered here: false. */
bool request_start(struct request *request, const char *text, size_t size);

/* More than one answer is wanted. */
bool request_wants_more(const struct request *request);
/* Nobody waits for an answer: do not wait for anything on its behalf. */
bool request_is_oneway(const struct request *request);

/* Parameters into a zeroed struct; what is wrong is answered: false. */
bool request_take(struct request *request, const struct varlink_parameter *table, void *target);

struct reply *request_begin(struct request *request);
/* name: of the method's own interface ("NoSuchJob"), or a full one with dots. */
struct reply *request_begin_error(struct request *request, const char *name);
void request_end(struct request *request);
void request_end_more(struct request *request);
/* With descriptors beside the answer. 0, or -errno: then the client was told that it failed. */
int request_end_with_fds(struct request *request, const int *fds, unsigned n_fds);

/* Answers without or with one parameter. */
void request_done(struct request *request);
void request_fail(struct request *request, const char *name);
void request_fail_string(struct request *request, const char *name, const char *key,
                         const char *value);
void request_fail_int(struct request *request, const char *name, const char *key, int64_t value);
void request_invalid(struct request *request, const char *parameter);
/* Internal(message), for what is nobody's fault: out of memory and the like. */
void request_internal(struct request *request, int error);
