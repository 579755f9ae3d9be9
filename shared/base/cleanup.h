/* SPDX-License-Identifier: MIT */
#pragma once

/* Cleanup by attribute: a local variable that owns something is declared with one of these, and
 * releases it on every way out of the function. TAKE_FD() and TAKE_PTR() pass ownership on. */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _cleanup_free_      _cleanup_(cleanup_free)
#define _cleanup_close_     _cleanup_(cleanup_close)

static inline void cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

/* Closes `fd` unless it is negative; keeps errno. Returns -1, for `fd = close_fd(fd)`. */
static inline int close_fd(int fd)
{
    if (fd >= 0) {
        int saved = errno;
        (void)close(fd);
        errno = saved;
    }
    return -1;
}

static inline void cleanup_close(const int *fd)
{
    close_fd(*fd);
}

#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int _taken = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        _taken;                                                                                    \
    })

#define TAKE_PTR(pointer)                                                                          \
    ({                                                                                             \
        __typeof__(pointer) _taken = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        _taken;                                                                                    \
    })

#define SWAP(a, b)                                                                                 \
    do {                                                                                           \
        __typeof__(a) _other = (a);                                                                \
        (a) = (b);                                                                                 \
        (b) = _other;                                                                              \
    } while (0)

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))
