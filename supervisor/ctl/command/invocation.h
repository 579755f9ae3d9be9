/* SPDX-License-Identifier: MIT */
#pragma once

/* One run of troupectl: its verb, options and operands, the connection, and the output. */

#include "shared/base/clock.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/command/verb-options.h"
#include "supervisor/ctl/text/terminal.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct invocation;

struct verb {
    const char *name;
    const char *operands;                      /* "GROUP [-]"; says how many there may be */
    int (*run)(struct invocation *invocation); /* an enum exit_status */
    const char *summary;                       /* "" = it is not listed, nor offered */
    uint64_t options;                          /* enum option_set, beside the common ones */
};

struct invocation {
    const struct verb *verb;
    struct options options;
    const char *const *operands;
    size_t n_operands;
    struct terminal out;
    struct varlink_client client; /* opened by the first call */
    bool lines;                   /* several JSON documents are printed, each on a line */
    /* Errors that the caller handles, for which calls print nothing: */
    bool lenient; /* EXIT_UNREACHABLE */
    bool waits;   /* EXIT_TIMEOUT */
};

/* The path of the socket: from the option, the environment, or the default. */
const char *invocation_socket(const struct invocation *invocation);

/* Operand i, or NULL. */
const char *invocation_operand(const struct invocation *invocation, size_t i);

/*
 * Calls `each` for all operands from `first` on. Returns EXIT_OK or the status of the last failure.
 * Stops if the supervisor is unreachable.
 */
int invocation_each(struct invocation *invocation, size_t first,
                    int (*each)(struct invocation *invocation, const char *operand));

/*
 * Reads the payload: --data, --file, or "-" for standard input. `operand` is "-" or NULL. The
 * caller frees `*ret`, which ends with a NUL. Prints errors and returns an exit status.
 */
int invocation_payload(const struct invocation *invocation, const char *operand, char **ret,
                       size_t *ret_size);

/* ---- signals ---- */

/* For verbs that must finish their work: the first SIGINT or SIGTERM is only noted, the second one
 * exits immediately with EXIT_INTERRUPTED. */

/* How long to wait at most before interrupt_seen() is called again: a signal that comes just before
 * a wait does not interrupt it. */
#define INTERRUPT_GLANCE (100 * USEC_PER_MSEC)

/* Starts catching signals; the first one interrupts waits (EINTR). Forgets earlier signals. */
void interrupt_catch(void);

/* Whether the first signal has arrived. */
bool interrupt_seen(void);

/* ---- replies on standard output ---- */

/*
 * Prints a JSON document: one line that is flushed immediately if `invocation->lines` is set,
 * otherwise indented on a terminal. Returns an exit status.
 */
int output_json(const struct invocation *invocation, const json_t *document);

/* Prints a reply: with --json as it is, otherwise with `show` (NULL = nothing). Returns like
 * output_json(). */
typedef void (*output_fn)(const struct invocation *invocation, const json_t *reply);
int output_reply(const struct invocation *invocation, const json_t *reply, output_fn show);

/* Writes JSON without a newline, safe for terminals; `flags` as for json_dumpf(). 0 or -1. */
int output_write(const json_t *document, size_t flags);

/*
 * The exit statuses of troupectl, which every verb returns. Documented in troupectl(1); scripts
 * rely on them.
 */
enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,        /* the operation or a job did not succeed */
    EXIT_USAGE = 2,         /* invalid command line */
    EXIT_UNREACHABLE = 3,   /* the supervisor is not running, or the connection was lost */
    EXIT_NOT_PERMITTED = 4, /* refused by the supervisor or by the mode of the socket */
    EXIT_NOT_FOUND = 5,     /* no such group, worker or job */
    EXIT_BUSY = 6,          /* queue full, id in use, too many clients, supervisor stopping */
    EXIT_INVALID = 7,       /* the configuration has problems */
    EXIT_TIMEOUT = 8,       /* --timeout expired; the operation may continue */
    EXIT_UNKNOWN = 9,       /* the supervisor restarted: what became of a job is not known */
    EXIT_TAKEN = 10,        /* a live job has the unique key */
    EXIT_LEFT_OUT = 11,     /* imported, but for settings without a counterpart */
    EXIT_INTERRUPTED = 130, /* as a shell reports SIGINT */
};

/* A file that is written beside the one that it replaces, under a name with six more letters. */
struct output_file {
    FILE *file;
    const char *path; /* borrowed */
    char *new;
};

/* Returns 0 or -errno; after 0, call output_file_close(). */
int output_file_open(struct output_file *ret, const char *path);
/* Replaces the file atomically if `error` is 0, else drops what was written. Returns 0, `error`, or
 * -errno. */
int output_file_close(struct output_file *file, int error);

/* Replaces a file atomically. Returns 0 or -errno. */
int output_replace_file(const char *path, const char *data, size_t size);
