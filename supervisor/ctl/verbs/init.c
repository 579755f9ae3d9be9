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
/* %n is the name, %d the directory, %u the line with the user. */
#define PYTHON \
    "#!/usr/bin/python3\n" \
    "\"\"\"Handles the jobs of the group %n. See troupe-python(7).\"\"\"\n" \
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

#define C \
    "/* Handles the jobs of the group %n. See troupe(3).\n" \
    " *\n" \
    " *   cc -o %n %n.c $(pkg-config --cflags --libs troupe)\n" \
    " */\n" \
    "#include <troupe.h>\n" \
    "\n" \
    "static int handle(struct troupe_job *job, void *userdata)\n" \
    "{\n" \
    "    size_t size;\n" \
    "    const char *data = troupe_job_payload(job, &size);\n" \
    "\n" \
    "    (void)userdata;\n" \
    "    if (size == 0)\n" \
    "        return troupe_job_reject(job, 1, \"nothing to do\", 13); /* final */\n" \
    "    return troupe_job_succeed(job, data, size); /* the result */\n" \
    "}\n" \
    "\n" \
    "int main(void)\n" \
    "{\n" \
    "    struct troupe_worker *worker;\n" \
    "    int r = troupe_worker_new(&worker);\n" \
    "\n" \
    "    if (r < 0)\n" \
    "        return troupe_worker_start_error(r);\n" \
    "    troupe_worker_on_job(worker, handle, NULL);\n" \
    "    r = troupe_worker_run(worker);\n" \
    "    troupe_worker_free(worker);\n" \
    "    return r < 0;\n" \
    "}\n"

#define GROUP(command) \
    "# troupectl do %n --data hello\n" \
    "[Group]\n" \
    "Description=Jobs of %n\n" \
    "ExecStart=" command "\n" \
    "# The user that runs the jobs. Without User=, it is the supervisor's, usually root.\n" \
    "%u\n" \
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

#define SERVICE \
    "# troupectl status %n\n" \
    "[Group]\n" \
    "Description=The service %n\n" \
    "Type=service\n" \
    "ExecStart=/bin/sleep infinity\n" \
    "# The user that runs it. Without User=, it is the supervisor's, usually root.\n" \
    "%u\n" \
    "\n" \
    "[Restart]\n" \
    "MinSec=100ms\n" \
    "MaxSec=30s\n"

#define SCHEDULE \
    "# troupectl schedule show %n\n" \
    "[Schedule]\n" \
    "Description=A job for the group %n every night\n" \
    "OnCalendar=*-*-* 02:00\n" \
    "\n" \
    "[Job]\n" \
    "Group=%n\n" \
    "Data=hello\n"

static const struct kind {
    const char *name;
    struct kind_file {
        const char *ending, *text;
        mode_t mode;
    } files[2];
    const char *next; /* what to do with the files */
} KINDS[] = {
    {"command", {{".group", GROUP(TROUPE_LIBEXECDIR "/troupe-exec -- tr a-z A-Z"), 0644}},
     "  cp %n.group /etc/troupe/ && troupectl reload\n  troupectl do %n --data hello\n"},
    {"python", {{".py", PYTHON, 0755}, {".group", GROUP("/usr/bin/python3 %d/%n.py"), 0644}},
     "  cp %n.group /etc/troupe/ && troupectl reload\n  troupectl do %n --data hello\n"},
    {"c", {{".c", C, 0644}, {".group", GROUP("%d/%n"), 0644}},
     "  cc -o %n %n.c $(pkg-config --cflags --libs troupe)\n"
     "  cp %n.group /etc/troupe/ && troupectl reload\n  troupectl do %n --data hello\n"},
    {"service", {{".group", SERVICE, 0644}},
     "  cp %n.group /etc/troupe/ && troupectl reload\n  troupectl status %n\n"},
    {"schedule", {{".schedule", SCHEDULE, 0644}},
     "  cp %n.schedule /etc/troupe/ && troupectl reload\n  troupectl schedule show %n\n"},
};
/* clang-format on */

/* Returns the line with the packages' user, or nobody if that is missing, so that jobs do not run
 * as root. An ordinary user's supervisor cannot start jobs as another user. */
static const char *user_line(void)
{
    if (getpwnam("troupe"))
        return "User=troupe";
    return geteuid() == 0 ? "User=nobody" : "#User=troupe";
}

/* Returns NULL and complains if there is none. */
static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < ELEMENTS(KINDS); i++)
        if (strcmp(KINDS[i].name, name) == 0)
            return &KINDS[i];
    complain("unknown kind '%s'; allowed: command, python, c, service, schedule", name);
    return NULL;
}

/* Cuts `directory` to the topmost part that the user of the workers may not enter. Returns false if
 * there is none. */
static bool cut_closed_part(char *directory)
{
    struct stat status;

    if (strncmp(user_line(), "User=", 5) != 0)
        return false;
    for (char *end = directory; end; *end = '/') {
        end = strchr(end + 1, '/');
        if (end)
            *end = '\0';
        if (stat(directory, &status) == 0 && !(status.st_mode & S_IXOTH))
            return true;
        if (!end)
            break;
    }
    return false;
}

static bool needs_directory(const struct kind *kind)
{
    for (size_t i = 0; i < ELEMENTS(kind->files); i++)
        if (kind->files[i].text && strstr(kind->files[i].text, "%d"))
            return true;
    return false;
}

static void put(FILE *stream, const char *text, const char *name, const char *directory)
{
    for (const char *mark; (mark = strchr(text, '%')); text = mark + 2) {
        (void)fwrite(text, 1, (size_t)(mark - text), stream);
        (void)fputs(mark[1] == 'n' ? name : mark[1] == 'd' ? directory : user_line(), stream);
    }
    (void)fputs(text, stream);
}

/* Writes a new file. Returns an exit status, and has complained unless it is EXIT_OK. */
static int write_file(const char *name, const struct kind_file *file, const char *directory)
{
    char path[NAME_MAX + 1];
    bool written = false;
    FILE *stream;
    int fd;

    (void)snprintf(path, sizeof(path), "%s%s", name, file->ending);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file->mode);
    if (fd >= 0)
        (void)fchmod(fd, file->mode); /* the workers' user reads it, whatever the umask is */
    stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (stream) {
        put(stream, file->text, name, directory);
        written = !ferror(stream);
        written = fclose(stream) == 0 && written;
    }
    if (!written)
        complain("cannot write %s: %s", path, strerror(errno));
    return written ? EXIT_OK : EXIT_FAILED;
}

/* Becomes the demonstration. */
static int demonstrate(void)
{
    execl(TROUPE_LIBEXECDIR "/demo", "demo", NULL);
    complain("cannot run %s: %s", TROUPE_LIBEXECDIR "/demo", strerror(errno));
    return EXIT_FAILED;
}

static int write_files(struct invocation *invocation)
{
    const struct kind *kind = find_kind(invocation_operand(invocation, 0));
    const char *name = invocation_operand(invocation, 1);
    _cleanup_free_ char *directory = getcwd(NULL, 0);
    int r = EXIT_OK;

    if (!kind)
        return EXIT_USAGE;
    if (!config_name_valid(name)) {
        complain("'%s' is not a possible name of a group", name);
        return EXIT_USAGE;
    }
    if (!directory || strpbrk(directory, " \t\n\"'\\%$;")) {
        complain(
            "a program here would need quotes in ExecStart=: choose a directory with a plain name");
        return EXIT_FAILED;
    }
    if (needs_directory(kind) && cut_closed_part(directory)) {
        complain("the workers' user may not enter %s: choose another directory, such as /srv, or "
                 "run 'chmod o+x %s'",
                 directory, directory);
        return EXIT_FAILED;
    }
    for (size_t i = 0; r == EXIT_OK && i < ELEMENTS(kind->files) && kind->files[i].text; i++)
        r = write_file(name, &kind->files[i], directory);
    if (r == EXIT_OK && !invocation->options.quiet) {
        put(stdout, "The files of %n are written. Next, as root:\n", name, directory);
        put(stdout, kind->next, name, directory);
    }
    return r;
}

int verb_init(struct invocation *invocation)
{
    const size_t wanted = invocation->options.demo ? 0 : 2;

    if (invocation->n_operands != wanted) {
        complain("usage: troupectl init command|python|c|service|schedule NAME, or troupectl init "
                 "--demo");
        return EXIT_USAGE;
    }
    return invocation->options.demo ? demonstrate() : write_files(invocation);
}
