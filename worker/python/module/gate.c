/* SPDX-License-Identifier: MIT */
#include "worker/python/module/gate.h"
#include "worker/python/module/failure.h"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static unsigned generation = 1;

static void count(void)
{
    generation++;
}

int gate_prepare(void)
{
    static bool prepared;
    int r = prepared ? 0 : pthread_atfork(NULL, NULL, count);

    if (r != 0) {
        (void)failure_raise(-r, NULL);
        return -1;
    }
    prepared = true;
    return 0;
}

void gate_open(struct gate *gate)
{
    gate->generation = generation;
}

void gate_close(struct gate *gate)
{
    gate->generation = 0;
}

bool gate_is_foreign(const struct gate *gate)
{
    return gate->generation != 0 && gate->generation != generation;
}

bool gate_is_open(const struct gate *gate)
{
    if (gate->generation == generation)
        return true;
    PyErr_SetString(PyExc_RuntimeError, gate->generation == 0
                                            ? "this object is closed"
                                            : "this object belongs to the process that forked");
    return false;
}

bool gate_enter(struct gate *gate)
{
    const unsigned long here = PyThread_get_thread_ident();

    if (!gate_is_open(gate))
        return false;
    if (gate->depth > 0 && gate->thread != here) {
        PyErr_SetString(PyExc_RuntimeError, "another thread uses this object now");
        return false;
    }
    gate->thread = here;
    gate->depth++;
    return true;
}

void gate_leave(struct gate *gate)
{
    gate->depth--;
}

void gate_unlock(struct gate *gate)
{
    gate->outside = PyEval_SaveThread();
}

void gate_lock(struct gate *gate)
{
    PyEval_RestoreThread(gate->outside);
}

void gate_survive(const struct gate *gate)
{
    if (!gate_is_foreign(gate))
        return;
    if (PyErr_Occurred())
        PyErr_Print(); /* SystemExit ends the process here */
    else
        (void)fprintf(stderr, "troupe: a child of fork() has returned from a handler\n");
    _exit(1);
}
