/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * For the tests: dies at a chosen step. The file named by $BANK_FAULT contains "STEP" or "STEP
 * supervisor"; a process at that step removes the file and kills itself, or the supervisor, with
 * SIGKILL. Without the variable nothing happens.
 */

void fault_point(const char *step);

/* Like fault_point(), but for the step "PREFIX.STEP". */
void fault_point_of(const char *prefix, const char *step);
