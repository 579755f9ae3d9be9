/* SPDX-License-Identifier: MIT */
#pragma once

/* What requests need: filled in by main(). */

#include "supervisor/web/feed.h"
#include "supervisor/web/guard.h"
#include "supervisor/web/question.h"

struct site {
    struct guard guard;
    struct questions questions;
    struct feed feed;
};
