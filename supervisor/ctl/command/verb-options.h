/* SPDX-License-Identifier: MIT */
#pragma once

/* The options of all verbs in one table, used for parsing, suggestions and the help. */

#include "shared/base/clock.h"
#include "worker/troupe.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which options a verb takes. */
enum option_set {
    OPTIONS_COMMON = 1u << 0,
    OPTIONS_CONNECT = 1u << 1, /* --timeout: of an answer */
    OPTIONS_PAYLOAD = 1u << 2,
    OPTIONS_ID = 1u << 3,
    OPTIONS_JOB = 1u << 4, /* with another --timeout: of an attempt */
    OPTIONS_WAIT = 1u << 5,
    OPTIONS_FOLLOW = 1u << 6,
    OPTIONS_EVENTS = 1u << 7,
    OPTIONS_ALL = 1u << 8,
    OPTIONS_ENDED = 1u << 9,
    OPTIONS_LIMIT = 1u << 10,
    OPTIONS_MAP = 1u << 11,
    OPTIONS_CONFIG = 1u << 12,
    OPTIONS_KEY = 1u << 13,   /* --key alone */
    OPTIONS_REPLY = 1u << 14, /* of an ask */
    OPTIONS_TIMER = 1u << 15,
    OPTIONS_IMPORT = 1u << 16,
    OPTIONS_LETTERS = 1u << 17,  /* which dead letters */
    OPTIONS_KIND = 1u << 18,     /* of actors */
    OPTIONS_CHANGE = 1u << 19,   /* how retry and purge change dead letters */
    OPTIONS_ACTOR = 1u << 20,    /* --actor: an actor's messages, not a group's jobs */
    OPTIONS_MESSAGES = 1u << 21, /* of the message log */
    OPTIONS_WITHIN = 1u << 22,   /* of a stop */
    OPTIONS_STATE = 1u << 23,    /* of jobs */
    OPTIONS_CANCEL = 1u << 24,   /* of cancel */
    OPTIONS_RECONNECT = 1u << 25,
    OPTIONS_DRY_RUN = 1u << 26, /* --dry-run alone */
    OPTIONS_METRICS = 1u << 27,
    OPTIONS_TOP = 1u << 28,
    OPTIONS_PATIENCE = 1u << 29, /* with another --timeout: of the wait that the verb is for */
    OPTIONS_RELOAD = 1u << 30,   /* --allow-empty */
    OPTIONS_HISTORY = 1u << 31,  /* which ended jobs */
    OPTIONS_DEMO = 1ull << 32,   /* of init */
    OPTIONS_FOR = 1ull << 33,    /* how long to look */
    OPTIONS_PLACES = 1ull << 34, /* of deaths */
    OPTIONS_PROFILE = 1ull << 35,
};

/* Strings are borrowed from the command line. */
struct options {
    bool help, version, json, quiet;
    const char *socket; /* NULL = the usual place */
    usec_t within;      /* how long jobs in hand may take; 0 = not given */
    bool keep;          /* a stop outlives the supervisor */
    usec_t timeout;     /* for an answer; 0 = the default of the verb */
    usec_t reconnect;   /* how long to try; USEC_INFINITY = for ever */
    bool reconnect_given;

    const char *data, *file;
    struct troupe_job_options job; /* without sizes, priority, on_conflict */
    int64_t priority;              /* -1 = the default */
    int64_t cost;                  /* 0 = the default */
    const char *on_conflict;       /* NULL = the default */
    const char *condition;         /* NULL = the default */

    bool wait, follow, jobs, all, ended;
    int64_t limit; /* 0 = the default of the verb */

    bool null, show_input, keep_going, background;
    int64_t window;
    const char *output_directory; /* of map; NULL = none */

    const char *config;

    const char *reply_type;
    usec_t ask_timeout, every; /* 0 = not given */
    const char *from, *to, *type, *reason;
    usec_t since;
    const char *send_to;
    bool everything;
    const char *kind, *messages, *state;
    bool actor;
    bool by_place;
    bool dry_run;
    usec_t older_than;
    const char *cause, *of_key;
    bool allow_empty;   /* of a reload */
    const char *output; /* of metrics and import */
    const char *user;   /* of import */
    usec_t since_at, until_at;
    const char *of_tag, *text;
    bool purge;               /* of history */
    bool demo;                /* of init */
    int64_t count;            /* of pictures of top; 0 = no limit */
    usec_t interval;          /* between them; 0 = the default */
    usec_t duration;          /* of record and profile; 0 = the default */
    const char *folded, *svg; /* of profile; NULL = none */
};

#define OPTIONS_DEFAULTS                                                                           \
    {                                                                                              \
        .job = TROUPE_JOB_DEFAULTS, .priority = -1, .window = 256                                  \
    }

enum option_kind {
    OPTION_FLAG,      /* bool */
    OPTION_TEXT,      /* const char * */
    OPTION_SPAN,      /* usec_t, not 0 */
    OPTION_NUMBER,    /* int64_t within minimum … maximum */
    OPTION_BACKOFF,   /* two of usec_t */
    OPTION_DATE,      /* usec_t */
    OPTION_MOMENT,    /* usec_t, in the past: a date, or a time span before now */
    OPTION_PATIENCE,  /* usec_t; without a value: infinite */
    OPTION_RECONNECT, /* usec_t and whether it is given */
};

struct option {
    uint64_t set;
    enum option_kind kind;
    char letter; /* 0 = none */
    const char *name;
    const char *argument; /* name of its value in the help; NULL = takes no value */
    const char *help;
    size_t offset;     /* in struct options */
    const char *field; /* its member there; NULL = it takes no value */
    int64_t minimum, maximum;
};

extern const struct option option_table[];
extern const size_t n_options;

/* Returns NULL if none of these sets has it. */
const struct option *option_find(uint64_t sets, const char *name, size_t length);

/* Returns the option of a job that sets this parameter of the interfaces, as "delay_usec"; or NULL.
 */
const struct option *option_of_parameter(const char *parameter, size_t length);

struct arguments {
    const char *const *items;
    size_t n_items, next;
    bool operands_only;          /* "--" was seen */
    const struct option *awaits; /* the last one, whose value is missing */
};

/*
 * Stores options up to the next operand. Returns 1 with the operand in `*ret`, 0 at the end, or
 * -EINVAL after printing an error. "-" is an operand.
 */
int options_next(struct options *options, uint64_t sets, struct arguments *arguments,
                 const char **ret);

/* Prints the options of these sets, two columns, to standard output. */
void options_help(uint64_t sets);
