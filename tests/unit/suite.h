/* SPDX-License-Identifier: MIT */
#pragma once

/* A program of unit tests: TEST() defines and registers a test, and `suite` says what its tests
 * have in common, if anything. main() is in suite.c. Each test runs in a process of its own. The C
 * library for files, processes and text is included here for all of them. */

#include "shared/base/cleanup.h"
#include "shared/ring/wake.h"
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds that a test may take. */
#define SUITE_TIMEOUT 120

/* A program whose tests have something in common defines it. */
extern const struct suite {
    SFun setup, teardown;
    SFun other_setup; /* each test runs a second time, after this instead of setup */
    void (*setup_with)(enum wake_backend backend); /* instead: each test runs with both of these */
    /* Called with this argument, the program does this instead of its tests. */
    const char *argument;
    int (*with_argument)(void);
} suite;

struct suite_test {
    const TTest *check;
    int first, n;           /* runs n times, with _i from first; 0: once */
    SFun setup, teardown;   /* if either is set, these replace the suite's */
    enum wake_backend only; /* with this one of those for setup_with */
    bool unchecked;         /* setup and teardown run in the main process */
    bool bare;              /* runs without the suite's setup and teardown */
    bool native;            /* does not run under Valgrind */
    int signal, status;     /* how it has to end, other than by returning */
    struct suite_test *next;
};

void suite_add(struct suite_test *test);

bool under_valgrind(void);

/* What follows the name sets members of struct suite_test. */
#define TEST(name, ...)                                                                            \
    static void name(int _i);                                                                      \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        static const TTest check = {#name, name, __FILE__, __LINE__};                              \
        static struct suite_test test = {.check = &check, ##__VA_ARGS__};                          \
        suite_add(&test);                                                                          \
    }                                                                                              \
    static void name(int _i CK_ATTRIBUTE_UNUSED)
