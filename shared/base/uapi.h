/* SPDX-License-Identifier: MIT */
#pragma once

/* Kernel interfaces that are newer than the headers of Debian 12. The names are our own, so that
 * they do not clash with newer headers. The running kernel may lack any of them: callers probe for
 * it, or fall back on EINVAL. */

/* memfd_create(2); Linux 6.3. Never executable, and sealed so. EINVAL on older kernels. */
#define TROUPE_MFD_NOEXEC_SEAL 0x0008u

/* setsockopt(2) and cmsg(3); Linux 6.5. Each datagram comes with a pidfd of its sender. */
#define TROUPE_SO_PASSPIDFD 76
#define TROUPE_SCM_PIDFD    0x04

/* io_uring opcodes; FUTEX_WAIT and FUTEX_WAKE are from Linux 6.7. A futex operation is given as fd
 * = futex2 flags, addr = word, addr2 = expected value (WAKE: number to wake), addr3 = bit mask. */
#define TROUPE_IORING_OP_FUTEX_WAIT 51
#define TROUPE_IORING_OP_FUTEX_WAKE 52

/* futex2 flags. Without FUTEX2_PRIVATE, which is not used here, the futex is shared between
 * processes. */
#define TROUPE_FUTEX2_SIZE_U32 0x02
#define TROUPE_FUTEX_MATCH_ANY 0xffffffffu

/* setsockopt(2), SOL_SOCKET; Linux 6.16. 0: descriptors cannot be sent to this Unix socket, nor to
 * those that are accepted from it. ENOPROTOOPT on older kernels. */
#define TROUPE_SO_PASSRIGHTS 83
