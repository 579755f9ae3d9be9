/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The account as an actor: one cell of the group "account" for each, named by the routing key. Its
 * requests, as words of text, and its replies:
 *
 *   account.deposit ID AMOUNT    account.done BALANCE
 *   account.withdraw ID AMOUNT   account.done BALANCE
 *   account.void ID              account.done BALANCE (it had been done) or account.refused.void
 *   account.balance              account.done BALANCE
 *   account.log                  account.log, one entry a line
 *
 * A refusal is also a reply: account.refused.insufficient-funds BALANCE AMOUNT,
 * account.refused.void, account.refused.too-large, account.refused.amount (not above 0),
 * account.refused.malformed.
 */

/* Runs as a worker until it must stop; the logs are kept in `directory`. Returns an exit status. */
int account_main(const char *directory);
