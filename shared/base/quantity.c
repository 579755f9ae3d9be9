/* SPDX-License-Identifier: MIT */
#include "shared/base/quantity.h"

#include "shared/base/cleanup.h"
#include <string.h>

int quantity_parse_number(const char *text, uint64_t *ret, const char **ret_end)
{
    char *end;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    *ret_end = end;
    return errno != 0 ? -EINVAL : 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static int parse_with_unit(const char *text, const struct unit *units, size_t n_units,
                           uint64_t *ret)
{
    const char *unit;
    uint64_t number;

    if (quantity_parse_number(text, &number, &unit) < 0)
        return -EINVAL;
    for (size_t i = 0; i < n_units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return __builtin_mul_overflow(number, units[i].factor, ret) ? -EINVAL : 0;
    return -EINVAL;
}

int quantity_parse_size(const char *text, size_t *ret)
{
    static const struct unit units[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}};
    uint64_t size;
    int r = parse_with_unit(text, units, ELEMENTS(units), &size);

    if (r < 0 || size > SIZE_MAX / 4)
        return -EINVAL;
    *ret = (size_t)size;
    return 0;
}

int quantity_parse_time(const char *text, usec_t *ret)
{
    static const struct unit units[] = {
        {"", USEC_PER_SEC}, {"s", USEC_PER_SEC}, {"ms", USEC_PER_MSEC}, {"min", 60 * USEC_PER_SEC}};

    return parse_with_unit(text, units, ELEMENTS(units), ret);
}
