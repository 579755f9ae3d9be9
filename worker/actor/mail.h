/* SPDX-License-Identifier: MIT */
#pragma once

/* A received message, copied out of the ring, until it is handled. */

#include "shared/base/list.h"
#include "worker/base/content.h"
#include "worker/troupe.h"

enum mail_stage {
    MAIL_WAITING, /* in the actor's queue */
    MAIL_IN_HAND,
    MAIL_STASHED, /* by the program */
    MAIL_DONE,    /* its end was reported */
};

struct troupe_message {
    struct list link;      /* in the actor's queue or stash */
    struct list held_link; /* in the actor's list of those that hold the inbox */
    struct troupe_actor *actor;
    struct troupe_message *outer; /* its handler waits while this one is handled */
    struct protocol_message wire; /* without its content, which the ring may have lost */
    struct content content;
    uint32_t begin, end; /* cursors around it in the inbox */
    enum mail_stage stage;
    bool shadowed; /* the supervisor keeps a copy */
    bool failed;   /* troupe_message_fail() set code and text */
    int code;
    char *text;
    _Alignas(8) char bytes[];
};

/* Reads the body of a MESSAGE. Returns 0, -EPROTO, -ENOMEM, or the errors of content_place(). */
int mail_new(struct troupe_message **ret, const void *body, uint32_t size, int control);

/* Unlinks and frees a message; NULL allowed. */
void mail_free(struct troupe_message *message);
