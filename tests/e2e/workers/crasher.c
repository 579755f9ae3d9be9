/* SPDX-License-Identifier: MIT */
/*
 * Dies, or hangs, as the payload of its job says; the innermost function of ours is named planted_…
 * `crasher HOW` does it without a supervisor.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLANTED __attribute__((noinline, noclone))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long counter;
static volatile int zero;

PLANTED static void planted_null(void)
{
    *(volatile int *)(uintptr_t)zero = 1;
}

PLANTED static void planted_jump(void)
{
    ((void (*)(void))(uintptr_t)zero)();
    counter++;
}

PLANTED static int planted_overflow(volatile const char *above)
{
    volatile char here[512];

    here[0] = above ? above[0] : 0;
    return zero ? 0 : planted_overflow(here) + here[0];
}

PLANTED static void planted_heap(void)
{
    static char *volatile block;

    block = malloc(32);
    block[-8] = 7; /* the size of the block */
    free(block);
    counter++;
}

PLANTED static void planted_bus(void)
{
    int fd = memfd_create("truncated", 0);
    volatile char *page;

    if (fd < 0 || ftruncate(fd, 4096) < 0)
        _exit(99);
    page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (ftruncate(fd, 0) < 0)
        _exit(99);
    counter = page[0];
}

PLANTED static void planted_handler(int signo)
{
    *(volatile int *)(uintptr_t)zero = signo;
}

PLANTED static void planted_division(void)
{
    counter = 1000 / zero;
}

PLANTED static void planted_abort(void)
{
    abort();
}

PLANTED static void *planted_thread(void *argument)
{
    planted_null();
    return argument;
}

PLANTED static void planted_call(void)
{
    for (;;)
        pause();
}

PLANTED static void planted_lock(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&lock);
    counter++;
}

PLANTED static void planted_loop(void)
{
    while (!zero)
        counter++;
}

static void in_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, planted_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

/* The parent ends by itself. */
static void in_child(void)
{
    const pid_t pid = fork();

    if (pid == 0)
        planted_null();
    (void)waitpid(pid, NULL, 0);
    _exit(3);
}

static void plant(const char *how)
{
    if (strcmp(how, "abort") == 0)
        planted_abort();
    if (strcmp(how, "child") == 0)
        in_child();
    if (strcmp(how, "null") == 0)
        planted_null();
    if (strcmp(how, "jump") == 0)
        planted_jump();
    if (strcmp(how, "overflow") == 0)
        planted_overflow(NULL);
    if (strcmp(how, "heap") == 0)
        planted_heap();
    if (strcmp(how, "bus") == 0)
        planted_bus();
    if (strcmp(how, "division") == 0)
        planted_division();
    if (strcmp(how, "thread") == 0)
        in_thread();
    if (strcmp(how, "handler") == 0) {
        signal(SIGUSR1, planted_handler);
        raise(SIGUSR1);
    }
    if (strcmp(how, "call") == 0)
        planted_call();
    if (strcmp(how, "lock") == 0)
        planted_lock();
    if (strcmp(how, "loop") == 0)
        planted_loop();
}

static int on_job(struct troupe_job *job, void *userdata)
{
    char how[32];
    size_t size;
    const char *payload = troupe_job_payload(job, &size);

    (void)snprintf(how, sizeof(how), "%.*s", (int)size, payload);
    plant(how);
    return troupe_job_succeed(job, NULL, 0);
}

int main(int argc, char **argv)
{
    struct troupe_worker *worker;
    int r;

    if (argc > 1) {
        (void)puts("begun");
        (void)fflush(stdout);
        plant(argv[1]);
        return 1;
    }
    r = troupe_template_run(NULL);
    if (r < 0)
        return r != -ESHUTDOWN;
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, on_job, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
