/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/gate.h"

/* Adds the type Job to the module. Returns 0, or -1 after raising. */
int job_register(PyObject *module);

/* Returns a new Job for a handler, whose calls pass `gate`, or NULL after raising. `owner` holds
 * the gate. */
PyObject *job_new(struct troupe_job *job, PyObject *owner, struct gate *gate);

/* Detaches it from the job, whose handler has returned: all calls raise from now on. */
void job_end(PyObject *self);
