/* SPDX-License-Identifier: MIT */
#include "supervisor/store/job-number.h"

#include "shared/base/hash.h"

/* low is the number, mixed with the key; high proves that the id was made here. */
struct protocol_id job_number_to_id(uint64_t id_key, int64_t number)
{
    struct protocol_id id = {.low = hash_mix((uint64_t)number ^ id_key)};

    id.high = hash_mix(id.low + id_key);
    return id;
}

int64_t job_number_of_id(uint64_t id_key, const struct protocol_id *id)
{
    if (id->name[0] != '\0' || id->high != hash_mix(id->low + id_key))
        return 0;
    return (int64_t)(hash_unmix(id->low) ^ id_key);
}
