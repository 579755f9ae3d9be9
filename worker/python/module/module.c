/* SPDX-License-Identifier: MIT */

/* The extension troupe._troupe: libtroupe's objects as Python types, by the stable ABI. */

#include "worker/python/module/types.h"
#include <errno.h>
#include <stdlib.h>

#define SENTENCE_SIZE 2048

static PyObject *version(PyObject *module, PyObject *unused)
{
    return PyUnicode_FromString(troupe_version());
}

static PyObject *explain_refused(PyObject *module, PyObject *args)
{
    const char *group, *reason;
    char text[SENTENCE_SIZE];
    int error;

    if (!PyArg_ParseTuple(args, "iss:explain_refused", &error, &group, &reason))
        return NULL;
    return text_new(troupe_explain_refused(-error, group, reason, text, sizeof(text)));
}

static void before_fork(void *unused)
{
    PyOS_BeforeFork();
}

static void after_fork(void *unused)
{
    PyOS_AfterFork_Parent();
}

static void after_fork_in_child(void *unused)
{
    PyOS_AfterFork_Child();
}

/* Keeps the interpreter's lock: a template has one thread. */
static PyObject *template_run(PyObject *module, PyObject *unused)
{
    static const struct troupe_fork_hooks hooks = {
        .before = before_fork, .parent = after_fork, .child = after_fork_in_child};
    int r = troupe_template_run(&hooks);

    if (r < 0 && r != -ESHUTDOWN)
        return failure_raise(r, NULL);
    if (r < 0)
        Py_RETURN_NONE;
    const char *socket = getenv("TROUPE_SOCKET");
    return text_new(socket ? socket : "");
}

/* There is one worker per process, whose objects belong to threads of one interpreter. */
static bool is_main_interpreter(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
        return true;
    PyErr_SetString(PyExc_ImportError, "troupe works only in the main interpreter");
    return false;
}

static int execute(PyObject *module)
{
    if (!is_main_interpreter() || gate_prepare() < 0 || result_register(module) < 0 ||
        job_register(module) < 0 || worker_register(module) < 0 || client_register(module) < 0 ||
        query_register(module) < 0 || message_register(module) < 0 || future_register(module) < 0 ||
        actor_register(module) < 0)
        return -1;
    return 0;
}

static PyMethodDef METHODS[] = {
    {"version", version, METH_NOARGS, "version(): of libtroupe."},
    {"explain_refused", explain_refused, METH_VARARGS,
     "explain_refused(errno, group, reason): why a group refused a job, as a sentence."},
    {"template_run", template_run, METH_NOARGS,
     "template_run(): forks workers in a template. Returns the worker's TROUPE_SOCKET or \"\", "
     "and None in a template that is to end."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, SLOT(execute)},
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "troupe._troupe",
    .m_doc = "libtroupe. Use the package troupe instead.",
    .m_methods = METHODS,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__troupe(void);

PyMODINIT_FUNC PyInit__troupe(void)
{
    return PyModuleDef_Init(&MODULE);
}
