/* SPDX-License-Identifier: MIT */
#include "tests/unit/fixture.h"

#include "shared/base/log.h"
#include "tests/unit/suite.h"
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

struct loop *new_loop(void)
{
    struct loop *loop;
    const char *reason;

    ck_assert_int_eq(loop_new(&loop, &(struct loop_options){0}, &reason), 0);
    return loop;
}

static void on_give_up(struct timer *timer, usec_t now)
{
    ck_abort_msg("nothing happened any more");
}

void give_up_after(struct loop *loop, usec_t duration)
{
    static struct timer timer = {.node.key = USEC_INFINITY, .fn = on_give_up};

    timer_disarm(loop_timers(loop), &timer);
    if (duration != USEC_INFINITY)
        timer_arm(loop_timers(loop), &timer, clock_now() + duration);
}

static void discard(enum log_level level, struct log_fields fields, const char *message)
{
}

void log_nothing(void)
{
    log_set_sink(discard);
}

unsigned longest(const struct index *index)
{
    unsigned most = 0;

    for (uint32_t i = 0; i <= index->n_more; i++) {
        const struct index_entry *entry = i == 0 ? index->first : index->more[i - 1];
        unsigned n = 0;

        for (; entry; entry = entry->next)
            n++;
        most = n > most ? n : most;
    }
    return most;
}

unsigned open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

void refuse_call(unsigned number, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ELEMENTS(code), .filter = code};

    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}
