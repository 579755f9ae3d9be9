/* SPDX-License-Identifier: MIT */

/*
 * traced FILE FIFO: a service that its own child traces when it exits, at the first byte from FIFO.
 * Nobody can reap it while the child lives. The child has its own session; FILE receives its pid.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <unistd.h>

static void trace(pid_t victim, int told)
{
    (void)setsid();
    if (ptrace(PTRACE_SEIZE, victim, NULL, NULL) < 0)
        _exit(1);
    (void)!write(told, "", 1);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    int told[2];
    char byte;
    pid_t parent = getpid(), tracer;

    if (argc != 3 || pipe(told) < 0)
        return 2;
    tracer = fork();
    if (tracer == 0)
        trace(parent, told[1]);
    close(told[1]);
    if (tracer < 0 || read(told[0], &byte, 1) != 1)
        return 3;
    FILE *file = fopen(argv[1], "w");
    if (!file || fprintf(file, "%d\n", (int)tracer) < 0 || fclose(file) != 0)
        return 4;
    return read(open(argv[2], O_RDONLY), &byte, 1) == 1 ? 1 : 5;
}
