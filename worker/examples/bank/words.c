/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/words.h"

#include "worker/examples/bank/ledger.h"
#include <errno.h>
#include <string.h>

int words_parse(struct words *ret, struct troupe_message *message)
{
    size_t size;
    const char *payload = troupe_message_payload(message, &size);
    char *rest, *word;

    ret->count = 0;
    if (size >= sizeof(ret->text) || memchr(payload, '\0', size))
        return -EINVAL;
    memcpy(ret->text, payload, size);
    ret->text[size] = '\0';
    for (word = strtok_r(ret->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (ret->count == WORDS_MAX)
            return -EINVAL;
        ret->word[ret->count++] = word;
    }
    return 0;
}

bool words_name_valid(const char *name, size_t size)
{
    return size > 0 && size < WORDS_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") >= size;
}

/* Returns how many bytes at the beginning of `text` are permitted in an id. */
static size_t span(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

bool words_id_valid(const char *id)
{
    size_t size = strlen(id);

    return size > 0 && size < WORDS_ID && span(id) == size;
}

bool words_step_valid(const char *id)
{
    size_t size = span(id);

    return size > 0 && size < WORDS_ID && id[size] == '/' && id[size + 1] != '\0' &&
           id[size + 1 + span(id + size + 1)] == '\0' && strlen(id) < LEDGER_ID;
}
