/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A copy of a stopped process: registers and the tops of the stacks of its threads, the list of its
 * mappings, the first page of each mapped file, and the frames of Python. Its size is bounded. The
 * process can continue, or end, while unwind.h works on the copy. Everything in the copy but the
 * registers is hostile.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SAMPLE_THREADS_MAX  64
#define SAMPLE_STACK_MAX    ((size_t)128 * 1024) /* of a thread; four times that if it crashed */
#define SAMPLE_STACKS_SIZE  (SAMPLE_THREADS_MAX * SAMPLE_STACK_MAX)
#define SAMPLE_MAPS_MAX     ((size_t)1024 * 1024)
#define SAMPLE_HEADS_MAX    256
#define SAMPLE_HEAD_SIZE    4096
#define SAMPLE_VDSO_MAX     ((size_t)16 * 1024)
#define SAMPLE_FRAMES_MAX   48
#define SAMPLE_FUNCTION_MAX 96
#define SAMPLE_FILE_MAX     160
#define SAMPLE_TARGETS_MAX  4
/* The budget for reads from a stopped process. A read costs its size and SAMPLE_READ_COST. */
#define SAMPLE_BUDGET    ((size_t)16 * 1024 * 1024)
#define SAMPLE_READ_COST 1024

#if defined(__x86_64__)
#define SAMPLE_REGISTERS 16
#elif defined(__aarch64__)
#define SAMPLE_REGISTERS 32
#else
#define SAMPLE_REGISTERS 1
#endif

/* In the numbering of DWARF, without the program counter. */
struct registers {
    uint64_t value[SAMPLE_REGISTERS];
    uint64_t sp, pc;
};

struct python_frame {
    char function[SAMPLE_FUNCTION_MAX];
    char file[SAMPLE_FILE_MAX];
    int line; /* 0 = unknown */
};

struct sample_thread {
    pid_t tid, inner_tid; /* the second one in the PID namespace of the process */
    char name[16];
    bool crashed; /* its registers are those of the fault */
    bool stopped; /* its registers are known */
    bool waits;   /* before it was stopped, it did not run */
    bool by_us;   /* it was stopped for the look only, not by a signal */
    bool blocked; /* it waits uninterruptibly, as after vfork(), and may never stop */
    struct registers registers;
    uint64_t stack_at; /* address of the copied bytes */
    size_t stack_offset, stack_size;
    size_t n_python;
    struct python_frame python[SAMPLE_FRAMES_MAX];
};

/* The first bytes of a mapped file, which identify it. */
struct sample_head {
    uint64_t address;
    uint8_t bytes[SAMPLE_HEAD_SIZE];
};

struct sample {
    bool complete;
    usec_t stopped_at; /* before this time, no thread had stopped */
    usec_t stopped;    /* how long it was stopped; set by sample_let_go() */
    size_t budget;     /* SAMPLE_BUDGET at first */
    size_t n_threads;
    struct sample_thread threads[SAMPLE_THREADS_MAX];
    size_t maps_size;
    char maps[SAMPLE_MAPS_MAX + 1]; /* as in /proc/PID/maps */
    size_t n_heads;
    struct sample_head heads[SAMPLE_HEADS_MAX];
    uint64_t vdso_at;
    size_t vdso_size;
    uint8_t vdso[SAMPLE_VDSO_MAX];
    size_t stacks_size;
    uint8_t stacks[SAMPLE_STACKS_SIZE];
};

/* A process and its files in /proc. */
struct target {
    pid_t pid;
    int mem, maps, task, root; /* `root` is O_PATH */
    struct sample *sample;     /* shared with the process that takes it */
};

/* What a worker says of itself, which may be wrong: the process, its thread that crashed, the
 * ucontext_t of its signal, and the interpreter's _PyRuntime and Py_Version. 0 = none; without a
 * context, the crashed thread is stopped at its signal. */
struct hints {
    pid_t pid;
    pid_t crashed; /* in the PID namespace of the process */
    uint64_t context;
    uint64_t python;
    uint32_t python_version;
};

/* Opens the process's files, and makes room for its sample. Returns 0 or -errno. */
int target_open(struct target *ret, pid_t pid);
void target_close(struct target *target);
/* Opens the process and, with `family`, those that it has started, as far as they permit it, up to
 * SAMPLE_TARGETS_MAX. Processes of troupe-exec come last: what matters is its command. Returns the
 * number, or -errno if none could be opened. */
int targets_open(struct target *targets, pid_t pid, bool family);
/* Lists the children that a thread has started. Returns their number. */
size_t thread_children(pid_t pid, pid_t tid, pid_t *ret, size_t max);

/* What /proc/TID/status says of a thread. */
struct facts {
    char name[16];
    pid_t pid;                  /* of its process */
    pid_t inner_pid, inner_tid; /* in the PID namespace of that */
    uint64_t caught, ignored;   /* signals: bit 0 is signal 1 */
};
/* Returns false if there is no such thread. */
bool facts_read(pid_t tid, struct facts *ret);

/* Stops all threads of the targets that this process does not trace yet, or that run, and reads
 * their registers; one that has not stopped within `limit` counts as running. The stops remain to
 * be waited for. Returns 0, or -errno if none has been stopped. */
int sample_stop(struct target *targets, size_t n, const struct hints *hints, usec_t limit);
/* Copies from the stopped targets, after confine(). */
void sample_copy(struct target *targets, size_t n, const struct hints *hints);
/* Lets threads continue that were stopped only for the sample; others do when this process ends. */
void sample_let_go(struct target *targets, size_t n);
/* Prepares for another sample in the same memory. Without `mappings`, those of the last one are
 * kept, which takes less time. */
void sample_reset(struct sample *sample, bool mappings);
/* Waits for a child of this process, and kills it after `limit`. */
void sample_await(pid_t pid, usec_t limit);

/* Gives up all capabilities, and all system calls but those that read, work on memory, and end the
 * process; opening is possible for reading only, and relative to a directory that is open. Returns
 * 0 or -errno. */
int confine(void);

/* Reads `size` bytes of the process at this address, within its budget. Returns whether all could
 * be read. */
bool target_read(const struct target *target, uint64_t address, void *ret, size_t size);

/* A line of /proc/PID/maps; the path is part of it. */
struct mapping {
    uint64_t begin, end, offset;
    const char *path;
    size_t path_size; /* 0 = none */
};

/* Returns false if the line is invalid, for instance because the text was cut. */
bool mapping_parse(const char *line, struct mapping *ret);

/* Returns the address of a symbol that the file mapped at `begin` exports; 0 = none
 * (sample-symbol.c). */
uint64_t sample_symbol(const struct target *target, uint64_t begin, const char *name);

/* Fills in the frames of Python of the stopped threads, if there is an interpreter
 * (sample-python.c). */
void sample_take_python(const struct target *target, const struct hints *hints);
