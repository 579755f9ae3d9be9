/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/held.h"

/* Adds the type Job to the module. Returns 0, or -1 after raising. */
int job_register(PyObject *module);

/* Returns a new Job for a handler, like held_new(). */
PyObject *job_new(struct troupe_job *job, PyObject *owner, struct gate *gate);
