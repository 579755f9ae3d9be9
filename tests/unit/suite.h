/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs the tests of a suite, each between the two fixtures. */

#include "shared/base/cleanup.h"
#include <check.h>
#include <stddef.h>

/* Seconds that a test may take. */
#define SUITE_TIMEOUT 60

/* Returns the exit status of the program. */
int suite_run(const char *name, SFun setup, SFun teardown, const TTest *const *tests, size_t n);
