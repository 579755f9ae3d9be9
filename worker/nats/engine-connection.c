/* SPDX-License-Identifier: MIT */
#include "worker/nats/engine-connection.h"

#include <stdio.h>
#include <string.h>

natsStatus engine_connect(natsConnection **ret, natsOptions *options)
{
    const natsStatus s = natsConnection_Connect(ret, options);

    return s == NATS_CONNECTION_AUTH_FAILED ? natsConnection_Connect(ret, options) : s;
}

natsStatus engine_connect_early(natsConnection **ret, natsOptions *options,
                                natsConnectionHandler connected, void *userdata)
{
    natsStatus s = engine_connect(ret, options);

    /* Only now: libnats would not say why the first server refuses the connection. */
    if (s != NATS_NO_SERVER)
        return s;
    s = natsOptions_SetRetryOnFailedConnect(options, true, connected, userdata);
    return s == NATS_OK ? natsConnection_Connect(ret, options) : s;
}

const char *engine_error(natsStatus s)
{
    const char *text = nats_GetLastError(NULL);
    const char *end = text && *text == '(' ? strstr(text, "): ") : NULL;

    if (!text || *text == '\0')
        return natsStatus_GetText(s);
    return end ? end + strlen("): ") : text; /* libnats begins with "(FILE:LINE): " */
}

static void explain_user(char *sentence, const struct config *config, const char *text)
{
    const char *user = config->credentials        ? "the user of Credentials= or $NATS_CREDS"
                       : config->nkey             ? "the user of NKey= and NKeyFile="
                       : strchr(config->url, '@') ? "the user or the password in URL= or $NATS_URL"
                                                  : NULL;

    if (user)
        (void)snprintf(sentence, ENGINE_SENTENCE_SIZE, "NATS refuses %s: %s", user, text);
    else
        (void)snprintf(sentence, ENGINE_SENTENCE_SIZE,
                       "NATS wants a user, and none is configured by URL=, Credentials= or NKey=: "
                       "%s",
                       text);
}

/* `text` is "NUMBER:REASON:DETAILS" if the certificate of the server is at fault. */
static void explain_tls(char *sentence, const char *text)
{
    static const char handshake[] = "SSL handshake error: ";
    const char *reason = text;
    size_t digits;

    if (strncmp(reason, handshake, strlen(handshake)) == 0)
        reason += strlen(handshake);
    digits = strspn(reason, "0123456789");
    if (digits == 0 || reason[digits] != ':') {
        (void)snprintf(sentence, ENGINE_SENTENCE_SIZE, "NATS: TLS: %s", text);
        return;
    }
    reason += digits + 1;
    (void)snprintf(sentence, ENGINE_SENTENCE_SIZE,
                   "NATS: the certificate of the server is not accepted: %.*s; see %s",
                   (int)strcspn(reason, ":"), reason,
                   strstr(reason, "mismatch") ? "the host in URL=" : "CAFile=");
}

void engine_explain(char sentence[static ENGINE_SENTENCE_SIZE], const struct config *config,
                    natsStatus s, const char *text)
{
    switch (s) {
    case NATS_NO_SERVER: /* URLs may hold passwords: no server is named */
        (void)snprintf(sentence, ENGINE_SENTENCE_SIZE,
                       "no server of NATS answers at URL= or $NATS_URL");
        return;
    case NATS_CONNECTION_AUTH_FAILED:
        explain_user(sentence, config, text);
        return;
    case NATS_SECURE_CONNECTION_WANTED:
        (void)snprintf(sentence, ENGINE_SENTENCE_SIZE,
                       "NATS: the server has no TLS, which URL=tls://, CAFile= or CertificateFile= "
                       "demands");
        return;
    case NATS_SSL_ERROR:
        explain_tls(sentence, text);
        return;
    default:
        if (strstr(text, "got ''"))
            (void)snprintf(
                sentence, ENGINE_SENTENCE_SIZE,
                "NATS closes the connection, its log says why; if it wants a certificate "
                "of this client, see CertificateFile=");
        else
            (void)snprintf(sentence, ENGINE_SENTENCE_SIZE, "no connection to NATS: %s", text);
    }
}
