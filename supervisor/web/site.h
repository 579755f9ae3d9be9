/* SPDX-License-Identifier: MIT */
#pragma once

/* The state that requests share, filled in by main(). */

#include "supervisor/web/feed.h"
#include "supervisor/web/guard.h"
#include "supervisor/web/question.h"

struct site {
    struct guard guard;
    struct questions questions;
    struct feed feed;
};
