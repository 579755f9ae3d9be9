/* SPDX-License-Identifier: MIT */

/* What outlives the supervisor of a job: each field, in each medium. */

#include "supervisor/store/job-to-row.h"
#include "tests/unit/succession/odd.h"
#include "tests/unit/suite.h"

TEST(every_fact_of_a_job_is_in_the_table)
{
    static bool covered[sizeof(struct job_facts)];

    for (size_t i = 0; i < JOB_FACTS_RECORD.n; i++) {
        const struct field *field = &JOB_FACTS_RECORD.fields[i];

        for (size_t k = 0; k < field->size; k++) {
            ck_assert_msg(!covered[field->at + k], "\"%s\" is there twice", field->name);
            covered[field->at + k] = true;
        }
    }
    for (size_t i = 0; i <= offsetof(struct job_facts, crashed); i++)
        ck_assert_msg(covered[i], "no field has byte %zu of struct job_facts", i);
}

TEST(every_fact_of_a_job_outlives_a_crash_and_an_upgrade)
{
    for (size_t i = 0; i < JOB_FACTS_RECORD.n; i++)
        ck_assert_msg((JOB_FACTS_RECORD.fields[i].media & MEDIA_KEPT) == MEDIA_KEPT,
                      "\"%s\" is lost", JOB_FACTS_RECORD.fields[i].name);
}

TEST(each_field_of_a_job_gets_through_an_upgrade)
{
    static struct saved_job row, found;

    odd_check_upgrade(&SAVED_JOB_RECORD, &row, &found);
}

TEST(the_page_of_a_job_in_hand_is_checked_after_a_crash)
{
    static struct job_page page;

    odd_fill(&JOB_PAGE_RECORD, MEDIUM_MEMORY, &page, 1);
    ck_assert(record_is_sound(&JOB_PAGE_RECORD, &page));
    page.key_size = PROTOCOL_KEY_MAX + 1;
    ck_assert(!record_is_sound(&JOB_PAGE_RECORD, &page));
    page.key_size = 1;
    page.facts.priority = 64;
    ck_assert(!record_is_sound(&JOB_PAGE_RECORD, &page));
}
