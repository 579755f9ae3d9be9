/* SPDX-License-Identifier: MIT */
#include "supervisor/config/names/names.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/names/names-private.h"
#include "supervisor/config/syntax/strv.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a process writes for one name at most: more than a file may contain. */
#define ANSWER_MAX ((size_t)2 << 20)

/* ---- the table ---- */

void names_clear(struct name *name)
{
    free(TAKE_PTR(name->name));
    name->size = 0;
    free(TAKE_PTR(name->groups));
    name->environment = strv_free(name->environment);
    name->n_groups = 0;
}

static void close_process(struct names *names)
{
    names->fd = close_fd(names->fd);
    names->n_buffered = 0;
    names->pid = 0;
}

/* Its end closes the pipe. A process that the kernel cannot end right now is left to end by itself.
 */
static void end_process(struct names *names)
{
    if (names->pid == 0)
        return;
    (void)kill(names->pid, SIGKILL);
    if (poll(&(struct pollfd){.fd = names->fd}, 1, 100) > 0)
        (void)waitpid(names->pid, NULL, 0);
    close_process(names);
}

void names_deinit(struct names *names)
{
    end_process(names);
    for (size_t i = 0; i < names->n_names; i++) {
        names_clear(&names->names[i]);
        free(names->names[i].wanted);
    }
    free(names->names);
    free(names->buffer);
    *names = (struct names)NAMES_NULL;
}

static struct name *find(const struct names *names, enum names_kind kind, const char *wanted)
{
    for (size_t i = 0; i < names->n_names; i++)
        if (names->names[i].kind == kind && strcmp(names->names[i].wanted, wanted) == 0)
            return &names->names[i];
    return NULL;
}

int names_want(struct names *names, enum names_kind kind, const char *wanted)
{
    struct name *grown;
    char *copy;

    if (!wanted || find(names, kind, wanted))
        return 0;
    grown = reallocarray(names->names, names->n_names + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    names->names = grown;
    copy = strdup(wanted);
    if (!copy)
        return -ENOMEM;
    grown[names->n_names++] = (struct name){.kind = kind, .wanted = copy};
    return 0;
}

const struct name *names_find(const struct names *names, enum names_kind kind, const char *wanted)
{
    const struct name *name = wanted ? find(names, kind, wanted) : NULL;

    return name && name->known ? name : NULL;
}

const char *names_fault(const struct name *name)
{
    if (!name || name->error == ETIMEDOUT)
        return "no answer from the file system in time";
    return name->name ? name->name : strerror(name->error);
}

static void pass_known(struct names *names)
{
    while (names->next < names->n_names && names->names[names->next].known)
        names->next++;
}

/* ---- in a process of its own ---- */

static int write_all(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)data + done, size - done);

        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* The size, and as much: names_put(). */
static int write_answer(int fd, const struct name *name)
{
    _cleanup_free_ char *answer = NULL;
    uint32_t size = 0;
    int r = names_put(name, &answer, &size);

    if (r == 0)
        r = write_all(fd, &size, sizeof(size));
    return r < 0 ? r : write_all(fd, answer, size);
}

/* Nothing of the supervisor's may stay open in a process that nobody knows when it ends. */
__attribute__((noreturn)) static void run_process(struct names *names, int fd)
{
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "trouped-names");
    if (dup2(fd, STDERR_FILENO + 1) < 0)
        _exit(EXIT_FAILURE);
    (void)syscall(SYS_close_range, STDERR_FILENO + 2, ~0u, 0);
    for (pass_known(names); names->next < names->n_names; pass_known(names)) {
        struct name *name = &names->names[names->next];

        if (names_ask(name) < 0 || write_answer(STDERR_FILENO + 1, name) < 0)
            _exit(EXIT_FAILURE);
    }
    _exit(EXIT_SUCCESS);
}

int names_start(struct names *names)
{
    int fds[2];
    pid_t pid;

    pass_known(names);
    if (names->next == names->n_names)
        return 0;
    if (!names->buffer && !(names->buffer = malloc(ANSWER_MAX)))
        return -ENOMEM;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        run_process(names, fds[1]);
    (void)close_fd(fds[1]);
    if (pid < 0) {
        (void)close_fd(fds[0]);
        return -errno;
    }
    names->pid = pid;
    names->fd = fds[0];
    return fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* ---- beside it ---- */

/* The answers that have come whole. 0 or -errno. */
static int take_answers(struct names *names)
{
    uint32_t size;
    size_t done = 0;
    int r = 0;

    while (r == 0 && names->n_buffered - done >= sizeof(size)) {
        memcpy(&size, names->buffer + done, sizeof(size));
        if (size > ANSWER_MAX - sizeof(size) || names->next == names->n_names)
            return -EBADMSG;
        if (names->n_buffered - done - sizeof(size) < size)
            break;
        r = names_get(&names->names[names->next], names->buffer + done + sizeof(size), size);
        done += sizeof(size) + size;
        pass_known(names);
    }
    memmove(names->buffer, names->buffer + done, names->n_buffered - done);
    names->n_buffered -= done;
    return r;
}

int names_read(struct names *names)
{
    ssize_t n;
    int r = 0;

    while (r == 0 && names->next < names->n_names) {
        n = read(names->fd, names->buffer + names->n_buffered, ANSWER_MAX - names->n_buffered);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n == 0) /* it ended before it had looked up all of them */
            return names_skip(names, EIO);
        if (n < 0)
            r = -errno;
        else
            names->n_buffered += (size_t)n;
        if (r == 0)
            r = take_answers(names);
    }
    end_process(names);
    return r;
}

int names_skip(struct names *names, int error)
{
    end_process(names);
    if (names->next < names->n_names) {
        names->names[names->next].known = true;
        names->names[names->next].error = error;
    }
    return names_start(names);
}

void names_give_up(struct names *names)
{
    end_process(names);
    for (size_t i = 0; i < names->n_names; i++)
        if (!names->names[i].known) {
            names->names[i].known = true;
            names->names[i].error = ETIMEDOUT;
        }
    names->next = names->n_names;
}

int names_wait(struct names *names)
{
    const usec_t end = usec_add(clock_now(), NAMES_TIMEOUT_ALL);
    int r = names_start(names);

    while (r == 0 && names->pid != 0) {
        struct pollfd fds[] = {{.fd = names->fd, .events = POLLIN}};
        usec_t left = usec_sub(end, clock_now());
        usec_t wait = left < NAMES_TIMEOUT ? left : NAMES_TIMEOUT;
        int n = poll(fds, 1, (int)(wait / USEC_PER_MSEC) + 1);

        if (n < 0 && errno != EINTR)
            r = -errno;
        else if (n > 0)
            r = names_read(names);
        else if (n == 0 && usec_sub(end, clock_now()) == 0)
            names_give_up(names);
        else if (n == 0)
            r = names_skip(names, ETIMEDOUT);
    }
    return r;
}

int names_look_up(struct names *names)
{
    int r = 0;

    for (pass_known(names); r == 0 && names->next < names->n_names; pass_known(names))
        r = names_ask(&names->names[names->next]);
    return r;
}
