/* SPDX-License-Identifier: MIT */

/* The smallest program worth keeping alive: tells that it runs, and ends with whoever started it.
 */

#include "tests/bench/load/stamp.h"
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
    stamp_write(STAMP_MAIN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        (void)pause();
}
