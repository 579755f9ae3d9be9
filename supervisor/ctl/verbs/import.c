/* SPDX-License-Identifier: MIT */

/* The verb import: writes the groups and schedules that files of other programs describe. */

#include "supervisor/ctl/import/import.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- input ---- */

static bool is_unit(const char *path)
{
    return config_ends_with(path, ".service") || config_ends_with(path, ".timer");
}

static bool is_supervisord(const char *text)
{
    static const char *const SECTIONS[] = {"[supervisord]", "[program:", "[include]",
                                           "[eventlistener:", "[group:"};

    for (size_t i = 0; i < ELEMENTS(SECTIONS); i++) {
        const char *found = strstr(text, SECTIONS[i]);

        if (found && (found == text || found[-1] == '\n'))
            return true;
    }
    return false;
}

static void import_one(struct import *import, const char *path)
{
    const bool is_input = strcmp(path, "-") == 0;
    struct import_file *last = import->last;
    unsigned mistakes = import->n_mistakes;
    const char *text;

    if (config_ends_with(path, ".socket") || config_ends_with(path, ".path")) {
        import_mistake(import, &(struct import_setting){.path = path},
                       "not imported; the program opens its sockets itself, and watches its files");
        return;
    }
    if (!is_input && !strchr(path, '/') && access(path, F_OK) < 0) {
        import_mistake(import, &(struct import_setting){.path = path},
                       "No such file or directory; units are named NAME.service or NAME.timer");
        return;
    }
    text = import_read(import, is_input ? "/dev/stdin" : path);
    if (!text)
        return;
    if (is_supervisord(text))
        import_supervisord(import, path, text);
    else
        import_cron(import, path, text);
    if (import->last == last && import->n_mistakes == mistakes && import->n_left == 0)
        import_mistake(import, &(struct import_setting){.path = path},
                       "no program and no command to import");
}

/* ---- output ---- */

static void print_file(FILE *stream, const struct import_file *file)
{
    size_t n = 0;

    (void)fprintf(stream, "# From %s\n", file->from);
    for (const struct config_key *key = file->schema->keys, *end = key + file->schema->n_keys;
         key < end; key++) {
        if (key > file->schema->keys && strcmp(key->section, key[-1].section) == 0)
            continue;
        if (file->texts[n].size > 0) {
            (void)fprintf(stream, "\n[%s]\n", key->section);
            (void)fwrite(file->texts[n].bytes, 1, file->texts[n].size, stream);
        }
        n++;
    }
}

/* Writes the files into a new directory. */
static int write_files(const struct import *import, const char *directory)
{
    unsigned n = 0;

    if (mkdir(directory, 0755) < 0) {
        complain("cannot make the directory %s: %s", directory, strerror(errno));
        return EXIT_FAILED;
    }
    for (const struct import_file *file = import->files; file; file = file->next, n++) {
        char path[PATH_MAX];
        FILE *stream;

        (void)snprintf(path, sizeof(path), "%s/%s%s", directory, file->name, file->suffix);
        stream = fopen(path, "wxe");
        if (stream)
            print_file(stream, file);
        if (!stream || (ferror(stream) | fclose(stream))) {
            complain("cannot write %s: %s", path, strerror(errno));
            return EXIT_FAILED;
        }
    }
    if (!import->quiet)
        printf("%u file%s in %s. Read %s; then, as root:\n"
               "  troupectl verify %s/*\n"
               "  end and disable what runs these programs so far\n"
               "  cp -n %s/* " CONFIG_DIRECTORY "/\n"
               "  troupectl reload\n",
               n, plural(n), directory, n == 1 ? "it" : "them", directory, directory);
    return EXIT_OK;
}

static void print_files(const struct import *import)
{
    for (const struct import_file *file = import->files; file; file = file->next) {
        printf("%s# ---- %s%s ----\n", file == import->files ? "" : "\n", file->name, file->suffix);
        print_file(stdout, file);
    }
}

int verb_import(struct invocation *invocation)
{
    struct import import = {.user = invocation->options.user, .quiet = invocation->options.quiet};
    _cleanup_free_ const char **units = calloc(invocation->n_operands, sizeof(*units));
    size_t n_units = 0;
    int r = EXIT_OK;

    if (!units)
        return call_no_memory();
    for (size_t i = 0; i < invocation->n_operands; i++)
        if (is_unit(invocation->operands[i]))
            units[n_units++] = invocation->operands[i];
        else
            import_one(&import, invocation->operands[i]);
    import_systemd(&import, units, n_units);
    if (import.failed)
        r = call_no_memory();
    else if (import.n_mistakes > 0)
        r = EXIT_INVALID;
    else if (invocation->options.output)
        r = write_files(&import, invocation->options.output);
    else
        print_files(&import);
    if (r == EXIT_OK && import.n_left > 0) {
        complain("%u setting%s not imported: see the comments in the files", import.n_left,
                 import.n_left == 1 ? " was" : "s were");
        r = EXIT_LEFT_OUT;
    }
    import_deinit(&import);
    return r;
}
