/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * For the tests: dying at a chosen step. The file named by $BANK_FAULT holds "STEP" or "STEP
 * supervisor"; who comes to that step removes the file and kills itself, or the supervisor, with
 * SIGKILL. Without the variable nothing happens.
 */

void fault_point(const char *step);

/* Like fault_point(), but for the step "PREFIX.STEP". */
void fault_point_of(const char *prefix, const char *step);
