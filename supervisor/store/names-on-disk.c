/* SPDX-License-Identifier: MIT */
#include "supervisor/store/names-on-disk.h"

#include "shared/base/hash.h"
#include <stdlib.h>

struct name_on_disk {
    struct index_entry by_name;
    struct list link;
    int64_t number;
};

void names_on_disk_init(struct names_on_disk *names)
{
    *names = (struct names_on_disk){.by_name = INDEX_NULL};
    list_init(&names->all);
}

static void forget(struct names_on_disk *names, struct name_on_disk *entry)
{
    index_remove(&names->by_name, &entry->by_name);
    list_unlink(&entry->link);
    free(entry);
}

void names_on_disk_deinit(struct names_on_disk *names)
{
    list_for_each_entry_safe (name, &names->all, struct name_on_disk, link)
        forget(names, name);
    index_deinit(&names->by_name);
}

static struct name_on_disk *find(const struct names_on_disk *names, uint64_t hash, int64_t number)
{
    index_for_each_entry (found, &names->by_name, hash, struct name_on_disk, by_name)
        if (found->number == number)
            return found;
    return NULL;
}

void names_on_disk_add(struct names_on_disk *names, const void *name, size_t size, int64_t number)
{
    const uint64_t hash = hash_bytes(name, size);
    struct name_on_disk *entry = find(names, hash, number) ? NULL : malloc(sizeof(*entry));

    if (!entry)
        return;
    entry->number = number;
    list_init(&entry->link);
    list_push_back(&names->all, &entry->link);
    index_add(&names->by_name, &entry->by_name, hash);
}

void names_on_disk_remove(struct names_on_disk *names, const void *name, size_t size,
                          int64_t number)
{
    struct name_on_disk *entry = find(names, hash_bytes(name, size), number);

    if (entry)
        forget(names, entry);
}

int64_t names_on_disk_find(const struct names_on_disk *names, const void *name, size_t size)
{
    const struct index_entry *entry =
        list_empty(&names->all) ? NULL : index_find(&names->by_name, hash_bytes(name, size));

    return entry ? list_entry(entry, struct name_on_disk, by_name)->number : 0;
}

bool names_on_disk_has_before(const struct names_on_disk *names, const void *name, size_t size,
                              int64_t number)
{
    const struct index_entry *entry =
        list_empty(&names->all) ? NULL : index_find(&names->by_name, hash_bytes(name, size));

    while (entry && list_entry(entry, struct name_on_disk, by_name)->number >= number)
        entry = index_find_next(entry);
    return entry;
}
