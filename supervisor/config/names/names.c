/* SPDX-License-Identifier: MIT */
#include "supervisor/config/names/names.h"

#include "shared/base/cleanup.h"
#include "shared/base/close-from.h"
#include "shared/base/spawn-self.h"
#include "supervisor/config/names/names-private.h"
#include "supervisor/config/syntax/strings.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The largest answer for one name; larger than any file that is read. */
#define ANSWER_MAX ((size_t)2 << 20)

#define ANSWERS_FD (STDERR_FILENO + 1)

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

/* These processes are the only children. */
void names_reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

/* Kills the process, unless it has ended. Does not wait: a file server that hangs may keep it from
 * ending. */
static void end_process(struct names *names)
{
    if (names->pid == 0)
        return;
    if (waitpid(names->pid, NULL, WNOHANG) == 0)
        (void)kill(names->pid, SIGKILL);
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

/* One question: its kind as a letter, and the name, which ends with a NUL. */
static int answer(char *question)
{
    struct name name = {.kind = (enum names_kind)(*question - 'a'), .wanted = question + 1};
    int r;

    if (name.kind >= _NAMES_N_KINDS)
        return -EBADMSG;
    r = names_ask(&name);
    if (r == 0)
        r = write_answer(ANSWERS_FD, &name);
    names_clear(&name);
    return r;
}

int names_serve(void)
{
    char *question = NULL;
    size_t allocated = 0;
    int r = 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "trouped-names");
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* This process may outlive the supervisor, so it must hold none of its descriptors. */
    close_from(ANSWERS_FD + 1);
    /* A program that a name service starts would delay the end of file. */
    (void)fcntl(ANSWERS_FD, F_SETFD, FD_CLOEXEC);
    while (r == 0 && getdelim(&question, &allocated, '\0', stdin) > 1)
        r = answer(question);
    free(question);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Writes the names that are not known yet, for names_serve(). Returns a descriptor or -errno. */
static int write_questions(const struct names *names)
{
    _cleanup_close_ int fd = memfd_create("names", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : 0;

    for (size_t i = names->next; r == 0 && i < names->n_names; i++) {
        const struct name *name = &names->names[i];
        const char kind = (char)('a' + name->kind);

        if (name->known)
            continue;
        r = write_all(fd, &kind, 1);
        if (r == 0)
            r = write_all(fd, name->wanted, strlen(name->wanted) + 1);
    }
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    return r < 0 ? r : TAKE_FD(fd);
}

static int spawn_process(int questions, int answers, pid_t *ret)
{
    char *const argv[] = {(char[]){"trouped-names"}, (char[]){NAMES_ARGUMENT}, NULL};

    return spawn_self(
        argv, (const struct spawn_self_fd[]){{questions, STDIN_FILENO}, {answers, ANSWERS_FD}}, 2,
        ret);
}

int names_start(struct names *names)
{
    _cleanup_close_ int questions = -1;
    int fds[2], r;

    pass_known(names);
    if (names->next == names->n_names)
        return 0;
    if (!names->buffer && !(names->buffer = malloc(ANSWER_MAX)))
        return -ENOMEM;
    questions = write_questions(names);
    if (questions < 0)
        return questions;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    r = spawn_process(questions, fds[1], &names->pid);
    (void)close_fd(fds[1]);
    if (r < 0) {
        (void)close_fd(fds[0]);
        names->pid = 0;
        return r;
    }
    names->fd = fds[0];
    return fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* ---- the other process ---- */

/* Takes the complete answers. Returns 0 or -errno. */
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

    /* To the end of file: the process has ended, or is about to. */
    while (r == 0) {
        n = read(names->fd, names->buffer + names->n_buffered, ANSWER_MAX - names->n_buffered);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n == 0 && names->next < names->n_names) /* the process ended early */
            return names_skip(names, EIO);
        if (n == 0)
            break;
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
