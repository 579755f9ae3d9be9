/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The bank as an actor: moves money from account to account. What it is asked, and what it replies:
 *
 *   bank.transfer ID FROM TO AMOUNT   bank.transfer.done
 *                                     bank.transfer.refused REPLY: the source's; nothing was moved
 *                                     bank.transfer.rolled-back REPLY: the target's
 *   bank.status ID                    bank.transfer.STATE, or bank.refused.unknown
 *   bank.recover                      bank.recovered: no transfer is open any more
 *
 * and bank.refused.malformed, bank.refused.amount (not above 0), bank.refused.id (of another
 * transfer).
 *
 * A transfer is withdrawn, then deposited, each under an id made of its own, so that asking twice
 * changes nothing; how far it has got is on disk before the next step. After a crash: money that
 * was withdrawn is deposited; what was not withdrawn is declared void at the source, and not
 * started. An id that was not started may be asked for again.
 */

/* Runs as a worker until it is told to stop; its log is kept in `directory`. An exit status. */
int bank_main(const char *directory);
