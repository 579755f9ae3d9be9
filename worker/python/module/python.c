/* SPDX-License-Identifier: MIT */
#include "worker/python/module/python.h"

#include <string.h>

/* ---- text ---- */

PyObject *text_new(const char *bytes)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes), "replace");
}

/* ---- type ---- */

int type_register(PyObject *module, PyType_Spec *spec, PyTypeObject **ret)
{
    *ret = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *ret ? PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, (PyObject *)*ret)
                : -1;
}
