/* SPDX-License-Identifier: MIT */
#include "supervisor/trace/sample.h"
#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/ucontext.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long to wait for threads that are in the kernel, uninterruptibly, if no others are left. */
#define BLOCKED_USEC    (10 * USEC_PER_MSEC)
#define STOP_PAUSE_NSEC 50000
/* How many processes are considered: the worker and those that it has started. */
#define FAMILY_MAX 16
/* The bytes below the stack pointer that a function may use. */
#define RED_ZONE 128
#define PAGE     4096u
/* How far above the stack pointer the first mapped page may be after an overflow. */
#define GUARD_PAGES 64

/* ---- opening ---- */

static int open_below(pid_t pid, const char *name, int flags)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return open(path, flags | O_CLOEXEC);
}

int target_open(struct target *ret, pid_t pid)
{
    struct sample *sample = mmap(NULL, sizeof(*sample), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (sample == MAP_FAILED)
        return -errno;
    sample->budget = SAMPLE_BUDGET;
    *ret = (struct target){
        .pid = pid,
        .sample = sample,
        .mem = open_below(pid, "mem", O_RDONLY),
        .maps = open_below(pid, "maps", O_RDONLY),
        .task = open_below(pid, "task", O_RDONLY | O_DIRECTORY),
        .root = open_below(pid, "root", O_PATH),
    };
    if (ret->mem >= 0 && ret->maps >= 0 && ret->task >= 0 && ret->root >= 0)
        return 0;
    target_close(ret);
    return -EACCES;
}

void target_close(struct target *target)
{
    close_fd(target->mem);
    close_fd(target->maps);
    close_fd(target->task);
    close_fd(target->root);
    (void)munmap(target->sample, sizeof(*target->sample));
}

bool target_read(const struct target *target, uint64_t address, void *ret, size_t size)
{
    const size_t cost = size + SAMPLE_READ_COST;

    if (address > INT64_MAX || target->sample->budget < cost)
        return false;
    target->sample->budget -= cost;
    return pread(target->mem, ret, size, (off_t)address) == (ssize_t)size;
}

/* Reads a small file of /proc. Returns its size; the text ends with a NUL. */
static size_t read_text(int directory, const char *path, char *buffer, size_t size)
{
    _cleanup_close_ int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, buffer, size - 1);

    buffer[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* ---- what /proc says ---- */

/* Returns the last number of the line that begins so, or 0. */
static uint64_t last_number(const char *text, const char *begin, int base)
{
    const char *line = strstr(text, begin);
    size_t i;

    if (!line)
        return 0;
    i = strcspn(line + 1, "\n") + 1;
    while (i > 0 && line[i - 1] != ' ' && line[i - 1] != '\t')
        i--;
    return strtoull(line + i, NULL, base);
}

static void take_name(const char *text, char ret[16])
{
    const char *line = strncmp(text, "Name:\t", 6) == 0 ? text + 6 : "";

    (void)snprintf(ret, 16, "%.*s", (int)strcspn(line, "\n"), line);
}

bool facts_read(pid_t tid, struct facts *ret)
{
    char path[64], text[4096];

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    if (read_text(AT_FDCWD, path, text, sizeof(text)) == 0)
        return false;
    take_name(text, ret->name);
    ret->pid = (pid_t)last_number(text, "\nTgid:", 10);
    ret->inner_pid = (pid_t)last_number(text, "\nNStgid:", 10);
    ret->inner_tid = (pid_t)last_number(text, "\nNSpid:", 10);
    ret->caught = last_number(text, "\nSigCgt:", 16);
    ret->ignored = last_number(text, "\nSigIgn:", 16);
    return true;
}

/* ---- processes ---- */

size_t thread_children(pid_t pid, pid_t tid, pid_t *ret, size_t max)
{
    char path[64], text[4096], *next = text;
    size_t n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
    (void)read_text(AT_FDCWD, path, text, sizeof(text));
    while (n < max) {
        char *end;
        const long child = strtol(next, &end, 10);
        if (end == next || *end != ' ')
            break;
        ret[n++] = (pid_t)child;
        next = end;
    }
    return n;
}

/* Lists the process and those that its main threads have started, itself first. */
static size_t list_family(pid_t pid, pid_t *ret, size_t max)
{
    size_t n = 1;

    ret[0] = pid;
    for (size_t i = 0; i < n && n < max; i++)
        n += thread_children(ret[i], ret[i], ret + n, max - n);
    return n;
}

/* Whether the process is troupe-exec, which only waits for a command, or the reader of its output.
 */
static bool is_troupe_exec(pid_t pid)
{
    struct facts facts;

    return facts_read(pid, &facts) &&
           (strcmp(facts.name, "troupe-exec") == 0 || strcmp(facts.name, "exec-reader") == 0);
}

int targets_open(struct target *targets, pid_t pid, bool family)
{
    pid_t pids[FAMILY_MAX];
    const size_t n_pids = list_family(pid, pids, family ? FAMILY_MAX : 1);
    size_t n = 0;
    int r = -ESRCH;

    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n_pids && n < SAMPLE_TARGETS_MAX; i++) {
            if (is_troupe_exec(pids[i]) != (pass == 1))
                continue;
            r = target_open(&targets[n], pids[i]);
            n += r == 0;
        }
    return n > 0 ? (int)n : r;
}

/* ---- stopping ---- */

static void describe_thread(const struct target *target, struct sample_thread *thread)
{
    char path[32], text[2048];

    (void)snprintf(path, sizeof(path), "%d/status", (int)thread->tid);
    (void)read_text(target->task, path, text, sizeof(text));
    take_name(text, thread->name);
    thread->inner_tid = (pid_t)last_number(text, "\nNSpid:", 10);
    if (thread->inner_tid == 0)
        thread->inner_tid = thread->tid;
    thread->blocked = strstr(text, "\nState:\tD");
    thread->waits = !strstr(text, "\nState:\tR");
}

/* The thread that crashed takes the last place if there is no other. */
static void list_threads(const struct target *target, pid_t crashed)
{
    struct sample *sample = target->sample;
    DIR *directory = fdopendir(dup(target->task));
    const struct dirent *entry;

    if (directory)
        rewinddir(directory);
    while (directory && (entry = readdir(directory))) {
        struct sample_thread thread = {.tid = (pid_t)strtol(entry->d_name, NULL, 10)};
        if (thread.tid <= 0)
            continue;
        describe_thread(target, &thread);
        if (sample->n_threads < SAMPLE_THREADS_MAX)
            sample->threads[sample->n_threads++] = thread;
        else if (crashed != 0 && thread.inner_tid == crashed)
            sample->threads[SAMPLE_THREADS_MAX - 1] = thread;
    }
    if (directory)
        (void)closedir(directory);
}

#if defined(__x86_64__)
/* DWARF: rax rdx rcx rbx rsi rdi rbp rsp r8 … r15. */
static void take_registers(const struct user_regs_struct *from, struct registers *ret)
{
    *ret = (struct registers){
        .value = {from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi, from->rbp,
                  from->rsp, from->r8, from->r9, from->r10, from->r11, from->r12, from->r13,
                  from->r14, from->r15},
        .sp = from->rsp,
        .pc = from->rip,
    };
}

static void take_context(const ucontext_t *from, struct registers *ret)
{
    static const int order[SAMPLE_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

    for (size_t i = 0; i < SAMPLE_REGISTERS; i++)
        ret->value[i] = (uint64_t)from->uc_mcontext.gregs[order[i]];
    ret->sp = (uint64_t)from->uc_mcontext.gregs[REG_RSP];
    ret->pc = (uint64_t)from->uc_mcontext.gregs[REG_RIP];
}
#elif defined(__aarch64__)
static void take_registers(const struct user_regs_struct *from, struct registers *ret)
{
    for (size_t i = 0; i < 31; i++)
        ret->value[i] = from->regs[i];
    ret->value[31] = ret->sp = from->sp;
    ret->pc = from->pc;
}

static void take_context(const ucontext_t *from, struct registers *ret)
{
    for (size_t i = 0; i < 31; i++)
        ret->value[i] = from->uc_mcontext.regs[i];
    ret->value[31] = ret->sp = from->uc_mcontext.sp;
    ret->pc = from->uc_mcontext.pc;
}
#else
static void take_registers(const struct user_regs_struct *from, struct registers *ret)
{
}

static void take_context(const ucontext_t *from, struct registers *ret)
{
}
#endif

/* Returns whether the thread has stopped, or ended. The stop remains to be waited for, so a signal
 * that the thread is about to get is not lost. */
static bool has_stopped(struct sample_thread *thread)
{
    struct user_regs_struct registers;
    struct iovec part = {.iov_base = &registers, .iov_len = sizeof(registers)};
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)thread->tid, &info, WSTOPPED | WEXITED | WNOWAIT | WNOHANG | __WALL) <
            0 ||
        info.si_pid != thread->tid)
        return false;
    thread->stopped =
        (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED) &&
        ptrace(PTRACE_GETREGSET, thread->tid, (void *)(uintptr_t)NT_PRSTATUS, &part) == 0 &&
        part.iov_len == sizeof(registers);
    thread->by_us = thread->stopped && info.si_status >> 8 == PTRACE_EVENT_STOP;
    if (thread->stopped)
        take_registers(&registers, &thread->registers);
    return true;
}

static int stop_threads(struct sample *sample, usec_t now, usec_t limit)
{
    const usec_t until = usec_add(now, limit), until_blocked = usec_add(now, BLOCKED_USEC);
    const struct timespec pause = {.tv_nsec = STOP_PAUSE_NSEC};
    usec_t looked_at = now;
    bool seized[SAMPLE_THREADS_MAX];
    size_t n = 0, n_blocked = 0, n_seized;

    for (size_t i = 0; i < sample->n_threads; i++) {
        const pid_t tid = sample->threads[i].tid;
        /* EPERM: it is traced, perhaps by this process. */
        seized[i] = (ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 || errno == EPERM) &&
                    ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0;
        n += seized[i];
        n_blocked += seized[i] && sample->threads[i].blocked;
    }
    if (n == 0)
        return errno == 0 ? -ESRCH : -errno;
    n_seized = n;
    while (n > 0 && clock_now() < (n > n_blocked ? until : until_blocked)) {
        if (n == n_seized)
            sample->stopped_at = looked_at;
        looked_at = clock_now();
        for (size_t i = 0; i < sample->n_threads; i++)
            if (seized[i] && has_stopped(&sample->threads[i])) {
                seized[i] = false;
                n--;
                n_blocked -= sample->threads[i].blocked;
            }
        if (n > 0)
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return 0;
}

/* ---- copying ---- */

static void copy_context(const struct target *target, const struct hints *hints,
                         struct sample_thread *thread)
{
    ucontext_t context;

    if (hints->crashed == 0 || thread->inner_tid != hints->crashed ||
        (hints->context != 0 && !target_read(target, hints->context, &context, sizeof(context))))
        return;
    if (hints->context != 0)
        take_context(&context, &thread->registers);
    thread->crashed = thread->stopped = true;
}

/* Reads from the stack pointer to the end of the mapping. After an overflow, the pointer is below
 * the mapped pages. */
static void copy_stack(const struct target *target, struct sample_thread *thread)
{
    struct sample *sample = target->sample;
    const size_t max = thread->crashed ? 4 * SAMPLE_STACK_MAX : SAMPLE_STACK_MAX;
    const size_t room = SAMPLE_STACKS_SIZE - sample->stacks_size;
    uint64_t at = thread->registers.sp - RED_ZONE;
    ssize_t n = 0;

    for (unsigned i = 0; i < GUARD_PAGES && n <= 0 && at <= INT64_MAX; i++) {
        n = pread(target->mem, sample->stacks + sample->stacks_size, room < max ? room : max,
                  (off_t)at);
        if (n <= 0)
            at = (at | (PAGE - 1)) + 1;
    }
    if (n <= 0)
        return;
    thread->stack_at = at;
    thread->stack_offset = sample->stacks_size;
    thread->stack_size = (size_t)n;
    sample->stacks_size += (size_t)n;
}

static void copy_maps(const struct target *target)
{
    struct sample *sample = target->sample;
    ssize_t n;

    (void)lseek(target->maps, 0, SEEK_SET);
    while (sample->maps_size < SAMPLE_MAPS_MAX &&
           (n = read(target->maps, sample->maps + sample->maps_size,
                     SAMPLE_MAPS_MAX - sample->maps_size)) > 0)
        sample->maps_size += (size_t)n;
    sample->maps[sample->maps_size] = '\0';
}

/* Avoids sscanf(), which would measure all of the text for each line. */
bool mapping_parse(const char *line, struct mapping *ret)
{
    char *at;

    ret->begin = strtoull(line, &at, 16);
    if (*at != '-')
        return false;
    ret->end = strtoull(at + 1, &at, 16);
    at += strspn(at, " ");
    at += strcspn(at, " \n"); /* the permissions */
    ret->offset = strtoull(at, &at, 16);
    for (unsigned i = 0; i < 2; i++) { /* the device and the inode */
        at += strspn(at, " ");
        at += strcspn(at, " \n");
    }
    ret->path = at + strspn(at, " ");
    ret->path_size = strcspn(ret->path, "\n");
    return true;
}

static void copy_vdso(const struct target *target, const struct mapping *mapping)
{
    struct sample *sample = target->sample;
    const size_t size = mapping->end - mapping->begin;

    if (size > SAMPLE_VDSO_MAX || !target_read(target, mapping->begin, sample->vdso, size))
        return;
    sample->vdso_at = mapping->begin;
    sample->vdso_size = size;
}

static void copy_mapping(const struct target *target, const char *line)
{
    struct sample *sample = target->sample;
    struct mapping mapping;
    struct sample_head *head;

    if (!mapping_parse(line, &mapping) || mapping.offset != 0)
        return;
    if (strncmp(mapping.path, "[vdso]", 6) == 0)
        copy_vdso(target, &mapping);
    if (mapping.path[0] != '/' || sample->n_heads == SAMPLE_HEADS_MAX)
        return;
    head = &sample->heads[sample->n_heads];
    head->address = mapping.begin;
    if (target_read(target, mapping.begin, head->bytes, SAMPLE_HEAD_SIZE) &&
        memcmp(head->bytes, ELFMAG, SELFMAG) == 0)
        sample->n_heads++;
}

static void copy_mappings(const struct target *target)
{
    const char *line = target->sample->maps;

    while (*line != '\0') {
        const char *end = strchrnul(line, '\n');
        copy_mapping(target, line);
        line = *end == '\0' ? end : end + 1;
    }
}

static void copy_target(const struct target *target, const struct hints *hints)
{
    struct sample *sample = target->sample;

    for (size_t i = 0; i < sample->n_threads; i++)
        copy_context(target, hints, &sample->threads[i]);
    for (size_t i = 0; i < sample->n_threads; i++)
        if (sample->threads[i].stopped)
            copy_stack(target, &sample->threads[i]);
    if (sample->maps_size == 0) {
        copy_maps(target);
        copy_mappings(target);
    }
    sample_take_python(target, hints);
    sample->complete = true;
}

void sample_let_go(struct target *targets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sample *sample = targets[i].sample;
        for (size_t k = 0; k < sample->n_threads; k++)
            if (sample->threads[k].by_us)
                (void)ptrace(PTRACE_DETACH, sample->threads[k].tid, 0, 0);
        sample->stopped = usec_sub(clock_now(), sample->stopped_at);
    }
}

void sample_reset(struct sample *sample, bool mappings)
{
    sample->complete = false;
    sample->budget = SAMPLE_BUDGET;
    sample->n_threads = 0;
    sample->stacks_size = 0;
    if (mappings)
        sample->maps_size = sample->n_heads = 0;
}

/* The hints are about one process: others have none. */
static const struct hints *hints_for(const struct target *target, const struct hints *hints)
{
    static const struct hints none;

    return target->pid == hints->pid ? hints : &none;
}

int sample_stop(struct target *targets, size_t n, const struct hints *hints, usec_t limit)
{
    const usec_t now = clock_now();
    int r = -ESRCH, error;

    for (size_t i = 0; i < n; i++) {
        const struct hints *own = hints_for(&targets[i], hints);
        list_threads(&targets[i], own->crashed);
        error = stop_threads(targets[i].sample, now, limit);
        /* The registers of a thread that crashes are in its memory. */
        r = error == 0 || own->context != 0 ? 0 : r < 0 ? error : r;
    }
    return r;
}

void sample_copy(struct target *targets, size_t n, const struct hints *hints)
{
    for (size_t i = 0; i < n; i++)
        copy_target(&targets[i], hints_for(&targets[i], hints));
}

void sample_await(pid_t pid, usec_t limit)
{
    const usec_t until = usec_add(clock_now(), limit);
    const struct timespec pause = {.tv_nsec = 100000};

    while (waitpid(pid, NULL, WNOHANG) != pid) {
        if (clock_now() >= until)
            (void)kill(pid, SIGKILL);
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
}
