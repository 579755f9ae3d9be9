/* SPDX-License-Identifier: MIT */
/* Finds a symbol that a program or library exports, in the memory of the process: by the hash table
 * of its dynamic linker. All of that may be hostile: each list is bounded. */

#include "shared/base/cleanup.h"
#include "supervisor/trace/sample.h"
#include <elf.h>
#include <string.h>

#define HEADERS_MAX 64
#define ENTRIES_MAX 128
#define CHAIN_MAX   64
#define NAME_MAX_   32

struct tables {
    uint64_t bias; /* of addresses in the file */
    uint64_t symbols, strings, hashes;
};

static bool read_tables(const struct target *target, uint64_t dynamic, struct tables *ret)
{
    for (unsigned i = 0; i < ENTRIES_MAX; i++) {
        Elf64_Dyn entry;
        if (!target_read(target, dynamic + i * sizeof(entry), &entry, sizeof(entry)) ||
            entry.d_tag == DT_NULL)
            break;
        /* The dynamic linker may have relocated these already. */
        const uint64_t address = entry.d_un.d_ptr + (entry.d_un.d_ptr < ret->bias ? ret->bias : 0);
        if (entry.d_tag == DT_SYMTAB)
            ret->symbols = address;
        else if (entry.d_tag == DT_STRTAB)
            ret->strings = address;
        else if (entry.d_tag == DT_GNU_HASH)
            ret->hashes = address;
    }
    return ret->symbols != 0 && ret->strings != 0 && ret->hashes != 0;
}

static bool find_tables(const struct target *target, uint64_t begin, struct tables *ret)
{
    uint64_t dynamic = 0;
    bool loaded = false;
    Elf64_Ehdr header;

    *ret = (struct tables){0};
    if (!target_read(target, begin, &header, sizeof(header)) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    for (unsigned i = 0; i < header.e_phnum && i < HEADERS_MAX; i++) {
        Elf64_Phdr part;
        if (!target_read(target, begin + header.e_phoff + i * sizeof(part), &part, sizeof(part)))
            return false;
        if (part.p_type == PT_LOAD && !loaded) {
            ret->bias = begin - part.p_vaddr;
            loaded = true;
        }
        if (part.p_type == PT_DYNAMIC)
            dynamic = part.p_vaddr;
    }
    return loaded && dynamic != 0 && read_tables(target, dynamic + ret->bias, ret);
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;

    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Returns the address of the symbol with this number, if it has this name; else 0. */
static uint64_t address_if(const struct target *target, const struct tables *tables,
                           uint64_t number, const char *name)
{
    const size_t size = strlen(name) + 1;
    char found[NAME_MAX_];
    Elf64_Sym symbol;

    if (size > sizeof(found) ||
        !target_read(target, tables->symbols + number * sizeof(symbol), &symbol, sizeof(symbol)) ||
        !target_read(target, tables->strings + symbol.st_name, found, size) ||
        memcmp(found, name, size) != 0 || symbol.st_shndx == SHN_UNDEF)
        return 0;
    return symbol.st_value + tables->bias;
}

uint64_t sample_symbol(const struct target *target, uint64_t begin, const char *name)
{
    const uint32_t hash = hash_of(name);
    uint32_t head[4], number, link; /* buckets, first symbol, words of the filter */
    struct tables tables;
    uint64_t buckets, address = 0;

    if (!find_tables(target, begin, &tables) ||
        !target_read(target, tables.hashes, head, sizeof(head)) || head[0] == 0)
        return 0;
    buckets = tables.hashes + sizeof(head) + (uint64_t)head[2] * sizeof(uint64_t);
    if (!target_read(target, buckets + hash % head[0] * sizeof(number), &number, sizeof(number)))
        return 0;
    for (unsigned i = 0; i < CHAIN_MAX && address == 0 && number >= head[1]; i++, number++) {
        const uint64_t at = buckets + ((uint64_t)head[0] + number - head[1]) * sizeof(link);
        if (!target_read(target, at, &link, sizeof(link)))
            return 0;
        if ((link ^ hash) >> 1 == 0)
            address = address_if(target, &tables, number, name);
        if (link & 1)
            break;
    }
    return address;
}
