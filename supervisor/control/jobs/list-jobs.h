/* SPDX-License-Identifier: MIT */
#pragma once

struct request;

/* io.troupe.Jobs.List. */
void control_list_jobs(struct request *request);
