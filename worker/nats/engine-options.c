/* SPDX-License-Identifier: MIT */
#include "worker/nats/engine-options.h"

#include "shared/base/cleanup.h"
#include "worker/nats/config-values.h"
#include <string.h>
#include <strings.h>

/* What is sent waits for the network so long at most, and with it the main loop. A server that does
 * not answer for so many of these times is given up. */
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

static natsStatus set_patience(natsOptions *options)
{
    natsStatus s = natsOptions_SetWriteDeadline(options, WRITE_MS);

    if (s == NATS_OK)
        s = natsOptions_SetPingInterval(options, PING_INTERVAL_MS);
    return s == NATS_OK ? natsOptions_SetMaxPingsOut(options, PINGS_MAX) : s;
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
    return s == NATS_OK ? set_patience(*ret) : s;
}
