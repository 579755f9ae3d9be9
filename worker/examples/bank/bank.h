/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The bank as an actor: moves money from account to account. Its requests and replies:
 *
 *   bank.transfer ID FROM TO AMOUNT   bank.transfer.done
 *                                     bank.transfer.refused REPLY: the source's; nothing was moved
 *                                     bank.transfer.rolled-back REPLY: the target's
 *   bank.status ID                    bank.transfer.STATE, or bank.refused.unknown
 *   bank.recover                      bank.recovered: no transfer is open
 *
 * and bank.refused.malformed, bank.refused.amount (not above 0), bank.refused.id (of another
 * transfer).
 *
 * A transfer is a withdrawal and a deposit, each under an id made from the transfer's, so that a
 * repeated request changes nothing; its progress is on disk before the next step. After a crash,
 * money that was withdrawn is deposited; a withdrawal that was not made is declared void at the
 * source, and the transfer is not started. The id of such a transfer may be used again.
 */

/* Runs as a worker until it must stop; its log is kept in `directory`. Returns an exit status. */
int bank_main(const char *directory);
