/* SPDX-License-Identifier: MIT */
#pragma once

/* A message an actor has received: copied out of the ring, until its handler is done with it. */

#include "shared/base/list.h"
#include "worker/base/content.h"
#include "worker/troupe.h"

enum mail_stage {
    MAIL_WAITING, /* for its handler; in the actor's queue */
    MAIL_IN_HAND,
    MAIL_STASHED, /* by the program */
    MAIL_DONE,    /* the supervisor has been told what became of it */
};

struct troupe_message {
    struct list link;      /* in the actor's queue or stash */
    struct list held_link; /* among those that hold the ring */
    struct troupe_actor *actor;
    struct troupe_message *outer; /* the one whose handler waits while this one is in hand */
    struct protocol_message wire; /* its content is not to be looked at any more */
    struct content content;
    uint32_t begin, end; /* cursors around it in the inbox */
    enum mail_stage stage;
    bool shadowed; /* the supervisor keeps a copy, and the ring need not */
    int code;
    char *text; /* of troupe_message_fail() */
    _Alignas(8) char bytes[];
};

/* 0, -EPROTO, -ENOMEM, or as content_place(). `body` is a MESSAGE's. */
int mail_new(struct troupe_message **ret, const void *body, uint32_t size, int control);

/* NULL allowed. Leaves the lists. */
void mail_free(struct troupe_message *message);
