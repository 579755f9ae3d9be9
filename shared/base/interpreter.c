/* SPDX-License-Identifier: MIT */
#include "shared/base/interpreter.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The number of bytes that the kernel reads (BINPRM_BUF_SIZE). */
#define FIRST_LINE_MAX 256

/* Reads the first line behind #! into `line`. Returns false if there is none. */
static bool read_first_line(const char *path, char *line)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, line, FIRST_LINE_MAX - 1);

    if (n < 2 || strncmp(line, "#!", 2) != 0)
        return false;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return true;
}

const char *interpreter_fault(const char *path, char *text, size_t size)
{
    char line[FIRST_LINE_MAX], shown[FIRST_LINE_MAX];
    char *name = line + 2;
    const char *dos;
    size_t length;
    int error;

    if (!read_first_line(path, line))
        return NULL;
    name += strspn(name, " \t");
    length = strcspn(name, " \t");
    name[length] = '\0';
    /* A relative name is looked up from a directory that is not known here. */
    if (name[0] != '/' || access(name, X_OK) == 0)
        return NULL;
    error = errno;
    dos = "";
    if (name[length - 1] == '\r') {
        name[--length] = '\0';
        dos = ", followed by a carriage return: the script has DOS line ends (CR LF)";
    }
    (void)utf8_escape(shown, sizeof(shown), name, length);
    (void)snprintf(text, size, "its interpreter %s%s: %s", shown, dos, strerror(error));
    return text;
}
