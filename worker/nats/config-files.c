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
        log_warning("%s: everybody can read %s; leave it to the user of serve: "
                    "chown root:troupe-nats %s && chmod 640 %s",
                    path, what, path, path);
}

/* libnats would say that there is no server, or that it refuses the connection. */
int config_check_files(const struct config *config)
{
    const struct {
        const char *key, *path;
    } files[] = {{"Credentials", config->credentials},
                 {"CAFile", config->ca_file},
                 {"CertificateFile", config->certificate_file},
                 {"KeyFile", config->key_file},
                 {"NKeyFile", config->nkey_file}};
    int r = 0;

    for (size_t i = 0; i < ELEMENTS(files); i++) {
        if (!files[i].path || access(files[i].path, R_OK) == 0)
            continue;
        r = -errno;
        log_error("%s=%s: %s", files[i].key, files[i].path, strerror(errno));
    }
    return r;
}
