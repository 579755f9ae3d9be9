/* SPDX-License-Identifier: MIT */
#include "worker/python/module/text.h"
#include <string.h>

PyObject *text_new(const char *bytes)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes), "replace");
}
