/* SPDX-License-Identifier: MIT */
#include "worker/nats/denial.h"

#include "shared/base/log.h"
#include <stdio.h>
#include <string.h>

void denials_reset(struct denials *denials)
{
    pthread_mutex_lock(&denials->lock);
    denials->n = denials->n_logged = 0;
    pthread_mutex_unlock(&denials->lock);
}

static size_t length_of_kind(const char *text)
{
    const char *dot = text;

    while ((dot = strchr(dot, '.')))
        if (strspn(++dot, "0123456789") > 0)
            return (size_t)(dot - text);
    return strlen(text);
}

bool denials_add(struct denials *denials, const char *text)
{
    const size_t length = length_of_kind(text);
    const char *rest = text[length] == '\0' ? "" : "*\"";
    char kind[sizeof(denials->texts[0])];
    unsigned i = 0;
    bool is_new;

    (void)snprintf(kind, sizeof(kind), "%.*s%s", (int)length, text, rest);
    pthread_mutex_lock(&denials->lock);
    while (i < denials->n && strcmp(denials->texts[i], kind) != 0)
        i++;
    is_new = i == denials->n && i < DENIALS_MAX;
    if (is_new)
        memcpy(denials->texts[denials->n++], kind, sizeof(kind));
    pthread_mutex_unlock(&denials->lock);
    return is_new;
}

void denials_log(struct denials *denials)
{
    pthread_mutex_lock(&denials->lock);
    while (denials->n_logged < denials->n)
        log_warning("NATS refuses something to this user: %s", denials->texts[denials->n_logged++]);
    pthread_mutex_unlock(&denials->lock);
}
