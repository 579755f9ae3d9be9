/* SPDX-License-Identifier: MIT */
/* An extension that crashes, for the tests of stacks. */

__attribute__((visibility("default"), noinline)) int planted_extension(volatile int *where);

int planted_extension(volatile int *where)
{
    *where = 1;
    return *where;
}
