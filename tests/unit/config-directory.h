/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * For tests of the configuration: a temporary directory that is entered, filled and loaded.
 */

#include "supervisor/config/config.h"

#define PROGRAM "ExecStart=/bin/true\n"

extern char config_test_directory[];        /* absolute */
extern char config_test_source_directory[]; /* where the tests are run from: the top of the tree */

/* Fixtures, before and after each test. */
void config_test_enter(void);
void config_test_leave(void);

void write_file(const char *name, const char *text);

/* The file of a group that starts /bin/true, with more behind. */
void write_group(const char *name, const char *more);

/* "FILE:LINE: text", one per line, relative to the directory. Static. */
const char *describe(const struct config_problems *problems);

/* Loads what is right, until the end of the test. */
struct config *load(void);

/* Loads what is wrong; its problems as describe() has them. Static. */
const char *load_problems(void);

/* Writes and loads one group "a" with this text behind ExecStart= in [Group]. */
struct config_group *load_group(const char *more);
