/* SPDX-License-Identifier: MIT */

/*
 * A service that dies, at the first byte from the FIFO given, in the hands of its own child: that
 * has a session of its own and traces it, so that nobody can reap it as long as the child lives.
 * The child's pid goes to the file given.
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
    FILE *file;

    if (argc != 3 || pipe(told) < 0)
        return 2;
    tracer = fork();
    if (tracer == 0)
        trace(parent, told[1]);
    close(told[1]);
    if (tracer < 0 || read(told[0], &byte, 1) != 1)
        return 3;
    file = fopen(argv[1], "w");
    if (!file || fprintf(file, "%d\n", (int)tracer) < 0 || fclose(file) != 0)
        return 4;
    return read(open(argv[2], O_RDONLY), &byte, 1) == 1 ? 1 : 5;
}
