/* SPDX-License-Identifier: MIT */
/* Sockets on which browsers connect. */
#include "supervisor/web/options.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#define BACKLOG 128

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

static bool parse_port(const char *text, in_port_t *ret)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long port;

    if (digits == 0 || digits > 5 || text[digits] != '\0')
        return false;
    port = strtoul(text, NULL, 10);
    *ret = htons((in_port_t)port);
    return port <= UINT16_MAX;
}

/* Returns the size of the address, or -EINVAL. */
static int parse(const char *text, union address *ret)
{
    const char *colon = strrchr(text, ':');
    const char *port = colon ? colon + 1 : text;
    char host[INET6_ADDRSTRLEN + 2] = "127.0.0.1";
    size_t size;

    *ret = (union address){.any.sa_family = AF_UNSPEC};
    if (colon) {
        size = (size_t)(colon - text);
        if (size >= sizeof(host))
            return -EINVAL;
        memcpy(host, text, size);
        host[size] = '\0';
    }
    size = strlen(host);
    if (host[0] == '[' && host[size - 1] == ']') {
        host[size - 1] = '\0';
        ret->v6.sin6_family = AF_INET6;
        return inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) == 1 &&
                       parse_port(port, &ret->v6.sin6_port)
                   ? (int)sizeof(ret->v6)
                   : -EINVAL;
    }
    ret->v4.sin_family = AF_INET;
    return inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1 && parse_port(port, &ret->v4.sin_port)
               ? (int)sizeof(ret->v4)
               : -EINVAL;
}

/* Whether only this machine can reach it. */
static bool is_local(const union address *address)
{
    switch (address->any.sa_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    default:
        return false;
    }
}

static int refuse_remote(const char *name)
{
    log_error("%s: other machines can reach this address, and the traffic is not encrypted; "
              "--allow-remote permits it, a reverse proxy with TLS or `ssh -L` is better",
              name);
    return -EPERM;
}

static void log_address(int fd)
{
    union address address;
    socklen_t size = sizeof(address);
    char text[INET6_ADDRSTRLEN];

    if (getsockname(fd, &address.any, &size) < 0)
        return;
    if (address.any.sa_family == AF_INET6)
        log_notice("listening on http://[%s]:%d/",
                   inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof(text)),
                   ntohs(address.v6.sin6_port));
    if (address.any.sa_family == AF_INET)
        log_notice("listening on http://%s:%d/",
                   inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof(text)),
                   ntohs(address.v4.sin_port));
}

static int make_socket(const union address *address, int size)
{
    _cleanup_close_ int fd =
        socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0)
        return -errno;
    /* Otherwise "[::]" also takes the port of "0.0.0.0". */
    if (address->any.sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int)) < 0)
        return -errno;
    if (bind(fd, &address->any, (socklen_t)size) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Returns a socket that listens on "127.0.0.1:80", "[::1]:80" or "80". Prints errors; -errno then.
 */
static int open_address(const char *text, bool allow_remote)
{
    union address address;
    int size = parse(text, &address), fd;

    if (size < 0) {
        log_error("--listen=%s: must be ADDRESS:PORT, such as " OPTIONS_LISTEN " or [::1]:7670",
                  text);
        return size;
    }
    if (!is_local(&address) && !allow_remote)
        return refuse_remote(text);
    fd = make_socket(&address, size);
    if (fd < 0)
        log_error("cannot listen on %s: %s", text, strerror(-fd));
    else
        log_address(fd);
    return fd;
}

static int take_passed(int fd, bool allow_remote)
{
    union address address;
    socklen_t size = sizeof(address);

    if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0 ||
        getsockname(fd, &address.any, &size) < 0) {
        log_error("descriptor %d, which the service manager has passed, is not a listening socket",
                  fd);
        return -EINVAL;
    }
    if (!is_local(&address) && !allow_remote)
        return refuse_remote("a socket of troupe-web.socket");
    log_address(fd);
    return 0;
}

int listen_open(const struct options *options, int fds[OPTIONS_LISTEN_MAX])
{
    int n = sd_listen_fds(1), r = 0;

    if (n > OPTIONS_LISTEN_MAX) {
        log_error("LISTEN_FDS=%d: troupe-web serves at most %d sockets", n, OPTIONS_LISTEN_MAX);
        return -EINVAL;
    }
    for (int i = 0; i < n && r == 0; i++) {
        fds[i] = SD_LISTEN_FDS_START + i;
        r = take_passed(fds[i], options->allow_remote);
    }
    if (n > 0)
        return r < 0 ? r : n;
    for (n = 0; n < (int)options->n_listen; n++) {
        fds[n] = open_address(options->listen[n], options->allow_remote);
        if (fds[n] < 0)
            return fds[n];
    }
    return n;
}
