/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/command/invocation.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/ctl/text/terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/troupe/troupe.sock"

const char *invocation_socket(const struct invocation *invocation)
{
    const char *path = getenv("TROUPE_SOCKET");

    if (invocation->options.socket)
        return invocation->options.socket;
    return path && *path ? path : DEFAULT_SOCKET;
}

const char *invocation_operand(const struct invocation *invocation, size_t i)
{
    return i < invocation->n_operands ? invocation->operands[i] : NULL;
}

int invocation_each(struct invocation *invocation, size_t first,
                    int (*each)(struct invocation *invocation, const char *operand))
{
    int status = EXIT_OK, r = EXIT_OK;

    invocation->lines = true;
    for (size_t i = first; i < invocation->n_operands && r != EXIT_UNREACHABLE; i++) {
        r = each(invocation, invocation->operands[i]);
        if (r != EXIT_OK)
            status = r;
    }
    return status;
}

/* ---- payload ---- */

static int no_memory(void)
{
    complain("out of memory");
    return EXIT_FAILED;
}

/* `path` NULL = standard input. */
static int read_file(const char *path, char **ret, size_t *ret_size)
{
    _cleanup_close_ int opened = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct buffer buffer = BUFFER_NULL;
    int r = path && opened < 0 ? -errno : buffer_read(&buffer, path ? opened : STDIN_FILENO);

    if (r == 0)
        *ret = buffer_take(&buffer, ret_size);
    buffer_deinit(&buffer);
    if (r == 0)
        return *ret ? EXIT_OK : no_memory();
    complain("cannot read %s: %s", path ? path : "standard input", strerror(-r));
    return EXIT_FAILED;
}

int invocation_payload(const struct invocation *invocation, const char *operand, char **ret,
                       size_t *ret_size)
{
    const struct options *options = &invocation->options;

    if (operand && strcmp(operand, "-") != 0) {
        complain("'%s': the payload is given by --data TEXT, --file FILE or - (standard input)",
                 operand);
        return EXIT_USAGE;
    }
    if ((operand != NULL) + (options->data != NULL) + (options->file != NULL) > 1) {
        complain("one payload only: --data, --file or -");
        return EXIT_USAGE;
    }
    if (operand || (options->file && strcmp(options->file, "-") == 0))
        return read_file(NULL, ret, ret_size);
    if (options->file)
        return read_file(options->file, ret, ret_size);
    *ret = strdup(options->data ? options->data : "");
    *ret_size = *ret ? strlen(*ret) : 0;
    return *ret ? EXIT_OK : no_memory();
}

/* ---- signals ---- */

static volatile sig_atomic_t seen;

static void on_signal(int signal)
{
    if (seen)
        _exit(EXIT_INTERRUPTED);
    seen = 1;
}

void interrupt_catch(void)
{
    /* No SA_RESTART: the signal must interrupt waits. */
    const struct sigaction action = {.sa_handler = on_signal};

    seen = 0;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool interrupt_seen(void)
{
    return seen;
}

/* ---- output ---- */

/* Writes a code point as JSON escapes it, above U+FFFF as a surrogate pair. */
static void write_escape(uint32_t code)
{
    if (code < 0x10000)
        printf("\\u%04x", code);
    else
        printf("\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
}

/*
 * Escapes U+007F to U+009F, which JSON allows but some terminals interpret, and invisible
 * characters. Jansson never splits a character between two calls.
 */
static int write_piece(const char *data, size_t size, void *userdata)
{
    const char *plain = data, *end = data + size;

    for (size_t length; data < end; data += length) {
        const size_t left = (size_t)(end - data);

        length = utf8_character(data, left);
        if (length == 0 || *data == '\n' || utf8_printable(data, left) > 0) {
            length = length == 0 ? 1 : length;
            continue;
        }
        fwrite(plain, 1, (size_t)(data - plain), stdout);
        write_escape(utf8_code(data, length));
        plain = data + length;
    }
    fwrite(plain, 1, (size_t)(end - plain), stdout);
    return ferror(stdout) ? -1 : 0;
}

int output_write(const json_t *document, size_t flags)
{
    return json_dump_callback(document, write_piece, NULL, flags);
}

int output_json(const struct invocation *invocation, const json_t *document)
{
    bool indent = invocation->out.is_terminal && !invocation->lines;

    if (output_write(document, indent ? JSON_INDENT(2) : JSON_COMPACT) < 0 && !ferror(stdout))
        return no_memory();
    putchar('\n');
    return invocation->lines && fflush(stdout) != 0 ? EXIT_FAILED : EXIT_OK;
}

int output_reply(const struct invocation *invocation, const json_t *reply, output_fn show)
{
    if (invocation->options.json)
        return output_json(invocation, reply);
    if (show)
        show(invocation, reply);
    return EXIT_OK;
}

/* Everybody may read it, as the umask allows. */
static mode_t file_mode(void)
{
    const mode_t mask = umask(0);

    (void)umask(mask);
    return 0644 & ~mask;
}

int output_file_open(struct output_file *ret, const char *path)
{
    int fd, r;

    *ret = (struct output_file){.path = path};
    if (asprintf(&ret->new, "%s.XXXXXX", path) < 0) {
        ret->new = NULL;
        return -ENOMEM;
    }
    fd = mkostemp(ret->new, O_CLOEXEC);
    ret->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (ret->file)
        return 0;
    r = -errno;
    close_fd(fd);
    free(ret->new);
    return r;
}

int output_file_close(struct output_file *file, int error)
{
    int r = error;

    if (r == 0 && (fflush(file->file) != 0 || fchmod(fileno(file->file), file_mode()) < 0))
        r = -errno;
    if (fclose(file->file) != 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(file->new, file->path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(file->new);
    free(file->new);
    return r;
}

int output_replace_file(const char *path, const char *text, size_t size)
{
    struct output_file file;
    int r = output_file_open(&file, path);

    if (r < 0)
        return r;
    return output_file_close(&file, fwrite(text, 1, size, file.file) == size ? 0 : -errno);
}
