/* SPDX-License-Identifier: MIT */
#include "worker/python/module/type.h"
#include <string.h>

int type_register(PyObject *module, PyType_Spec *spec, PyTypeObject **ret)
{
    *ret = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *ret ? PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, (PyObject *)*ret)
                : -1;
}
