/* SPDX-License-Identifier: MIT */

/* The verb init: writes the first files of a group. */

#include "shared/base/cleanup.h"
#include "supervisor/config/keys/types.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
/* Formats: the name, the directory, the line with the user. */
#define PROGRAM \
    "#!/usr/bin/python3\n" \
    "\"\"\"Handles the jobs of the group %1$s. See troupe-python(7).\"\"\"\n" \
    "import troupe\n" \
    "\n" \
    "\n" \
    "@troupe.job\n" \
    "def handle(job: troupe.Job) -> str:\n" \
    "    # What it returns is the result. An exception means another attempt; troupe.Reject is final.\n" \
    "    # In long jobs, call job.check() now and then: it raises when the job is cancelled.\n" \
    "    job.publish(f\"attempt {job.attempt} of {job.max_attempts}\")\n" \
    "    if not job.payload:\n" \
    "        raise troupe.Reject(\"nothing to do\")\n" \
    "    return job.text.upper()\n" \
    "\n" \
    "\n" \
    "troupe.run()\n"

#define GROUP \
    "# troupectl do %1$s --data hello\n" \
    "[Group]\n" \
    "Description=Jobs of %1$s.py\n" \
    "ExecStart=/usr/bin/python3 %2$s/%1$s.py\n" \
    "# The user that runs the jobs and must be able to read %1$s.py. Without User=, it is the supervisor's, usually root.\n" \
    "%3$s\n" \
    "\n" \
    "[Pool]\n" \
    "Size=2\n" \
    "\n" \
    "[Jobs]\n" \
    "# Ends a worker that hangs; its job is retried.\n" \
    "TimeoutSec=1min\n" \
    "MaxRetries=2\n" \
    "\n" \
    "[Sandbox]\n" \
    "# For ordinary programs. strict: for those that read files of strangers.\n" \
    "Profile=basic\n"
/* clang-format on */

/* Returns the line with the packages' user, or nobody if that is missing, so that jobs do not run
 * as root. An ordinary user's supervisor cannot start jobs as another user. */
static const char *user_line(void)
{
    if (getpwnam("troupe"))
        return "User=troupe";
    return geteuid() == 0 ? "User=nobody" : "#User=troupe";
}

/* Writes a new file NAME+`ending`. Returns whether it did; else it has printed why not. */
static bool write_file(const char *name, const char *ending, const char *text, mode_t mode)
{
    char path[NAME_MAX + 1];
    bool written;
    FILE *file;
    int fd;

    (void)snprintf(path, sizeof(path), "%s%s", name, ending);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    file = fd < 0 ? NULL : fdopen(fd, "w");
    written = file && fputs(text, file) >= 0;
    if (file)
        written = fclose(file) == 0 && written;
    if (!written)
        complain("cannot write %s: %s", path, strerror(errno));
    return written;
}

int verb_init(struct invocation *invocation)
{
    const char *language = invocation_operand(invocation, 0);
    const char *name = invocation_operand(invocation, 1);
    _cleanup_free_ char *directory = getcwd(NULL, 0), *program = NULL, *group = NULL;

    if (strcmp(language, "python") != 0) {
        complain("unknown language '%s'; allowed: python", language);
        return EXIT_USAGE;
    }
    if (!config_name_valid(name)) {
        complain("'%s' is not a possible name of a group", name);
        return EXIT_USAGE;
    }
    if (!directory || strpbrk(directory, " \t\n\"'\\%$;")) {
        complain(
            "a program here would need quotes in ExecStart=: choose a directory with a plain name");
        return EXIT_FAILED;
    }
    if (asprintf(&program, PROGRAM, name) < 0)
        program = NULL;
    if (asprintf(&group, GROUP, name, directory, user_line()) < 0)
        group = NULL;
    if (!program || !group)
        return call_no_memory();
    if (!write_file(name, ".py", program, 0755) || !write_file(name, ".group", group, 0644))
        return EXIT_FAILED;
    if (!invocation->options.quiet)
        printf("%1$s.py and %1$s.group are written. Next, as root:\n"
               "  cp %1$s.group /etc/troupe/ && troupectl reload\n"
               "  troupectl do %1$s --data hello\n",
               name);
    return EXIT_OK;
}
