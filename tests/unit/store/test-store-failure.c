/* SPDX-License-Identifier: MIT */

/* Lets each write, sync and read of the store fail in turn, cuts the power afterwards, and compares
 * what is left with what was promised. */

#include "supervisor/store/job-rows.h"
#include "supervisor/store/store.h"
#include "tests/unit/fixture.h"
#include "tests/unit/store/fake-disk.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"

#define LANES      3
#define PAYLOAD    3000 /* a few make a page */
#define JOBS       6    /* of a lane */
#define N_ROWS_MAX (LANES * JOBS + 8)

enum promise {
    NOTHING, /* not asked for, or refused without a trace */
    THERE,
    GONE,
    UNKNOWN,
};

/* Adds jobs one after the other, and removes every second one, or those whose fate is unknown. */
struct lane {
    struct store_task add, remove;
    int64_t number;
    unsigned n_left;
};

static struct scratch scratch;
static struct loop *loop;
static struct store *store;
static struct lane lanes[LANES];
static unsigned n_running;
static enum promise promises[N_ROWS_MAX];
static unsigned n_changes;
static enum store_state wanted; /* STORE_OPENING = none */

static void on_change(void *userdata, enum store_state state)
{
    n_changes++;
    if (state == wanted)
        loop_stop(loop);
}

static void start(void)
{
    const struct store_options options = {.path = scratch.path,
                                          .vfs = FAKE_DISK,
                                          .changed = on_change,
                                          .retry = USEC_PER_MSEC,
                                          .log_pages = 20};

    ck_assert_int_eq(store_new(&store, loop, &options), 0);
}

static void run_until(enum store_state state)
{
    wanted = state;
    while (store_state(store) != state)
        ck_assert_int_eq(loop_run(loop), 0);
    wanted = STORE_OPENING;
}

static int apply_add(struct store_task *task, struct database *database)
{
    static const char payload[PAYLOAD];
    struct job_row row = JOB_ROW_NULL;

    row.number = list_entry(task, struct lane, add)->number;
    row.group = "g";
    row.group_size = 1;
    row.payload = payload;
    row.payload_size = PAYLOAD;
    return job_rows_add(database, &row);
}

static int apply_remove(struct store_task *task, struct database *database)
{
    return job_rows_remove(database, 1u << ROWS_JOB, list_entry(task, struct lane, remove)->number);
}

static void lane_go_on(struct lane *lane)
{
    if (lane->n_left == 0) {
        if (--n_running == 0)
            loop_stop(loop);
        return;
    }
    lane->n_left--;
    lane->number += LANES;
    store_add(store, &lane->add);
}

static void on_added(struct store_task *task, int result)
{
    struct lane *lane = list_entry(task, struct lane, add);
    ck_assert(result == 0 || result == -ENOSPC || result == -EIO);
    if (result < 0)
        loop_stop(loop);
    if (result != -ENOSPC)
        promises[lane->number] = result == 0 ? THERE : UNKNOWN;
    if (result == -EIO || (result == 0 && lane->n_left % 2 == 1))
        store_add(store, &lane->remove);
    else
        lane_go_on(lane);
}

static void on_removed(struct store_task *task, int result)
{
    struct lane *lane = list_entry(task, struct lane, remove);

    ck_assert_int_eq(result, 0);
    promises[lane->number] = GONE;
    lane_go_on(lane);
}

static void run_lanes(int64_t first, unsigned n_jobs)
{
    for (unsigned i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){
            .add = {.addition = true, .apply = apply_add, .done = on_added},
            .remove = {.apply = apply_remove, .done = on_removed},
            .number = first + i - LANES,
            .n_left = n_jobs,
        };
        n_running++;
        lane_go_on(&lanes[i]);
    }
    while (n_running > 0)
        ck_assert_int_eq(loop_run(loop), 0);
}

static int mark(void *userdata, const struct job_row *row)
{
    bool *found = userdata;

    ck_assert_int_lt(row->number, N_ROWS_MAX);
    ck_assert_uint_eq(row->payload_size, PAYLOAD);
    found[row->number] = true;
    return 0;
}

static void check_promises(void)
{
    struct database database = DATABASE_NULL;
    bool found[N_ROWS_MAX] = {0};

    ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
    ck_assert_int_eq(job_rows_scan(&database, 0, false, N_ROWS_MAX, mark, found), 0);
    for (unsigned i = 0; i < N_ROWS_MAX; i++)
        if (found[i])
            ck_assert_int_eq(job_rows_fetch(&database, i, mark, found), 0);
    for (unsigned i = 0; i < N_ROWS_MAX; i++) {
        ck_assert_msg(found[i] || promises[i] != THERE, "job %u is lost", i);
        ck_assert_msg(!found[i] || promises[i] == THERE || promises[i] == UNKNOWN,
                      "job %u has come back", i);
    }
    ck_assert_int_eq(sqlite3_exec(database.handle, "PRAGMA integrity_check", NULL, NULL, NULL),
                     SQLITE_OK);
    database_close(&database, false);
}

static void begin(void)
{
    scratch_init(&scratch);
    fake_disk_init();
    memset(promises, 0, sizeof(promises));
    n_changes = 0;
    loop = new_loop();
    start();
    run_until(STORE_OPEN);
}

static void end(void)
{
    store = store_free(store);
    loop_free(loop);
    fake_disk_deinit();
    scratch_deinit(&scratch);
}

/* Another program that goes on reading what there was before. */
static sqlite3 *begin_reading(void)
{
    sqlite3 *handle;

    ck_assert_int_eq(sqlite3_open(scratch.path, &handle), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(handle, "BEGIN; SELECT count(*) FROM job", NULL, NULL, NULL),
                     SQLITE_OK);
    return handle;
}

/* Returns whether an operation has failed. */
static bool run_with(enum fake_fault fault, unsigned nth, unsigned n, bool reader)
{
    sqlite3 *reading = NULL;

    begin();
    if (reader)
        reading = begin_reading();
    fake_disk_fail(fault, nth, n);
    run_lanes(1, JOBS);
    bool failed = fake_disk_n_failed() > 0;
    fake_disk_fail(FAKE_NO_FAULT, 0, 0);
    /* It goes on by itself. */
    run_until(STORE_OPEN);
    run_lanes(LANES * JOBS + 1, 1);
    for (unsigned i = LANES * JOBS + 1; i <= LANES * JOBS + LANES; i++)
        ck_assert_int_eq(promises[i], THERE);
    fake_disk_cut_power();
    store = store_free(store);
    ck_assert_int_eq(sqlite3_close(reading), SQLITE_OK);
    fake_disk_power_on();
    check_promises();
    end();
    return failed;
}

/* Lets each operation of that kind fail. */
static void fail_each(enum fake_fault fault, unsigned n, bool reader)
{
    unsigned nth = 1;

    while (run_with(fault, nth, n, reader))
        nth++;
    ck_assert_uint_gt(nth, 5);
}

static const struct {
    const char *what;
    enum fake_fault fault;
    unsigned n; /* operations that fail */
    bool reader;
} FAULTS[] = {
    {"a write finds no space", FAKE_ENOSPC, 1, false},
    {"several writes find no space", FAKE_ENOSPC, 5, false},
    {"a write fails", FAKE_EIO_ON_WRITE, 1, false},
    {"a sync fails", FAKE_EIO_ON_SYNC, 1, false},
    {"several syncs fail", FAKE_EIO_ON_SYNC, 3, false},
    {"a sync fails while another program reads", FAKE_EIO_ON_SYNC, 1, true},
};

TEST(promises_hold_when_operations_fail, .n = ELEMENTS(FAULTS))
{
    printf("%s\n", FAULTS[_i].what);
    fflush(stdout);
    fail_each(FAULTS[_i].fault, FAULTS[_i].n, FAULTS[_i].reader);
}

TEST(promises_hold_when_the_first_sync_after_a_power_cut_fails)
{
    begin();
    run_lanes(1, JOBS);
    fake_disk_cut_power();
    store = store_free(store);
    fake_disk_power_on();
    fake_disk_fail(FAKE_EIO_ON_SYNC, 1, 1);
    start();
    run_until(STORE_OPEN);
    ck_assert_uint_eq(fake_disk_n_failed(), 1);
    run_lanes(LANES * JOBS + 1, 1);
    fake_disk_cut_power();
    store = store_free(store);
    fake_disk_power_on();
    check_promises();
    end();
}

static atomic_bool no_space;

int __real_posix_fallocate(int fd, off_t at, off_t size);
int __wrap_posix_fallocate(int fd, off_t at, off_t size);
int __wrap_posix_fallocate(int fd, off_t at, off_t size)
{
    return no_space ? ENOSPC : __real_posix_fallocate(fd, at, size);
}

static atomic_bool no_lengthening;
static atomic_uint n_refused;

ssize_t __real_pwrite(int fd, const void *from, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t size, off_t at)
{
    if (!no_lengthening)
        return __real_pwrite(fd, from, size, at);
    atomic_fetch_add(&n_refused, 1);
    errno = ENOSPC;
    return -1;
}

TEST(a_log_that_cannot_be_lengthened_takes_commits)
{
    no_lengthening = true;
    n_refused = 0;
    begin();
    run_lanes(1, 1);
    for (unsigned i = 1; i <= LANES; i++)
        ck_assert_int_eq(promises[i], THERE);
    ck_assert_uint_eq(n_changes, 1);
    /* The log is lengthened after the loop has heard of a commit. */
    store = store_free(store);
    ck_assert_uint_gt(n_refused, 0);
    no_lengthening = false;
    end();
}

TEST(ends_pass_when_the_disk_is_full)
{
    char reserve[128];

    begin();
    (void)snprintf(reserve, sizeof(reserve), "%s-reserve", scratch.path);
    ck_assert_int_eq(access(reserve, F_OK), 0);
    run_lanes(1, 1);
    no_space = true;
    fake_disk_full_while(reserve);
    run_lanes(LANES + 1, 1);
    ck_assert_int_eq(promises[LANES + 1], NOTHING);
    ck_assert_int_eq(store_state(store), STORE_FULL);
    ck_assert_ptr_nonnull(strstr(store_problem(store), "full"));
    store_add(store, &lanes[0].remove);
    lanes[0].number = 1;
    n_running = 1;
    while (n_running > 0)
        ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(promises[1], GONE);
    /* It is there for a moment whenever the store looks whether there is space. */
    while (access(reserve, F_OK) == 0)
        ;
    no_space = false;
    fake_disk_full_while(NULL);
    run_until(STORE_OPEN);
    ck_assert_str_eq(store_problem(store), "");
    ck_assert_int_eq(access(reserve, F_OK), 0);
    run_lanes(2 * LANES + 1, 1);
    ck_assert_int_eq(promises[2 * LANES + 1], THERE);
    end();
}

TEST(a_failed_store_refuses_additions_and_keeps_the_rest)
{
    begin();
    run_lanes(1, 1);
    fake_disk_fail(FAKE_EIO_ON_SYNC, 1, UINT32_MAX);
    lanes[0].number = 1;
    n_running = 1;
    store_add(store, &lanes[0].remove);
    run_until(STORE_FAILED);
    ck_assert_ptr_nonnull(strstr(store_problem(store), scratch.path));
    /* Its row may be there, so a removal follows, which waits too. */
    lanes[1].number = N_ROWS_MAX - 1;
    n_running = 2;
    store_add(store, &lanes[1].add);
    while (promises[N_ROWS_MAX - 1] != UNKNOWN)
        ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(promises[1], THERE);
    fake_disk_fail(FAKE_NO_FAULT, 0, 0);
    while (n_running > 0)
        ck_assert_int_eq(loop_run(loop), 0);
    /* Open, failed, open: attempts in vain to open it change nothing. */
    ck_assert_uint_eq(n_changes, 3);
    ck_assert_int_eq(promises[1], GONE);
    ck_assert_int_eq(promises[N_ROWS_MAX - 1], GONE);
    end();
}

/* A change meets a disk that always has the fault; then the store is to rest, as for an upgrade. */
static void rest_in_state(enum fake_fault fault, enum store_state state)
{
    begin();
    run_lanes(1, 1);
    fake_disk_fail(fault, 1, UINT32_MAX);
    lanes[0].number = 1;
    n_running = 1;
    store_add(store, &lanes[0].remove);
    run_until(state);
    store_rest(store);
}

TEST(a_failed_store_opens_again_after_it_has_rested)
{
    rest_in_state(FAKE_EIO_ON_SYNC, STORE_FAILED);
    while (!store_rests(store))
        store_work(store, USEC_PER_SEC);
    ck_assert_int_eq(usleep(20 * USEC_PER_MSEC), 0); /* when it would have retried */
    store_resume(store);
    fake_disk_fail(FAKE_NO_FAULT, 0, 0);
    while (n_running > 0)
        ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(promises[1], GONE);
    end();
}

TEST(a_store_with_changes_for_which_there_is_no_space_cannot_rest_and_says_so)
{
    rest_in_state(FAKE_ENOSPC, STORE_FULL);
    while (!store_is_stuck(store))
        store_work(store, USEC_PER_SEC);
    ck_assert(!store_rests(store));
    fake_disk_fail(FAKE_NO_FAULT, 0, 0);
    store_resume(store);
    ck_assert(!store_is_stuck(store));
    while (n_running > 0)
        ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(promises[1], GONE);
    end();
}

static int cancelled;

static void on_cancelled(struct store_task *task, int result)
{
    cancelled = result;
}

TEST(what_cannot_be_written_is_handed_back_at_the_end)
{
    begin();
    run_lanes(1, 1);
    fake_disk_fail(FAKE_EIO_ON_SYNC, 1, UINT32_MAX);
    lanes[0] = (struct lane){.remove = {.apply = apply_remove, .done = on_cancelled}, .number = 1};
    store_add(store, &lanes[0].remove);
    run_until(STORE_FAILED);
    ck_assert_int_eq(cancelled, 0);
    end();
    ck_assert_int_eq(cancelled, -ECANCELED);
}

TEST(a_store_in_use_is_opened_once_it_is_free)
{
    struct database other = DATABASE_NULL;

    begin();
    store = store_free(store);
    ck_assert_int_eq(database_open(&other, scratch.path, NULL), 0);
    start();
    run_until(STORE_FAILED);
    ck_assert_ptr_nonnull(strstr(store_problem(store), "another trouped"));
    database_close(&other, false);
    run_until(STORE_OPEN);
    end();
}

TEST(a_store_that_is_opened_late_goes_on_with_its_numbers)
{
    struct database other = DATABASE_NULL;

    begin();
    int64_t earlier = store_next_number(store);
    store = store_free(store);
    ck_assert_int_eq(database_open(&other, scratch.path, NULL), 0);
    start();
    run_until(STORE_FAILED);
    database_close(&other, false);
    run_until(STORE_OPEN);
    ck_assert_int_gt(store_next_number(store), earlier);
    end();
}

TEST(a_damaged_store_refuses_everything)
{
    begin();
    store = store_free(store);
    int fd = open(scratch.path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, "garbage", 7, 0), 7);
    close_fd(fd);
    start();
    lanes[0] = (struct lane){.remove = {.apply = apply_remove, .done = on_cancelled}};
    store_add(store, &lanes[0].remove);
    run_until(STORE_UNUSABLE);
    ck_assert_ptr_nonnull(strstr(store_problem(store), "restore a backup"));
    end();
    ck_assert_int_eq(cancelled, -EUCLEAN);
}
