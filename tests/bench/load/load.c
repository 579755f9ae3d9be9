/* SPDX-License-Identifier: MIT */
#include "tests/bench/load/load.h"
#include "tests/bench/load/samples.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

struct load {
    const struct load_system *system;
    void *self;
    uint64_t count, n_warm, window;
    size_t size, result_size;
    char *data, *result;
    uint64_t n_submitted, n_ended;
    uint64_t sum; /* of the numbers submitted less those that came back: 0 in the end */
};

void load_ready(void)
{
    puts("ready");
    fflush(stdout);
}

static int submit(struct load *load)
{
    uint64_t number = load->n_submitted;

    memcpy(load->data, &number, sizeof(number));
    int r = load->system->submit(load->self, load->data, load->size);
    if (r == 0) {
        load->n_submitted++;
        load->sum += number;
    }
    return r;
}

static int next(struct load *load, int wait)
{
    uint64_t number;
    int r = load->system->next(load->self, wait, load->result, load->result_size);

    if (r < 0)
        return r;
    memcpy(&number, load->result, sizeof(number));
    if (number >= load->n_submitted ||
        memcmp(load->result + sizeof(number), load->data + sizeof(number),
               load->result_size - sizeof(number)) != 0)
        return -EBADMSG;
    load->sum -= number;
    load->n_ended++;
    return 0;
}

static int round_trips(struct load *load, struct samples *samples)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < load->n_warm + load->count; i++) {
        uint64_t begin = samples_now();

        r = submit(load);
        if (r == 0)
            r = load->system->flush(load->self);
        if (r == 0)
            r = next(load, 1);
        if (i >= load->n_warm)
            samples_add(samples, begin, samples_now());
    }
    return r;
}

/* Until `end` jobs have come back. */
static int keep_in_flight(struct load *load, uint64_t end)
{
    int r = 0;

    while (r == 0 && load->n_ended < end) {
        while (r == 0 && load->n_submitted < end &&
               load->n_submitted - load->n_ended < load->window)
            r = submit(load);
        if (r == 0 || r == -EAGAIN)
            r = next(load, 1);
        while (r == 0 && load->n_ended < end)
            r = next(load, 0);
        if (r == -EAGAIN)
            r = 0;
    }
    return r;
}

static double cpu_seconds(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int measure_round_trip(struct load *load)
{
    struct samples samples;
    int r = samples_init(&samples, load->count);

    if (r < 0)
        return r;
    r = round_trips(load, &samples);
    if (r == 0) {
        printf("{\"all_jobs\": %llu, ", (unsigned long long)load->n_ended);
        samples_print(&samples, "");
        printf("}\n");
    }
    samples_deinit(&samples);
    return r;
}

static int measure_window(struct load *load)
{
    int r = keep_in_flight(load, load->n_warm);

    if (r < 0)
        return r;
    double cpu = cpu_seconds();
    uint64_t begin = samples_now();
    r = keep_in_flight(load, load->n_warm + load->count);
    if (r == 0) {
        double seconds = (double)(samples_now() - begin) / 1e9;
        printf("{\"all_jobs\": %llu, \"count\": %llu, \"seconds\": %.6f, \"jobs_per_s\": %.1f, "
               "\"bytes_per_s\": %.1f, "
               "\"submitter_cpu_us_per_job\": %.4f}\n",
               (unsigned long long)load->n_ended, (unsigned long long)load->count, seconds,
               (double)load->count / seconds, (double)load->count * (double)load->size / seconds,
               (cpu_seconds() - cpu) * 1e6 / (double)load->count);
    }
    return r;
}

static int usage(const struct load_system *system)
{
    fprintf(stderr,
            "usage: %s ADDRESS round-trip COUNT BYTES RESULT\n"
            "       %s ADDRESS window COUNT BYTES RESULT WINDOW\n",
            system->name, system->name);
    if (system->work)
        fprintf(stderr, "       %s ADDRESS work DEPTH RESULT\n", system->name);
    return 2;
}

static int run(struct load *load, const char *address, int (*measure)(struct load *))
{
    load->data = malloc(load->size);
    load->result = malloc(load->size);
    if (!load->data || !load->result)
        return -ENOMEM;
    memset(load->data, 'x', load->size);
    int r = load->system->open(address, (unsigned)load->window, &load->self);
    if (r == 0)
        r = measure(load);
    if (r == 0)
        r = load->system->flush(load->self); /* nothing is left over for the next one */
    return r == 0 && load->sum != 0 ? -EBADMSG : r;
}

int load_main(int argc, char **argv, const struct load_system *system)
{
    struct load load = {.system = system, .window = 1};
    uint64_t numbers[4] = {0};
    bool trip, work;
    int r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever happens to the runner, nothing stays */
    (void)signal(SIGPIPE, SIG_IGN);
    for (int i = 3; i < argc && i < 7; i++)
        numbers[i - 3] = strtoull(argv[i], NULL, 10);
    work = argc == 5 && strcmp(argv[2], "work") == 0 && system->work;
    trip = argc == 6 && strcmp(argv[2], "round-trip") == 0;
    if (!work && !trip && !(argc == 7 && strcmp(argv[2], "window") == 0 && numbers[3] > 0))
        return usage(system);
    if (work) {
        r = system->work(argv[1], (unsigned)numbers[0], numbers[1]);
    } else {
        load.count = numbers[0];
        load.size = numbers[1];
        load.result_size = numbers[2] < load.size ? numbers[2] : load.size;
        load.window = trip ? 1 : numbers[3];
        load.n_warm = load.count / 20 + 1;
        if (load.count == 0 || load.result_size < sizeof(uint64_t))
            return usage(system);
        r = run(&load, argv[1], trip ? measure_round_trip : measure_window);
        free(load.data);
        free(load.result);
    }
    if (r < 0)
        fprintf(stderr, "%s: %s\n", system->name, strerror(-r));
    return r < 0;
}
