/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Prints a sentence about what something waits for: an object of the type Wait. */
void show_wait(FILE *file, const json_t *wait);
