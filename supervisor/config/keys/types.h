/* SPDX-License-Identifier: MIT */
#pragma once

/* The types of the fields that configuration keys have. */

#include "supervisor/config/keys/keys.h"

extern const struct config_type CONFIG_TYPE_UNSIGNED;  /* unsigned; a number */
extern const struct config_type CONFIG_TYPE_COUNT;     /* uint64_t; a number */
extern const struct config_type CONFIG_TYPE_INTEGER;   /* int; a number that may be negative */
extern const struct config_type CONFIG_TYPE_SIZE;      /* uint64_t; bytes */
extern const struct config_type CONFIG_TYPE_SIZE32;    /* uint32_t; bytes */
extern const struct config_type CONFIG_TYPE_TIME;      /* usec_t */
extern const struct config_type CONFIG_TYPE_TIMEOUT;   /* usec_t; 0 means infinity, as in systemd */
extern const struct config_type CONFIG_TYPE_FRACTION;  /* double */
extern const struct config_type CONFIG_TYPE_RATE;      /* struct config_rate */
extern const struct config_type CONFIG_TYPE_PERCENT;   /* uint64_t */
extern const struct config_type CONFIG_TYPE_POOL_SIZE; /* struct config_size */
extern const struct config_type CONFIG_TYPE_SIGNAL;    /* int */
extern const struct config_type CONFIG_TYPE_STATUSES;  /* struct config_statuses; a list */
extern const struct config_type CONFIG_TYPE_CHOICE;    /* an enumeration from 0 on */
extern const struct config_type CONFIG_TYPE_BOOL;      /* bool; "no, yes" */
extern const struct config_type CONFIG_TYPE_LOG_LEVEL; /* enum log_level */
extern const struct config_type CONFIG_TYPE_MODE;      /* unsigned; octal */
extern const struct config_type CONFIG_TYPE_ERROR;     /* int; 0 = "kill" */
extern const struct config_type CONFIG_TYPE_TEXT;      /* char *; anything */
extern const struct config_type CONFIG_TYPE_PATH;      /* char *; absolute */
extern const struct config_type CONFIG_TYPE_CPUS;      /* char *; a list, see values_cpus() */
extern const struct config_type CONFIG_TYPE_COMMAND;   /* config_strv; replaced as a whole */
extern const struct config_type
    CONFIG_TYPE_ENVIRONMENT; /* struct config_strings of KEY=VALUE; a list */
extern const struct config_type
    CONFIG_TYPE_FILES; /* struct config_strings of paths, "-" in front; a list */
extern const struct config_type
    CONFIG_TYPE_GROUPS; /* struct config_strings of names of groups; a list */

extern const struct config_type
    CONFIG_TYPE_CALENDAR; /* struct config_strings of calendar expressions; a list */
extern const struct config_type CONFIG_TYPE_MOMENT; /* char *; one of a single moment */

extern const struct config_type
    CONFIG_TYPE_PATHS; /* struct config_strings of paths, "-" in front; lists of words */

/* struct config_strings of words with "~" in front, see sandbox-words.h; lists */
extern const struct config_type CONFIG_TYPE_CAPABILITIES;
extern const struct config_type CONFIG_TYPE_FAMILIES;
extern const struct config_type CONFIG_TYPE_NAMESPACES;
extern const struct config_type CONFIG_TYPE_ARCHITECTURES;
extern const struct config_type CONFIG_TYPE_SYSCALLS;

/* 1 … CONFIG_GROUP_NAME_MAX characters of [A-Za-z0-9_.@-], beginning with a letter or a digit. */
bool config_name_valid(const char *name);
