/* SPDX-License-Identifier: MIT */
#include "worker/nats/engine-connection.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "worker/nats/config.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

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
                       "no NATS server answers at URL= or $NATS_URL");
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
        /* A server that closes the connection during the handshake: libnats 3.3 says that it got
         * nothing, and later versions that the connection is closed. */
        if (s == NATS_CONNECTION_CLOSED || strstr(text, "got ''"))
            (void)snprintf(
                sentence, ENGINE_SENTENCE_SIZE,
                "NATS closes the connection, its log says why; if it wants a certificate "
                "of this client, see CertificateFile=");
        else
            (void)snprintf(sentence, ENGINE_SENTENCE_SIZE, "no connection to NATS: %s", text);
    }
}

/* A URL may contain a password, and one from a server may contain anything. */
void engine_server(natsConnection *connection, char ret[static ENGINE_SERVER_SIZE])
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789.:-_[]";
    char url[512];
    const char *host;

    *ret = '\0';
    if (natsConnection_GetConnectedUrl(connection, url, sizeof(url)) != NATS_OK)
        return;
    host = strrchr(url, '@');
    if (!host)
        host = strrchr(url, '/');
    host = host ? host + 1 : url;
    if (host[strspn(host, allowed)] == '\0' && strlen(host) < ENGINE_SERVER_SIZE)
        strcpy(ret, host);
}

/* ---- options ---- */

/* A write waits at most so long for the network, and the main loop waits with it. A server that
 * does not answer so many pings is given up. */
#define WRITE_MS         2000
#define PING_INTERVAL_MS 10000
#define PINGS_MAX        2

#define TLS_SCHEME "tls://"

static bool is_secure(const struct config *config, const char *const *urls, size_t n)
{
    bool secure = config->ca_file || config->certificate_file;

    for (size_t i = 0; i < n; i++)
        secure = secure || strncasecmp(urls[i], TLS_SCHEME, strlen(TLS_SCHEME)) == 0;
    return secure;
}

static natsStatus set_servers(natsOptions *options, const struct config *config, bool *ret_secure)
{
    _cleanup_free_ char *text = strdup(config->url);
    const char *urls[CONFIG_URLS_MAX];
    natsStatus s;
    size_t n;

    if (!text)
        return NATS_NO_MEMORY;
    n = config_split_urls(text, urls);
    *ret_secure = is_secure(config, urls, n);
    s = natsOptions_SetServers(options, urls, (int)n);
    /* libnats before 3.13 ignores the scheme. */
    return s == NATS_OK && *ret_secure ? natsOptions_SetSecure(options, true) : s;
}

static natsStatus set_identity(natsOptions *options, const struct config *config)
{
    natsStatus s = NATS_OK;

    if (config->credentials)
        s = natsOptions_SetUserCredentialsFromFiles(options, config->credentials, NULL);
    if (s == NATS_OK && config->nkey)
        s = natsOptions_SetNKeyFromSeed(options, config->nkey, config->nkey_file);
    if (s == NATS_OK && config->ca_file)
        s = natsOptions_LoadCATrustedCertificates(options, config->ca_file);
    if (s == NATS_OK && config->certificate_file)
        s = natsOptions_LoadCertificatesChain(options, config->certificate_file, config->key_file);
    return s;
}

natsStatus engine_options(natsOptions **ret, const struct config *config, bool *ret_secure)
{
    natsStatus s = natsOptions_Create(ret);

    if (s == NATS_OK)
        s = natsOptions_SetName(*ret, "troupe-nats");
    if (s == NATS_OK)
        s = set_servers(*ret, config, ret_secure);
    if (s == NATS_OK)
        s = set_identity(*ret, config);
    if (s != NATS_OK)
        return s;
    (void)natsOptions_SetWriteDeadline(*ret, WRITE_MS);
    (void)natsOptions_SetPingInterval(*ret, PING_INTERVAL_MS);
    return natsOptions_SetMaxPingsOut(*ret, PINGS_MAX);
}
