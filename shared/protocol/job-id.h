/* SPDX-License-Identifier: MIT */
#pragma once

/* A job's id. The supervisor makes it (name empty: 128 bits, written as 32 lower-case hexadecimal
 * digits, high first), or the submitter chooses it: 1 … PROTOCOL_NAME_MAX characters of
 * [A-Za-z0-9._:@-], the first one not '-' or '.'. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_NAME_MAX 64
#define PROTOCOL_TAGS     8
#define PROTOCOL_TAGS_MAX 255
#define PROTOCOL_ID_TEXT  (PROTOCOL_NAME_MAX + 1)

struct protocol_id {
    uint64_t high, low;
    char name[PROTOCOL_ID_TEXT]; /* NUL-terminated; empty if made by the supervisor */
};

bool protocol_name_valid(const char *name, size_t size);
#define PROTOCOL_NAME_ALLOWED                                                                      \
    "1 to 64 characters of A-Z a-z 0-9 . _ : @ -, not beginning with . or -"

/* Whether the name is that of a schedule's job, such as "nightly@2026-11-22T02:00:00Z": clients may
 * not choose it. */
bool protocol_name_is_slot(const char *name, size_t size);
#define PROTOCOL_NAME_NO_SLOT "not NAME@YYYY-MM-DDTHH:MM:SSZ, which is for schedules"

/* Whether these are tags: 1 to PROTOCOL_TAGS words as of a name, PROTOCOL_TAGS_MAX bytes at most,
 * with a blank between two of them. */
bool protocol_tags_valid(const char *tags, size_t size);

/* Writes the text form, NUL-terminated, into `text` of PROTOCOL_ID_TEXT bytes. Returns `text`. */
char *protocol_id_format(const struct protocol_id *id, char *text);

/* Reads a text form: 32 lower-case hexadecimal digits give high and low and an empty name, any
 * other valid name is copied. -EINVAL for anything else. */
int protocol_id_parse(struct protocol_id *ret, const char *text);
