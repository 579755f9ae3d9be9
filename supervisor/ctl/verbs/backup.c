/* SPDX-License-Identifier: MIT */

/* The verb backup, which copies the databases while the supervisor writes them. */

#include "shared/base/cleanup.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/config.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_TIMEOUT_MS 30000 /* for another program's lock, which ends with a transaction */

static const char *const FILES[] = {"troupe.db", "history.db"};

/* Returns StateDirectory=, which the caller frees, or NULL with a message. */
static char *find_state_directory(const char *directory)
{
    _cleanup_free_ char *path = path_join(directory, CONFIG_DAEMON_FILE, "");
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = calloc(1, sizeof(*config));
    char *found = NULL;
    int r = path && config ? config_read_daemon(path, &problems, config) : -ENOMEM;

    if (r == 0 || r == -ENOENT)
        found = strdup(config->daemon.state_directory ? config->daemon.state_directory
                                                      : CONFIG_STATE_DIRECTORY);
    if (!found)
        complain("cannot read the configuration in %s: %s", SAFE(directory),
                 strerror(r < 0 ? -r : ENOMEM));
    config_free(config);
    config_problems_deinit(&problems);
    return found;
}

/* Makes a file, or the entries of a directory, durable. Returns 0 or -errno. */
static int synchronize(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;

    close_fd(fd);
    return r;
}

static int tell(const char *path, const char *why)
{
    complain("%s: %s", SAFE(path), why);
    return EXIT_FAILED;
}

/* Returns what the database says about the result, or about its own opening. */
static const char *reason(sqlite3 *database, int result)
{
    return database && sqlite3_errcode(database) == result ? sqlite3_errmsg(database)
                                                           : sqlite3_errstr(result);
}

/* Copies all pages in one transaction that reads, so they are those of one moment. */
static int copy_pages(sqlite3 *from, sqlite3 *to)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int r;

    if (!backup)
        return sqlite3_errcode(to);
    r = sqlite3_backup_step(backup, -1);
    (void)sqlite3_backup_finish(backup);
    return r == SQLITE_DONE ? SQLITE_OK : r;
}

/* `new` does not exist. */
static int copy(const char *from, const char *new)
{
    sqlite3 *source = NULL, *target = NULL;
    const char *problem = NULL;
    int r = sqlite3_open_v2(from, &source, SQLITE_OPEN_READONLY, NULL);

    if (r == SQLITE_OK)
        r = sqlite3_busy_timeout(source, LOCK_TIMEOUT_MS);
    if (r != SQLITE_OK)
        problem = reason(source, r);
    if (r == SQLITE_OK)
        r = sqlite3_open_v2(new, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (r == SQLITE_OK)
        r = copy_pages(source, target);
    if (r != SQLITE_OK)
        (void)tell(from, problem ? problem : reason(target, r));
    sqlite3_close(target);
    sqlite3_close(source);
    return r == SQLITE_OK ? EXIT_OK : EXIT_FAILED;
}

/* Replaces the file of the last backup once `new` is complete. */
static int back_up(const char *from, const char *new, const char *to)
{
    int status, r;

    (void)unlink(new);
    status = copy(from, new);
    r = status == EXIT_OK ? synchronize(new) : 0;
    if (status == EXIT_OK && r == 0 && rename(new, to) < 0)
        r = -errno;
    if (r < 0)
        status = tell(to, strerror(-r));
    if (status != EXIT_OK)
        (void)unlink(new);
    return status;
}

int verb_backup(struct invocation *invocation)
{
    const char *config = invocation->options.config, *target = invocation_operand(invocation, 0);
    _cleanup_free_ char *directory = find_state_directory(config ? config : CONFIG_DIRECTORY);
    int status = directory ? EXIT_OK : EXIT_FAILED, r;
    unsigned n = 0;

    (void)umask(0077); /* it has the contents of all jobs */
    for (size_t i = 0; status == EXIT_OK && i < ELEMENTS(FILES); i++) {
        _cleanup_free_ char *from = path_join(directory, FILES[i], "");
        _cleanup_free_ char *new = path_join(target, FILES[i], ".new");
        _cleanup_free_ char *to = path_join(target, FILES[i], "");

        if (!from || !new || !to)
            return call_no_memory();
        if (access(from, F_OK) < 0 && errno == ENOENT)
            continue; /* no group needs it */
        status = back_up(from, new, to);
        n++;
    }
    if (status != EXIT_OK)
        return status;
    if (n == 0)
        return tell(directory, "there is no database; set StateDirectory= in --config DIR");
    r = synchronize(target);
    return r < 0 ? tell(target, strerror(-r)) : EXIT_OK;
}
