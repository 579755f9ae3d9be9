/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/roots.h"
#include "shared/base/cleanup.h"
#include "shared/base/closer.h"
#include "shared/base/hash.h"
#include "shared/base/scm.h"
#include "supervisor/keeper/sandbox.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/socket.h>

void roots_init(struct roots *roots)
{
    roots->offers[0] = roots->offers[1] = roots->mounts = -1;
    roots->due = USEC_INFINITY;
    for (size_t i = 0; i < ROOTS_MAX; i++)
        roots->roots[i].fds[0] = roots->roots[i].fds[1] = -1;
    if (!sandbox_has_capability(CAP_SYS_ADMIN) || !sandbox_has_capability(CAP_SYS_CHROOT))
        return;
    roots->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (roots->mounts >= 0)
        (void)socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, roots->offers);
}

static uint64_t key_of(const struct sandbox_files *files)
{
    uint64_t key = files->n_paths;
    for (size_t i = 0; i < files->n_paths; i++) {
        const struct sandbox_path *path = &files->paths[i];
        key = hash_mix(key ^ hash_bytes(path->path, strlen(path->path)));
        key = hash_mix(key ^ (uint64_t)path->kind);
    }
    return key;
}

static void drop(struct prepared_root *root)
{
    for (size_t i = 0; i < _SANDBOX_ROOT_N_FDS; i++) {
        closer_close(root->fds[i]);
        root->fds[i] = -1;
    }
}

/* A process that has started before makes its root of what was mounted then. */
void roots_drop_all(struct roots *roots)
{
    roots->generation++;
    for (size_t i = 0; i < ROOTS_MAX; i++)
        drop(&roots->roots[i]);
}

void roots_drop_old(struct roots *roots, usec_t now)
{
    roots->due = USEC_INFINITY;
    for (size_t i = 0; i < ROOTS_MAX; i++) {
        struct prepared_root *root = &roots->roots[i];
        if (root->fds[0] < 0)
            continue;
        if (root->until <= now)
            drop(root);
        else if (root->until < roots->due)
            roots->due = root->until;
    }
}

static void drop_if_mounts_have_changed(struct roots *roots)
{
    struct pollfd mounts = {.fd = roots->mounts, .events = POLLPRI};
    if (poll(&mounts, 1, 0) > 0)
        roots_drop_all(roots);
}

static struct prepared_root *find(struct roots *roots, uint64_t key)
{
    for (size_t i = 0; i < ROOTS_MAX; i++)
        if (roots->roots[i].fds[0] >= 0 && roots->roots[i].key == key)
            return &roots->roots[i];
    return NULL;
}

void roots_find(struct roots *roots, const struct sandbox_files *files, struct sandbox_root *ret)
{
    struct prepared_root *root;
    roots_take_offers(roots);
    *ret = (struct sandbox_root)SANDBOX_ROOT_NULL;
    ret->offers = roots->offers[1];
    if (ret->offers < 0)
        return;
    ret->id = (struct sandbox_root_id){key_of(files), roots->generation};
    root = find(roots, ret->id.key);
    if (!root)
        return;
    for (size_t i = 0; i < _SANDBOX_ROOT_N_FDS; i++)
        ret->fds[i] = fcntl(root->fds[i], F_DUPFD_CLOEXEC, 0);
    ret->seen = root->seen;
    ret->size = root->size;
}

static struct prepared_root *unused(struct roots *roots)
{
    for (size_t i = 0; i < ROOTS_MAX; i++)
        if (roots->roots[i].fds[0] < 0)
            return &roots->roots[i];
    return &roots->roots[roots->next++ % ROOTS_MAX];
}

static void put(struct roots *roots, uint64_t key, const int *fds, const void *seen, size_t size)
{
    struct prepared_root *root = find(roots, key);
    if (!root)
        root = unused(roots);
    drop(root);
    root->key = key;
    memcpy(root->fds, fds, sizeof(root->fds));
    root->size = size;
    memcpy(root->seen, seen, size);
    root->until = usec_add(clock_now(), ROOTS_KEPT_USEC);
    if (root->until < roots->due)
        roots->due = root->until;
}

/* Returns false if there is none. */
static bool take_offer(struct roots *roots)
{
    static uint8_t seen[SANDBOX_ROOT_SEEN_MAX];
    union scm_control control;
    struct sandbox_root_id id;
    struct iovec parts[] = {{&id, sizeof(id)}, {seen, sizeof(seen)}};
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = 2,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int fds[_SANDBOX_ROOT_N_FDS] = {-1, -1};
    const ssize_t n = recvmsg(roots->offers[0], &message, MSG_CMSG_CLOEXEC);
    if (n < 0)
        return false;
    if (scm_take(&message, fds, ELEMENTS(fds), closer_close) == ELEMENTS(fds) &&
        id.generation == roots->generation) {
        put(roots, id.key, fds, seen, (size_t)n - sizeof(id));
        return true;
    }
    for (size_t i = 0; i < ELEMENTS(fds); i++)
        closer_close(fds[i]);
    return true;
}

void roots_take_offers(struct roots *roots)
{
    if (roots->offers[0] < 0)
        return;
    drop_if_mounts_have_changed(roots);
    while (take_offer(roots))
        ;
}

struct pollfd roots_wait_offers(const struct roots *roots)
{
    return (struct pollfd){.fd = roots->offers[0], .events = POLLIN};
}

struct pollfd roots_wait_mounts(const struct roots *roots)
{
    const bool any = roots->due != USEC_INFINITY;
    return (struct pollfd){.fd = any ? roots->mounts : -1, .events = POLLPRI};
}
