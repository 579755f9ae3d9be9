/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/explain.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/sentence.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <errno.h>
#include <string.h>

static int status_of(int error)
{
    switch (error) {
    case -ENOENT:
    case -ESRCH:
        return EXIT_NOT_FOUND;
    case -EPERM:
    case -EACCES:
        return EXIT_NOT_PERMITTED;
    case -EINVAL:
        return EXIT_USAGE;
    case -EBADMSG:
        return EXIT_INVALID;
    case -EBUSY:
    case -EALREADY:
    case -EEXIST:
    case -EHOSTDOWN:
    case -ENOSPC:
    case -ERESTART:
    case -ESHUTDOWN:
    case -EUSERS:
        return EXIT_BUSY;
    case -ETIMEDOUT:
        return EXIT_TIMEOUT;
    default:
        return EXIT_FAILED;
    }
}

static bool has(const void *parameters, const char *member)
{
    return field_has(parameters, member);
}

static void write_member(FILE *file, const void *parameters, const char *name, const char *format)
{
    if (strcmp(format, "count") == 0)
        fputs(COUNT(field_count(parameters, name)), file);
    else if (strcmp(format, "bytes") == 0)
        fputs(BYTES(field_count(parameters, name)), file);
    else if (strcmp(format, "length") == 0)
        fprintf(file, "%zu", json_array_size(json_object_get(parameters, name)));
    else if (json_is_integer(json_object_get(parameters, name)))
        fprintf(file, "%lld", (long long)field_int(parameters, name));
    else
        fputs(field_text(parameters, name), file);
}

/* Writes an error of a newer supervisor: "queue too long: group a, maximum 5". */
static void write_unknown(FILE *file, const char *error, const json_t *parameters)
{
    const char *separator = ": ", *key;
    json_t *value;

    fputs("the supervisor refused: ", file);
    sentence_write_name(file, error);
    json_object_foreach((json_t *)(uintptr_t)parameters, key, value)
    {
        if (!json_is_string(value) && !json_is_integer(value))
            continue;
        fprintf(file, "%s%s ", separator, key);
        write_member(file, parameters, key, "");
        separator = ", ";
    }
}

size_t explain_problems(const json_t *problems)
{
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const char *problem = json_string_value(json_array_get(problems, i));

        fprintf(stderr, "%s\n", SAFE_LINE(problem ? problem : ""));
    }
    return json_array_size(problems);
}

int explain_error(const char *error, const json_t *parameters)
{
    const struct sentence *sentence = sentence_find(error, has, parameters);
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *file;

    (void)explain_problems(json_object_get(parameters, "problems"));
    file = open_memstream(&text, &size);
    if (file && sentence)
        sentence_write(file, sentence, write_member, parameters);
    else if (file)
        write_unknown(file, error, parameters);
    if (!file || fclose(file) != 0)
        return EXIT_FAILED;
    complain_unknown(field_text(parameters, "nearest"),
                     sentence && sentence->hint ? sentence->hint : "", "%s", text);
    return sentence ? status_of(sentence->error) : EXIT_FAILED;
}
