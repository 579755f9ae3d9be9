/* SPDX-License-Identifier: MIT */
#pragma once

/* Marks the functions that libtroupe exports; worker/libtroupe.map lists them as well. */
#define _public_ __attribute__((visibility("default")))
