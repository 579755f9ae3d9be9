/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A control socket with a client, both on one real loop in one process: for tests. The core behind
 * it is the real one too, with one group whose workers are never started, so that what happens is
 * what the test does.
 */

#include "supervisor/control/control.h"
#include "supervisor/group/group.h"
#include "supervisor/loop/loop.h"
#include "supervisor/parts.h"
#include <jansson.h>

struct fake_client {
    int fd;
    char *data;
    size_t size;
    bool eof;
    int fds[8];
    unsigned n_fds;
    struct loop_watch watch;
};

extern struct parts fake_parts;
extern struct config_daemon fake_daemon;
extern struct control *fake_control;
extern struct group *fake_group; /* "test": an actor with two slots */
extern char fake_path[];         /* of the socket */

void fake_setup(void);
void fake_teardown(void);

struct fake_client *fake_connect(void);
void fake_disconnect(struct fake_client *client);

/* With its NUL. Sends on the spot. */
void fake_send(struct fake_client *client, const char *text);
/* One answer; runs the loop until it is there. NULL at the end. It lasts as long as the test. */
json_t *fake_receive(struct fake_client *client);
json_t *fake_ask(struct fake_client *client, const char *text);

/* Asks and expects this error (last part of its name); returns its parameters. */
json_t *fake_refused(struct fake_client *client, const char *error, const char *text);

/* Lets the loop run for so many turns. */
void fake_turns(unsigned n);

/* Lets the loop run until nothing is left to do for now. */
void fake_settle(void);
