/* SPDX-License-Identifier: MIT */
#pragma once

/* Marks the functions that libtroupe exports; worker/libtroupe.map also lists them. */
#define _public_ __attribute__((visibility("default")))
