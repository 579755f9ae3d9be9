/* SPDX-License-Identifier: MIT */
#pragma once

/* The last checkpoint of a job: bytes from which its next attempt continues. They never change, so
 * that the storage thread can write them while a newer one comes. References are the loop's. */

#include <stddef.h>
#include <stdint.h>

struct job;
struct record;
struct saver;

struct checkpoint {
    unsigned references;
    uint32_t size;
    char bytes[];
};

/* Copies the bytes. The caller has the only reference. NULL = out of memory. */
struct checkpoint *checkpoint_new(const void *data, size_t size);
struct checkpoint *checkpoint_ref(struct checkpoint *checkpoint);
/* NULL allowed. Returns NULL. */
struct checkpoint *checkpoint_unref(struct checkpoint *checkpoint);

/* A checkpoint in an upgrade, of a job that is not durable. */
struct saved_checkpoint {
    uint64_t handle; /* of the job */
    const char *data;
    uint32_t data_size;
};

extern const struct record SAVED_CHECKPOINT_RECORD;

void checkpoint_save(const struct job *job, struct saver *saver);
