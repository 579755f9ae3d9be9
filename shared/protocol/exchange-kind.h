/* SPDX-License-Identifier: MIT */
#pragma once

/* The kinds of exchanges, as in the configuration, in the records of the rings and in the
 * supervisor; supervisor/message/exchange.h says what each does. */

enum exchange_kind {
    EXCHANGE_SINGLE = 0,
    EXCHANGE_TYPED_SINGLE = 1,
    EXCHANGE_TYPED_MULTI = 2,
    EXCHANGE_ROUTING_KEY = 3,
    EXCHANGE_PATTERN = 4,
    _EXCHANGE_N_KINDS,
};
