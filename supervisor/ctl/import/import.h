/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Translates configurations of other programs into NAME.group and NAME.schedule. A setting without
 * a counterpart becomes a comment, is reported on standard error, and is counted.
 *
 * Functions that allocate note a failure in `failed`, and return an empty text.
 */

#include "shared/base/buffer.h"
#include "supervisor/config/keys/keys.h"
#include <stdbool.h>
#include <stddef.h>

/* One setting, at its place in the input. The strings belong to the import. */
struct import_setting {
    const char *section, *key, *value;
    const char *path;
    unsigned line; /* 0 = the whole file */
};

struct import_settings {
    struct import_setting *items; /* owned */
    size_t n;
};

struct import_file {
    const char *name;   /* without its suffix */
    const char *suffix; /* CONFIG_GROUP_SUFFIX or CONFIG_SCHEDULE_SUFFIX */
    const char *from;   /* a remark for its first line */
    const struct config_schema *schema;
    union {
        struct config_group group;
        struct config_schedule schedule;
    } object;               /* what has been set so far */
    struct buffer texts[8]; /* of its sections, in the order of the schema */
    struct import_file *next;
};

struct import {
    const char *user; /* for what names no user; NULL = the owner of a crontab, otherwise root */
    bool quiet;
    struct import_file *files, *last;
    char **texts; /* owned */
    size_t n_texts;
    unsigned n_left;     /* settings without a counterpart */
    unsigned n_mistakes; /* in the input */
    bool failed;         /* out of memory */
};

/* clang-format off */
#define IMPORT_NULL {0}
/* clang-format on */

void import_deinit(struct import *import);

/* These return a text that belongs to the import. */
const char *import_text(struct import *import, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *import_take(struct import *import, struct buffer *buffer);
/* Returns a valid name of a file that is like `name`. */
const char *import_name(struct import *import, const char *name, const char *suffix);
/* Returns the file's text, or NULL after a mistake. */
const char *import_read(struct import *import, const char *path);
/* Returns the next line, and moves `*at` behind it; NULL = no more. */
const char *import_line(struct import *import, const char **at);

/* Reports a mistake in the input. */
void import_mistake(struct import *import, const struct import_setting *place, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* ---- what is translated ---- */

struct import_unit {
    struct import *import;
    struct import_file *file;        /* that is written now; NULL = none yet */
    struct import_settings settings; /* freed by the reader */
    const char *section;             /* whose settings are translated; NULL = all */
    bool is_job;                     /* the group has jobs, and is no service */
    /* Returns the text with variables or specifiers expanded; NULL if one has no fixed value. */
    const char *(*expand)(const struct import_unit *unit, const struct import_setting *setting,
                          const char *text);
};

/* Adds a setting, whose strings belong to the import. */
void import_add(struct import_unit *unit, struct import_setting setting);
/* Returns the last setting of that name in a section (NULL = all); NULL if there is none. */
const struct import_setting *import_find(const struct import_unit *unit, const char *section,
                                         const char *key);
const char *import_value(const struct import_unit *unit, const char *section, const char *key,
                         const char *otherwise);

/* Begins a file with a name like `name` that no other file of its kind has. Returns false without
 * memory. */
bool import_begin(struct import_unit *unit, const char *name, const char *suffix,
                  const struct import_setting *place);
/* Writes a key. If its value is not allowed, the setting is left out. */
void import_set(struct import_unit *unit, const struct import_setting *setting, const char *key,
                const char *value);
/* Writes a comment. */
void import_remark(struct import_unit *unit, const char *text);
/* Leaves a setting out, and reports what to do instead. */
void import_leave(struct import_unit *unit, const struct import_setting *setting,
                  const char *instead);
/* Sets User=, and says so if that is root. `user` is NULL if the input names none. */
void import_user(struct import_unit *unit, const struct import_setting *setting, const char *user);
/* Sets ExecStart= of a service, or of a group whose jobs run the command. */
void import_command(struct import_unit *unit, const struct import_setting *setting,
                    const char *command);

/* ---- rules ---- */

/* How a setting is translated that has another name in the file, or no counterpart. */
struct import_rule {
    const char *keys; /* patterns, separated by spaces */
    const char *fine; /* patterns of values for which nothing is to be done */
    /* One of these, for other values; none = nothing is to be done. */
    void (*convert)(struct import_unit *unit, const struct import_setting *setting);
    const char *same;    /* the keys that mean the same, separated by spaces */
    const char *instead; /* it is left out */
    const char *job;     /* `same` of a group with jobs, if that differs */
};

bool import_is_true(const char *value);
/* Whether the key matches one of the patterns, which are separated by spaces. */
bool import_matches(const char *patterns, const char *key);
/* Translates all settings. */
void import_convert(struct import_unit *unit, const struct import_rule *rules, size_t n_rules);

/* ---- command lines, which ExecStart= reads as systemd and supervisord do ---- */

/* Returns a word with quotes and escapes if it needs them. */
const char *import_quote(struct import *import, const char *word);
/* Returns the command line of a shell that runs the script, in which "%" must be doubled. */
const char *import_shell(struct import *import, const char *shell, const char *script);

/* ---- the kinds of input; `text` is UTF-8 ---- */

void import_cron(struct import *import, const char *path, const char *text);
void import_supervisord(struct import *import, const char *path, const char *text);
/* `paths`: files and names of services, of which all are imported together. */
void import_systemd(struct import *import, const char *const *paths, size_t n_paths);
