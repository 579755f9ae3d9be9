/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The counter for customers: a client of the supervisor.
 *
 *   balance ACCOUNT | log ACCOUNT
 *   deposit ACCOUNT AMOUNT [ID] | withdraw ACCOUNT AMOUNT [ID]
 *   transfer FROM TO AMOUNT [ID] | status ID | recover
 *
 * Without an id a random one is made. An amount that is not above 0 is refused here, before a
 * message is sent. Prints the answer. Returns an exit status: 0 done, 1 refused, 2 failed.
 */
int teller_main(int count, char *const words[]);
