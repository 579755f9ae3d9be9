/* SPDX-License-Identifier: MIT */
#pragma once

/* The functions of all verbs. They print errors and return an enum exit_status. */

#include <stddef.h>

struct attachment_client;
struct invocation;
struct reconnect;

int verb_status(struct invocation *invocation);
int verb_events(struct invocation *invocation);
int verb_jobs(struct invocation *invocation);
int verb_history(struct invocation *invocation);
int verb_job(struct invocation *invocation);
int verb_change_jobs(struct invocation *invocation);
int verb_create(struct invocation *invocation);
int verb_wait(struct invocation *invocation);
int verb_watch(struct invocation *invocation);
int verb_do(struct invocation *invocation);
int verb_map(struct invocation *invocation);
int verb_batch(struct invocation *invocation);
int verb_tree(struct invocation *invocation);
int verb_change(struct invocation *invocation);
int verb_switch(struct invocation *invocation);
int verb_drain(struct invocation *invocation);
int verb_resume(struct invocation *invocation);
int verb_backup(struct invocation *invocation);
int verb_signal(struct invocation *invocation);
int verb_resize(struct invocation *invocation);
int verb_reload(struct invocation *invocation);
int verb_upgrade(struct invocation *invocation);
int verb_deaths(struct invocation *invocation);
int verb_logs(struct invocation *invocation);
int verb_metrics(struct invocation *invocation);
int verb_stack(struct invocation *invocation);
int verb_profile(struct invocation *invocation);
int verb_record(struct invocation *invocation);
int verb_why(struct invocation *invocation);
int verb_top(struct invocation *invocation);
int verb_init(struct invocation *invocation);
int verb_import(struct invocation *invocation);
int verb_verify(struct invocation *invocation);
int verb_sandbox(struct invocation *invocation);
int verb_info(struct invocation *invocation);
int verb_tell(struct invocation *invocation);
int verb_ask(struct invocation *invocation);
int verb_limit(struct invocation *invocation);
int verb_schedule(struct invocation *invocation);
int verb_timer(struct invocation *invocation);
int verb_actors(struct invocation *invocation);
int verb_exchanges(struct invocation *invocation);
int verb_subscribe(struct invocation *invocation);
int verb_unsubscribe(struct invocation *invocation);
int verb_retry(struct invocation *invocation);
int verb_dead_letters(struct invocation *invocation);
int verb_help(struct invocation *invocation);
int verb_complete(struct invocation *invocation);

/* Creates the job of the first operand's group over the rings. Also succeeds if an earlier attempt
 * has created it. `id`: of TROUPE_ID_SIZE bytes, gets that of the job. */
int submit_attached(struct invocation *invocation, struct attachment_client *attached,
                    struct reconnect *reconnect, const char *data, size_t size, char *id);

/* A longer line is an error: input without separators must not fill the memory. */
#define MAP_LINE_MAX ((size_t)64 << 20)
/* Like verb_map(), but makes the jobs members of a batch, and does not wait for them. */
int map_in_background(struct invocation *invocation);
