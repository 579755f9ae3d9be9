/* SPDX-License-Identifier: MIT */
/*
 * Tries what a confined process may not be able to do.
 *
 * probe NAME...    prints "NAME: " and what came of it: ok, the name of an error, or of the signal
 *                  that ended the process that tried
 * probe            tries everything, but nothing that needs a path
 *
 * NAME:PATH does something with a file: create (a file in a directory, and removes it), list, read,
 * write (opens it). abstract-socket:NAME connects to that one.
 * signal:PID, limits:PID, trace:PID, memory:PID and descriptor:PID do something to another process
 * that changes nothing; segment:KEY and queue:/NAME open shared memory and a message queue that
 * others have made. make-segment:KEY, make-queue:/NAME and make:PATH leave something behind.
 * socket:PATH and tcp:PORT connect; mount:PATH mounts, and unmounts; setuid:PATH executes a copy of
 * this program that belongs to root and has that bit. type:PATH types into a terminal; large:PATH
 * asks whether a directory holds more than a tenth of the memory.
 *
 * It is long because each attempt takes its lines, and has nothing to do with the others.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

static int error_of(long result)
{
    return result < 0 ? errno : 0;
}

static int family(int number)
{
    return error_of(socket(number, number == AF_PACKET ? SOCK_RAW : SOCK_DGRAM, 0));
}

static int unix_socket(void)
{
    return family(AF_UNIX);
}

static int inet_socket(void)
{
    return family(AF_INET);
}

static int netlink_socket(void)
{
    return family(AF_NETLINK);
}

static int packet_socket(void)
{
    return family(AF_PACKET);
}

static int user_namespace(void)
{
    return error_of(unshare(CLONE_NEWUSER));
}

static int mount_namespace(void)
{
    return error_of(unshare(CLONE_NEWNS));
}

static int net_namespace(void)
{
    return error_of(unshare(CLONE_NEWNET));
}

static int enter_namespace(void)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? errno : error_of(setns(fd, 0));
}

static int writable_code(void)
{
    return mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                   MAP_FAILED
               ? errno
               : 0;
}

static int code_after_writing(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return error_of(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

/* A page of a file in memory, as those are that a worker shares with the supervisor. */
static void *map_shared(int *ret_fd)
{
    *ret_fd = memfd_create("probe", MFD_CLOEXEC);
    if (ftruncate(*ret_fd, 4096) < 0)
        return MAP_FAILED;
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
}

static int punch_hole(void)
{
    int fd;

    (void)map_shared(&fd);
    return error_of(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
}

static int allocate_pages(void)
{
    int fd;

    (void)map_shared(&fd);
    return error_of(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 4096));
}

static int remove_pages(void)
{
    int fd;

    return error_of(madvise(map_shared(&fd), 4096, MADV_REMOVE));
}

static int forget_pages(void)
{
    int fd;

    return error_of(madvise(map_shared(&fd), 4096, MADV_DONTNEED));
}

static int mount_nothing(void)
{
    return error_of(syscall(SYS_mount, "none", "/nowhere", "tmpfs", 0, NULL));
}

static int trace_me(void)
{
    return error_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int set_clock(void)
{
    return error_of(syscall(SYS_clock_settime, 1000, NULL));
}

static int reboot_it(void)
{
    return error_of(syscall(SYS_reboot, 0, 0, 0, NULL));
}

static int load_module(void)
{
    return error_of(syscall(SYS_init_module, NULL, 0, NULL));
}

static int swap_off(void)
{
    return error_of(syscall(SYS_swapoff, NULL));
}

static int bpf_program(void)
{
    return error_of(syscall(SYS_bpf, 0, NULL, 0));
}

static int perf_event(void)
{
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(event)};

    return error_of(syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
}

static int add_a_key(void)
{
    return error_of(syscall(SYS_add_key, "user", "probe", "x", 1, -1));
}

static int io_uring(void)
{
    return error_of(syscall(SYS_io_uring_setup, 1, NULL));
}

static int wait_at_several(void)
{
    return error_of(syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0));
}

static int user_faults(void)
{
    return error_of(syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
}

static int personality_of_others(void)
{
    return error_of(syscall(SYS_personality, 8 /* PER_LINUX32 */));
}

static int change_root(void)
{
    return error_of(chroot("/"));
}

static int own_a_file(void)
{
    return error_of(chown("/dev/null", 0, 0));
}

static int become_root(void)
{
    return error_of(setuid(0));
}

static int make_device(void)
{
    return error_of(mknod("/nowhere/device", S_IFCHR, 0));
}

static int shared_memory_name(void)
{
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

    if (id < 0)
        return errno;
    (void)shmctl(id, IPC_RMID, NULL);
    return 0;
}

static int a_child(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return pid < 0 ? errno : error_of(waitpid(pid, NULL, 0));
}

static int gain_privileges(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}

/* That of i386's getpid(). */
static int foreign_call(void)
{
#ifdef __x86_64__
    long result = 20;

    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result < 0 ? ENOSYS : 0;
#else
    return 0;
#endif
}

static int raw_socket(void)
{
    return error_of(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

/* A NUL, which shells ignore. */
static int type_into(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);

    return fd < 0 ? errno : error_of(ioctl(fd, TIOCSTI, ""));
}

static int terminal_input(void)
{
    return type_into("/dev/tty");
}

/* As the leader of a session, a process gets the terminals that it opens, if they are free. */
static int type_as_leader(const char *path)
{
    return setsid() < 0 ? errno : type_into(path);
}

/* Or more files than a private /tmp. */
static int is_large(const char *path)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    struct statvfs status;

    if (statvfs(path, &status) < 0)
        return errno;
    return status.f_blocks * status.f_frsize >
                       (unsigned long)(pages / 10 + 1) * (unsigned long)page ||
                   status.f_files > 400 * 1024
               ? 0
               : ENOSPC;
}

static int join_keyring(void)
{
    return error_of(syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL));
}

static int load_kernel(void)
{
    return error_of(syscall(SYS_kexec_load, 0, 1, NULL, 0));
}

static int swap_on(void)
{
    return error_of(syscall(SYS_swapon, NULL, 0));
}

static int host_name(void)
{
    return error_of(syscall(SYS_sethostname, NULL, 1));
}

static int realtime(void)
{
    const struct sched_param param = {.sched_priority = 1};

    return error_of(sched_setscheduler(0, SCHED_FIFO, &param));
}

static int same_cpus(void)
{
    cpu_set_t cpus;
    int r = sched_getaffinity(0, sizeof(cpus), &cpus);

    return error_of(r < 0 ? r : sched_setaffinity(0, sizeof(cpus), &cpus));
}

/* A program that is in no file system. */
static int program_in_memory(void)
{
    static char *const nothing[] = {NULL};
    char *const arguments[] = {(char *)"true", NULL};
    const int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
    const int fd = memfd_create("probe", MFD_CLOEXEC);

    while (from >= 0 && fd >= 0 && sendfile(fd, from, NULL, 1 << 20) > 0)
        ;
    return fd < 0 ? errno : error_of(fexecve(fd, arguments, nothing));
}

static int create_in(const char *directory)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/probe-%d", directory, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? errno : error_of(unlink(path));
}

/* An empty directory is as good as a missing one. */
static int list(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;

    if (!directory)
        return errno;
    while ((entry = readdir(directory)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return 0;
    return ENOENT;
}

/* Reads an empty file as no data. */
static int read_file(const char *path)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char byte;

    if (fd < 0)
        return errno;
    switch (read(fd, &byte, 1)) {
    case 0:
        return ENODATA;
    case 1:
        return 0;
    default:
        return errno;
    }
}

static int write_file(const char *path)
{
    return error_of(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

/* That of the test, which listens there. */
static int connect_abstract(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || size > sizeof(address))
        return fd < 0 ? errno : ENAMETOOLONG;
    memcpy(address.sun_path + 1, name, strlen(name));
    return error_of(connect(fd, (const struct sockaddr *)&address, (socklen_t)size));
}

static int abstract_socket(void)
{
    return connect_abstract("troupe-probe");
}

/* Connects a socket, which sends nothing. */
static int loopback(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd < 0 ? errno
                  : error_of(connect(fd, (const struct sockaddr *)&address, sizeof(address)));
}

static int other_interface(void)
{
    struct if_nameindex *interfaces = if_nameindex();
    int n = 0;

    while (interfaces && interfaces[n].if_index != 0)
        n++;
    return n > 1 ? 0 : ENODEV;
}

static pid_t process_of(const char *number)
{
    return (pid_t)strtol(number, NULL, 10);
}

static int signal_process(const char *number)
{
    return error_of(kill(process_of(number), 0));
}

static int limit_process(const char *number)
{
    struct rlimit limit;
    int r = prlimit(process_of(number), RLIMIT_CPU, NULL, &limit);

    return error_of(r < 0 ? r : prlimit(process_of(number), RLIMIT_CPU, &limit, NULL));
}

/* Has ended, and thus let go, by the time that anybody looks. */
static int trace_process(const char *number)
{
    return error_of(ptrace(PTRACE_SEIZE, process_of(number), NULL, NULL));
}

/* Nothing is mapped at address 0. */
static int read_memory(const char *number)
{
    char byte;
    const struct iovec to = {&byte, 1}, from = {NULL, 1};
    const ssize_t n = process_vm_readv(process_of(number), &to, 1, &from, 1, 0);

    return n < 0 && errno == EFAULT ? 0 : error_of(n);
}

static int take_descriptor(const char *number)
{
    const int fd = (int)syscall(SYS_pidfd_open, process_of(number), 0);

    return fd < 0 ? errno : error_of(syscall(SYS_pidfd_getfd, fd, 0, 0));
}

static int connect_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
        return fd < 0 ? errno : ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    return error_of(connect(fd, (const struct sockaddr *)&address, sizeof(address)));
}

static int connect_tcp(const char *port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)strtol(port, NULL, 10)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd < 0 ? errno
                  : error_of(connect(fd, (const struct sockaddr *)&address, sizeof(address)));
}

static int mount_at(const char *path)
{
    int r = (int)syscall(SYS_mount, "none", path, "tmpfs", 0, NULL);

    return error_of(r < 0 ? r : syscall(SYS_umount2, path, 0));
}

/* The other one exits with what it is. */
static int execute_as_root(const char *path)
{
    return error_of(execl(path, path, "--is-root", NULL));
}

static int make_segment(const char *key)
{
    return error_of(shmget((key_t)strtol(key, NULL, 10), 4096, IPC_CREAT | IPC_EXCL | 0600));
}

static int make_queue(const char *name)
{
    return error_of(syscall(SYS_mq_open, name + 1, O_RDONLY | O_CREAT | O_EXCL, 0600, NULL));
}

static int make_file(const char *path)
{
    return error_of(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

static int open_segment(const char *key)
{
    return error_of(shmget((key_t)strtol(key, NULL, 10), 0, 0));
}

static int open_queue(const char *name)
{
    return error_of(syscall(SYS_mq_open, name + 1, O_RDONLY, 0, NULL));
}

static const struct {
    const char *name;
    int (*attempt)(const char *path);
} FILE_PROBES[] = {
    {"create:", create_in},
    {"list:", list},
    {"read:", read_file},
    {"write:", write_file},
    {"abstract-socket:", connect_abstract},
    {"signal:", signal_process},
    {"limits:", limit_process},
    {"segment:", open_segment},
    {"queue:", open_queue},
    {"trace:", trace_process},
    {"memory:", read_memory},
    {"descriptor:", take_descriptor},
    {"socket:", connect_socket},
    {"tcp:", connect_tcp},
    {"mount:", mount_at},
    {"setuid:", execute_as_root},
    {"make-segment:", make_segment},
    {"make-queue:", make_queue},
    {"make:", make_file},
    {"type:", type_as_leader},
    {"large:", is_large},
};

static const struct {
    const char *name;
    int (*attempt)(void);
} PROBES[] = {
    {"unix-socket", unix_socket},
    {"inet-socket", inet_socket},
    {"netlink-socket", netlink_socket},
    {"packet-socket", packet_socket},
    {"raw-socket", raw_socket},
    {"abstract-socket", abstract_socket},
    {"loopback", loopback},
    {"other-interface", other_interface},
    {"user-namespace", user_namespace},
    {"mount-namespace", mount_namespace},
    {"net-namespace", net_namespace},
    {"enter-namespace", enter_namespace},
    {"writable-code", writable_code},
    {"code-after-writing", code_after_writing},
    {"punch-hole", punch_hole},
    {"allocate-pages", allocate_pages},
    {"remove-pages", remove_pages},
    {"forget-pages", forget_pages},
    {"mount", mount_nothing},
    {"trace-me", trace_me},
    {"set-clock", set_clock},
    {"reboot", reboot_it},
    {"load-module", load_module},
    {"swap-off", swap_off},
    {"bpf", bpf_program},
    {"perf-event", perf_event},
    {"add-key", add_a_key},
    {"join-keyring", join_keyring},
    {"terminal-input", terminal_input},
    {"load-kernel", load_kernel},
    {"swap-on", swap_on},
    {"host-name", host_name},
    {"realtime", realtime},
    {"same-cpus", same_cpus},
    {"program-in-memory", program_in_memory},
    {"io-uring", io_uring},
    {"wait-at-several", wait_at_several},
    {"userfaultfd", user_faults},
    {"personality", personality_of_others},
    {"chroot", change_root},
    {"chown", own_a_file},
    {"become-root", become_root},
    {"make-device", make_device},
    {"shared-memory-name", shared_memory_name},
    {"child", a_child},
    {"gain-privileges", gain_privileges},
    {"foreign-call", foreign_call},
};

static int attempt_file(const char *name)
{
    for (size_t i = 0; i < ELEMENTS(FILE_PROBES); i++) {
        const size_t n = strlen(FILE_PROBES[i].name);

        if (strncmp(name, FILE_PROBES[i].name, n) == 0)
            return FILE_PROBES[i].attempt(name + n);
    }
    return EINVAL;
}

/* In a process of its own: it may be killed. NULL = something with a file. */
static void try(const char *name, int (*attempt)(void))
{
    int status = 0, error;
    pid_t pid = fork();

    if (pid == 0)
        _exit(attempt ? attempt() : attempt_file(name));
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        printf("%s: no process\n", name);
        return;
    }
    error = WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        printf("%s: SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
    else
        printf("%s: %s\n", name, error == 0 ? "ok" : strerrorname_np(error));
}

static int is_wanted(const char *name, char **names)
{
    if (!*names)
        return 1;
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--is-root") == 0)
        _exit(geteuid() == 0 ? 0 : EPERM);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < ELEMENTS(PROBES); i++)
        if (is_wanted(PROBES[i].name, argv + 1))
            try(PROBES[i].name, PROBES[i].attempt);
    for (char **name = argv + 1; *name; name++)
        if (strchr(*name, ':'))
            try(*name, NULL);
    _exit(0); /* a sanitizer's search for leaks needs what is forbidden */
}
