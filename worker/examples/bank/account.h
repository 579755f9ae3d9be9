/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The account as an actor: one cell of the group "account" for each, named by the routing key. What
 * it is asked, as words of text, and what it replies:
 *
 *   account.deposit ID AMOUNT    account.done BALANCE
 *   account.withdraw ID AMOUNT   account.done BALANCE
 *   account.void ID              account.done BALANCE (it had been done) or account.refused.void
 *   account.balance              account.done BALANCE
 *   account.log                  account.log, one entry a line
 *
 * A refusal is a reply, too: account.refused.insufficient-funds BALANCE AMOUNT,
 * account.refused.void, account.refused.too-large, account.refused.amount (not above 0),
 * account.refused.malformed.
 */

/* Runs as a worker until it is told to stop; the logs are kept in `directory`. An exit status. */
int account_main(const char *directory);
