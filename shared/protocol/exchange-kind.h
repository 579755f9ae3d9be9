/* SPDX-License-Identifier: MIT */
#pragma once

/* The kinds of exchanges in the configuration, the records of the rings and the supervisor;
 * supervisor/message/exchange.h explains them. */

enum exchange_kind {
    EXCHANGE_SINGLE = 0,
    EXCHANGE_TYPED_SINGLE = 1,
    EXCHANGE_TYPED_MULTI = 2,
    EXCHANGE_ROUTING_KEY = 3,
    EXCHANGE_PATTERN = 4,
    _EXCHANGE_N_KINDS,
};
