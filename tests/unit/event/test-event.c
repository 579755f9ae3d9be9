/* SPDX-License-Identifier: MIT */
#include "supervisor/event/event.h"
#include "tests/unit/suite.h"

static struct event_bus bus;

static void setup(void)
{
    ck_assert_int_eq(event_bus_init(&bus), 0);
}

static void teardown(void)
{
    event_bus_deinit(&bus);
}

const struct suite suite = {.setup = setup, .teardown = teardown};

struct watcher {
    struct job_subscriber jobs;
    unsigned n;
    bool leaves;
};

static void on_job(struct job_subscriber *jobs, const struct event *event)
{
    struct watcher *watcher = list_entry(jobs, struct watcher, jobs);

    (void)event;
    watcher->n++;
    if (watcher->leaves)
        event_unsubscribe_jobs(&bus, jobs);
}

static void publish(const char *group, const char *traceparent)
{
    if (event_job_wanted(&bus, group, traceparent != NULL))
        event_publish_job(&bus, &(struct event){.group = group, .traceparent = traceparent});
}

TEST(an_event_of_a_job_reaches_only_those_who_watch_its_group)
{
    static const char *const targets[] = {NULL, "a", "a/key/0", "b"};
    struct watcher watchers[4] = {{.n = 0}};

    ck_assert(!event_job_wanted(&bus, "a", true));
    for (unsigned i = 0; i < 4; i++) {
        watchers[i].jobs = (struct job_subscriber){.fn = on_job, .untraced = i != 1};
        event_subscribe_jobs(&bus, &watchers[i].jobs, targets[i]);
    }
    publish("a", NULL);
    publish("a", "traceparent");
    publish("b", NULL);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(watchers[i].n, ((const unsigned[]){3, 1, 2, 1})[i]);
    event_unsubscribe_jobs(&bus, &watchers[0].jobs);
    ck_assert(event_job_wanted(&bus, "b", false) && !event_job_wanted(&bus, "c", true));
    for (unsigned i = 0; i < 4; i++)
        event_unsubscribe_jobs(&bus, &watchers[i].jobs);
    ck_assert(!event_job_wanted(&bus, "b", true));
}

TEST(a_subscriber_may_leave_when_it_is_called)
{
    struct watcher watchers[3] = {{.n = 0}};

    for (unsigned i = 0; i < 3; i++) {
        watchers[i].jobs = (struct job_subscriber){.fn = on_job, .untraced = true};
        watchers[i].leaves = true;
        event_subscribe_jobs(&bus, &watchers[i].jobs, i == 2 ? NULL : "a");
    }
    publish("a", NULL);
    publish("a", NULL);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(watchers[i].n, 1);
}
