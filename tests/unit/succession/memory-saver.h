/* SPDX-License-Identifier: MIT */
#pragma once

/* A saver that keeps its rows in memory. */

#include "supervisor/succession/saved-row.h"

#define MEMORY_SAVER_ROWS 64

struct memory_row {
    const char *kind;
    uint8_t *fields;
    size_t size;
    uint8_t payload[64];
    size_t payload_size;
};

struct memory_saver {
    struct saver saver;
    struct memory_row rows[MEMORY_SAVER_ROWS];
    size_t n_rows;
};

void memory_saver_init(struct memory_saver *saver);
void memory_saver_deinit(struct memory_saver *saver);

/* Reads row `i`, which must have this kind. */
struct saved_reader memory_saver_read(const struct memory_saver *saver, size_t i, const char *kind);

/* Calls `check` for the row with each beginning of its fields, which shows what a cut-off row does,
 * and with each of its bytes changed. The reader's bytes are in memory that ends with them. */
void memory_saver_damage(const struct memory_saver *saver, size_t i,
                         void (*check)(void *userdata, struct saved_reader *row), void *userdata);
