/* SPDX-License-Identifier: MIT */
#include "worker/nats/config-files.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void config_warn_if_open(const char *path, const char *what)
{
    struct stat status;

    if (path && stat(path, &status) == 0 && (status.st_mode & S_IROTH) != 0)
        log_warning("%s: everybody can read %s; chmod o= %s", path, what, path);
}

/* libnats would say that there is no server, or that it refuses the connection. */
int config_check_files(const struct config *config)
{
    const char *paths[] = {config->credentials, config->ca_file, config->certificate_file,
                           config->key_file, config->nkey_file};
    int r = 0;

    for (size_t i = 0; i < ELEMENTS(paths); i++) {
        if (!paths[i] || access(paths[i], R_OK) == 0)
            continue;
        r = -errno;
        log_error("%s: %s", paths[i], strerror(errno));
    }
    return r;
}
