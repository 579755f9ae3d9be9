/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Returns what another process sent, which may be anything, as a new str, or NULL after raising. */
PyObject *text_new(const char *bytes);
