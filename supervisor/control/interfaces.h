/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The interfaces of the control socket: their methods, and the .varlink files beside this one,
 * embedded as text.
 */

#include "supervisor/varlink/request.h"

/* NULL-terminated. */
extern const struct request_interface *const control_interfaces[];

extern const char interfaces_service_text[];
extern const char interfaces_supervisor_text[];
extern const char interfaces_jobs_text[];
extern const char interfaces_actors_text[];

extern const struct request_method service_methods[];
extern const struct request_method control_supervisor_methods[];
extern const struct request_method control_jobs_methods[];
extern const struct request_method control_actors_methods[];
