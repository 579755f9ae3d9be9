/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/input.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include <fcntl.h>
#include <string.h>

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
        return *ret ? EXIT_OK : call_no_memory();
    complain("cannot read %s: %s", path ? path : "standard input", strerror(-r));
    return EXIT_FAILED;
}

int input_payload(const struct invocation *invocation, const char *operand, char **ret,
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
    return *ret ? EXIT_OK : call_no_memory();
}

int input_check_size(size_t size)
{
    if (size <= VARLINK_CLIENT_PAYLOAD_MAX)
        return EXIT_OK;
    complain("the payload has %s; messages may have %s at most", BYTES(size),
             BYTES(VARLINK_CLIENT_PAYLOAD_MAX));
    return EXIT_USAGE;
}

int input_id(const struct invocation *invocation, const char *operand, json_t **ret)
{
    int64_t id;

    if (value_number(operand, 1, INT64_MAX, &id) < 0) {
        complain("'%s' is not an id, which is a number; 'troupectl help %s' tells more", operand,
                 invocation->verb->name);
        return EXIT_USAGE;
    }
    *ret = json_pack("{s:I}", "id", (json_int_t)id);
    return EXIT_OK;
}
