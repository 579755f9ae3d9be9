/* SPDX-License-Identifier: MIT */
#include "tests/bench/load/samples.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STEPS      8 /* of the histogram, to a doubling */
#define CALIBRATED 1001

uint64_t samples_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static uint64_t clock_overhead(void)
{
    uint64_t ns[CALIBRATED];

    for (size_t i = 0; i < CALIBRATED; i++) {
        uint64_t begin = samples_now();
        ns[i] = samples_now() - begin;
    }
    qsort(ns, CALIBRATED, sizeof(ns[0]), compare);
    return ns[CALIBRATED / 2];
}

int samples_init(struct samples *samples, size_t max)
{
    *samples = (struct samples){.ns = calloc(max + 1, sizeof(uint64_t)), .max = max};
    if (!samples->ns)
        return -ENOMEM;
    /* Otherwise the first use of each page would be measured as well. */
    for (size_t i = 0; i <= max; i += 512)
        ((volatile uint64_t *)samples->ns)[i] = 0;
    samples->overhead_ns = clock_overhead();
    return 0;
}

void samples_deinit(struct samples *samples)
{
    free(samples->ns);
    samples->ns = NULL;
}

void samples_add(struct samples *samples, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t ns = end_ns - begin_ns;

    if (samples->n < samples->max)
        samples->ns[samples->n++] = ns > samples->overhead_ns ? ns - samples->overhead_ns : 0;
}

static double quantile_us(const struct samples *samples, double quantile)
{
    size_t i = (size_t)((double)samples->n * quantile);

    return samples->n == 0 ? 0 : (double)samples->ns[i < samples->n ? i : samples->n - 1] / 1e3;
}

/* The smallest bound of the histogram that is not below `ns`. */
static uint64_t bound_above(uint64_t ns)
{
    uint64_t base = STEPS;

    while (base * 2 <= ns)
        base *= 2;
    uint64_t step = base / STEPS;
    return ns < STEPS ? ns : base + (ns - base + step - 1) / step * step;
}

static void print_histogram(const struct samples *samples, const char *prefix)
{
    const char *separator = "";

    printf(", \"%shistogram\": [", prefix);
    for (size_t i = 0; i < samples->n;) {
        uint64_t bound = bound_above(samples->ns[i]);
        size_t begin = i;

        while (i < samples->n && samples->ns[i] <= bound)
            i++;
        printf("%s[%.3f, %zu]", separator, (double)bound / 1e3, i - begin);
        separator = ", ";
    }
    printf("]");
}

void samples_print(struct samples *samples, const char *prefix)
{
    double sum = 0;

    qsort(samples->ns, samples->n, sizeof(samples->ns[0]), compare);
    for (size_t i = 0; i < samples->n; i++)
        sum += (double)samples->ns[i] / 1e3;
    printf("\"%scount\": %zu, \"%smean_us\": %.3f, \"%sp50_us\": %.3f, \"%sp90_us\": %.3f, "
           "\"%sp99_us\": %.3f, \"%sp999_us\": %.3f, \"%smax_us\": %.3f",
           prefix, samples->n, prefix, samples->n > 0 ? sum / (double)samples->n : 0, prefix,
           quantile_us(samples, 0.5), prefix, quantile_us(samples, 0.9), prefix,
           quantile_us(samples, 0.99), prefix, quantile_us(samples, 0.999), prefix,
           quantile_us(samples, 1));
    print_histogram(samples, prefix);
}
