/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config-problem.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Problems quote values, which may be long. */
#define TEXT_MAX 1024

/* Replaces control characters of quoted text, for terminals and JSON. */
static void make_printable(char *text)
{
    size_t left = strlen(text), size;

    for (; left > 0; text += size, left -= size) {
        size = utf8_printable(text, left);
        if (size == 0) {
            *text = '?';
            size = 1;
        }
    }
}

/* The index behind the file's last problem at or before this line. */
static size_t place_of(const struct config_problems *problems, const char *path, unsigned line)
{
    size_t place = problems->n_problems;

    while (place > 0 && strcmp(problems->problems[place - 1].path, path) != 0)
        place--;
    if (place == 0)
        return problems->n_problems;
    while (place > 0 && strcmp(problems->problems[place - 1].path, path) == 0 &&
           problems->problems[place - 1].line > line)
        place--;
    return place;
}

/* Room for `n` more. 0 or -ENOMEM. */
static int reserve(struct config_problems *problems, size_t n)
{
    struct config_problem *grown =
        reallocarray(problems->problems, problems->n_problems + n, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    problems->problems = grown;
    return 0;
}

static void insert(struct config_problems *problems, struct config_problem problem)
{
    size_t n = problems->n_problems, place = place_of(problems, problem.path, problem.line);
    struct config_problem *all = problems->problems;

    memmove(all + place + 1, all + place, (n - place) * sizeof(*all));
    all[place] = problem;
    problems->n_problems++;
}

int config_problem_add_list(struct config_problems *problems, const char *path, unsigned line,
                            const char *format, va_list arguments)
{
    char buffer[TEXT_MAX];
    _cleanup_free_ char *text = NULL, *path_copy = strdup(path);

    if (vsnprintf(buffer, sizeof(buffer), format, arguments) < 0)
        return -errno;
    make_printable(buffer);
    text = strdup(buffer);
    if (!text || !path_copy || reserve(problems, 1) < 0)
        return -ENOMEM;
    insert(problems, (struct config_problem){
                         .path = TAKE_PTR(path_copy), .line = line, .text = TAKE_PTR(text)});
    return 0;
}

int config_problem_add(struct config_problems *problems, const char *path, unsigned line,
                       const char *format, ...)
{
    va_list arguments;
    int r;

    va_start(arguments, format);
    r = config_problem_add_list(problems, path, line, format, arguments);
    va_end(arguments);
    return r;
}

void config_problem_print(char *buffer, size_t size, const struct config_problem *problem)
{
    if (problem->line > 0)
        (void)snprintf(buffer, size, "%s:%u: %s", problem->path, problem->line, problem->text);
    else
        (void)snprintf(buffer, size, "%s: %s", problem->path, problem->text);
}

int config_problems_move(struct config_problems *to, struct config_problems *from)
{
    if (from->n_problems == 0)
        return 0;
    if (reserve(to, from->n_problems) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < from->n_problems; i++)
        insert(to, from->problems[i]);
    free(from->problems);
    *from = (struct config_problems)CONFIG_PROBLEMS_NULL;
    return 0;
}

void config_problems_deinit(struct config_problems *problems)
{
    for (size_t i = 0; i < problems->n_problems; i++) {
        free(problems->problems[i].path);
        free(problems->problems[i].text);
    }
    free(problems->problems);
    *problems = (struct config_problems)CONFIG_PROBLEMS_NULL;
}
