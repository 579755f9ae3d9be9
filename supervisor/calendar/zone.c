/* SPDX-License-Identifier: MIT */
#include "supervisor/calendar/zone.h"

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "supervisor/calendar/zone-private.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ZONE_FILE_MAX 65536 /* bytes; the largest file of tzdata has 4 kB */
#define ZONE_NAME_MAX 64    /* bytes; the longest name of tzdata has 32 */
#define ZONE_LOCAL    "/etc/localtime"

/* ---- look-up ---- */

/* The last period whose `key` is at most `value`, or the first period. */
#define LAST_PERIOD(zone, key, value)                                                              \
    ({                                                                                             \
        size_t _low = 0, _high = (zone)->n_periods;                                                \
        while (_high - _low > 1) {                                                                 \
            size_t _middle = _low + (_high - _low) / 2;                                            \
            if ((zone)->periods[_middle].key <= (value))                                           \
                _low = _middle;                                                                    \
            else                                                                                   \
                _high = _middle;                                                                   \
        }                                                                                          \
        &(zone)->periods[_low];                                                                    \
    })

int64_t zone_wall(const struct zone *zone, int64_t instant)
{
    const struct zone_period *period = LAST_PERIOD(zone, start, instant);
    int64_t wall = instant + period->offset;

    return wall > period->wall ? wall : period->wall;
}

bool zone_instant(const struct zone *zone, int64_t wall, int64_t *ret)
{
    const struct zone_period *period = LAST_PERIOD(zone, wall, wall), *next = period + 1;

    *ret = wall - period->offset;
    if (next == zone->periods + zone->n_periods || *ret < next->start)
        return true;
    *ret = next->wall;
    return false;
}

/* ---- the zones that have been read ---- */

void zones_deinit(struct zones *zones)
{
    while (zones->first) {
        struct zone *zone = zones->first;

        zones->first = zone->next;
        free(zone->name);
        free(zone->periods);
        free(zone);
    }
}

int zones_add(struct zones *zones, const char *name, const void *data, size_t size,
              const struct zone **ret)
{
    struct zone *zone = calloc(1, sizeof(*zone));
    int r;

    if (!zone)
        return -ENOMEM;
    zone->next = zones->first;
    zones->first = zone;
    zone->name = strdup(name);
    r = zone->name ? zone_fill(zone, data, size) : -ENOMEM;
    if (r == 0) {
        *ret = zone;
        return 0;
    }
    zones->first = zone->next;
    zone->next = NULL;
    zones_deinit(&(struct zones){zone});
    return r;
}

/* ---- files ---- */

static int read_file(const char *path, uint8_t *data, size_t *size)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    ssize_t n;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? ZONE_E_MISSING : -errno;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return ZONE_E_MISSING;
    if (!S_ISREG(status.st_mode) || status.st_size > ZONE_FILE_MAX)
        return ZONE_E_INVALID;
    n = read(fd, data, ZONE_FILE_MAX);
    if (n < 0)
        return -errno;
    *size = (size_t)n;
    return 0;
}

static bool name_is_valid(const char *name)
{
    const char *allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-_/";
    size_t length = strlen(name);

    /* Without a dot, no component is "..". */
    return length > 0 && length <= ZONE_NAME_MAX && strspn(name, allowed) == length &&
           name[0] != '/' && name[length - 1] != '/' && !strstr(name, "//");
}

/* A process with more rights than its caller ignores TZDIR. */
static const char *directory(void)
{
    const char *path = secure_getenv("TZDIR");

    return path && path[0] == '/' && !strstr(path, "..") ? path : "/usr/share/zoneinfo";
}

static int read_zone(struct zones *zones, const char *name, const struct zone **ret)
{
    _cleanup_free_ uint8_t *data = malloc(ZONE_FILE_MAX);
    char path[PATH_MAX];
    size_t size = 0;
    int r;

    if (!data)
        return -ENOMEM;
    if (snprintf(path, sizeof(path), "%s/%s", directory(), name) >= (int)sizeof(path))
        return ZONE_E_NAME;
    r = read_file(name[0] != '\0' ? path : ZONE_LOCAL, data, &size);
    return r != 0 ? r : zones_add(zones, name, data, size, ret);
}

int zones_get(struct zones *zones, const char *name, const struct zone **ret)
{
    int r;

    if (name && !name_is_valid(name))
        return ZONE_E_NAME;
    if (!name)
        name = ""; /* of the local zone */
    for (const struct zone *zone = zones->first; zone; zone = zone->next)
        if (strcmp(zone->name, name) == 0) {
            *ret = zone;
            return 0;
        }
    if (strcmp(name, "UTC") == 0)
        return zones_add(zones, name, NULL, 0, ret);
    r = read_zone(zones, name, ret);
    if (r == ZONE_E_MISSING && name[0] == '\0')
        r = zones_add(zones, name, NULL, 0, ret);
    return r;
}
