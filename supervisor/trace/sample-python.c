/* SPDX-License-Identifier: MIT */
/*
 * Reads the frames of Python from the structures of its interpreter. The layout of 3.11 is fixed;
 * 3.13 has a table of offsets at the beginning of _PyRuntime. Everything that is read is hostile:
 * each list is bounded, and a pointer that cannot be read ends it.
 */

#include "shared/base/cleanup.h"
#include "supervisor/trace/sample.h"
#include <string.h>

#define INTERPRETERS_MAX 16
#define THREADS_MAX      1024
#define STEPS_MAX        256 /* frames, including those without a function */
#define LINE_TABLE_MAX   65536
#define TEXT_MAX         512

/* Offsets in the structures of one version. */
struct layout {
    uint64_t interpreters, next_interpreter, threads;
    uint64_t next_thread, native_id, current_frame;
    uint64_t previous, code, instruction, owner;
    uint64_t file, name, line_table, first_line, instructions;
    uint64_t ascii, compact; /* sizes of the headers of strings */
    bool by_cframe;          /* the current frame is behind one more pointer */
};

/* The owner of a frame that belongs to C, and has no code (3.12 and later). */
#define OWNED_BY_C   3
#define BYTES_DATA   32
#define OBJECT_SIZE  16 /* where the number of elements is */
#define STRING_STATE 32

static const struct layout LAYOUT_3_11 = {
    .interpreters = 40,
    .next_interpreter = 0,
    .threads = 16,
    .next_thread = 8,
    .native_id = 160,
    .current_frame = 56,
    .by_cframe = true,
    .previous = 48,
    .code = 32,
    .instruction = 56,
    .owner = 69,
    .file = 112,
    .name = 128,
    .line_table = 136,
    .first_line = 72,
    .instructions = 184,
    .ascii = 48,
    .compact = 72,
};

/* Positions in _Py_DebugOffsets of 3.13, in words of 8 bytes; those of 3.14 differ. */
enum {
    AT_INTERPRETERS = 5,
    AT_NEXT_INTERPRETER = 8,
    AT_THREADS = 9,
    AT_NEXT_THREAD = 21,
    AT_CURRENT_FRAME = 23,
    AT_NATIVE_ID = 25,
    AT_PREVIOUS = 29,
    AT_CODE = 30,
    AT_INSTRUCTION = 31,
    AT_OWNER = 33,
    AT_FILE = 35,
    AT_QUALIFIED_NAME = 37,
    AT_LINE_TABLE = 38,
    AT_FIRST_LINE = 39,
    AT_INSTRUCTIONS = 43,
    N_WORDS = 44,
};

static bool layout_of(const struct target *target, const struct hints *hints, struct layout *ret)
{
    uint64_t words[N_WORDS];

    *ret = LAYOUT_3_11;
    if (hints->python_version >> 16 == 0x030b)
        return true;
    if (hints->python_version >> 16 != 0x030d ||
        !target_read(target, hints->python, words, sizeof(words)) ||
        memcmp(words, "xdebugpy", 8) != 0)
        return false;
    *ret = (struct layout){
        .interpreters = words[AT_INTERPRETERS],
        .next_interpreter = words[AT_NEXT_INTERPRETER],
        .threads = words[AT_THREADS],
        .next_thread = words[AT_NEXT_THREAD],
        .native_id = words[AT_NATIVE_ID],
        .current_frame = words[AT_CURRENT_FRAME],
        .previous = words[AT_PREVIOUS],
        .code = words[AT_CODE],
        .instruction = words[AT_INSTRUCTION],
        .owner = words[AT_OWNER],
        .file = words[AT_FILE],
        .name = words[AT_QUALIFIED_NAME],
        .line_table = words[AT_LINE_TABLE],
        .first_line = words[AT_FIRST_LINE],
        .instructions = words[AT_INSTRUCTIONS],
        .ascii = 40,
        .compact = 56,
    };
    return true;
}

/* Returns the word at this address, or 0. */
static uint64_t word_at(const struct target *target, uint64_t address)
{
    uint64_t word;

    return target_read(target, address, &word, sizeof(word)) ? word : 0;
}

/* Characters that are not printable ASCII become '?'. If the text is too long, its end is kept. */
static void copy_string(const struct target *target, const struct layout *layout, uint64_t object,
                        char *ret, size_t size)
{
    uint8_t bytes[TEXT_MAX];
    uint32_t state = 0;
    uint64_t length = word_at(target, object + OBJECT_SIZE), skipped;
    unsigned kind;

    ret[0] = '\0';
    if (!target_read(target, object + STRING_STATE, &state, sizeof(state)))
        return;
    kind = (state >> 2) & 7; /* bytes of a character */
    if (kind == 0 || kind > 4 || length > INT32_MAX || !(state & (1u << 5)))
        return;
    skipped = length < size ? 0 : length - (size - 1);
    length -= skipped;
    object += (state & (1u << 6) ? layout->ascii : layout->compact) + skipped * kind;
    if (length * kind > sizeof(bytes) || !target_read(target, object, bytes, length * kind))
        return;
    for (uint64_t i = 0; i < length; i++) {
        const uint8_t c = bytes[i * kind];
        const bool wide =
            kind > 1 && (bytes[i * kind + 1] != 0 || (kind > 2 && bytes[i * kind + 2]));
        ret[i] = wide || c < ' ' || c > '~' ? '?' : (char)c;
    }
    ret[length] = '\0';
}

/* ---- lines ---- */

struct line_reader {
    const uint8_t *at, *end;
};

static unsigned read_varint(struct line_reader *reader)
{
    unsigned value = 0, shift = 0;

    while (reader->at < reader->end && shift < 30) {
        const uint8_t byte = *reader->at++;
        value |= (unsigned)(byte & 63) << shift;
        shift += 6;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int read_signed(struct line_reader *reader)
{
    const unsigned value = read_varint(reader);

    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* Reads an entry but for its first byte. Returns the change of the line. */
static int read_entry(struct line_reader *reader, unsigned kind)
{
    int delta = 0;

    if (kind < 10) {
        reader->at++;
    } else if (kind < 13) {
        delta = (int)kind - 10;
        reader->at += 2;
    } else if (kind < 15) {
        delta = read_signed(reader);
        for (unsigned i = 0; kind == 14 && i < 3; i++)
            (void)read_varint(reader);
    }
    return delta;
}

/* Returns the line of the instruction at this offset, or 0. */
static int find_line(const uint8_t *table, size_t size, int line, uint64_t offset)
{
    struct line_reader reader = {table, table + size};
    uint64_t end = 0;

    while (reader.at < reader.end) {
        const uint8_t first = *reader.at++;
        const unsigned kind = (first >> 3) & 15;
        line += read_entry(&reader, kind);
        end += 2 * (uint64_t)((first & 7) + 1);
        if (offset < end)
            return kind == 15 ? 0 : line;
    }
    return 0;
}

static int line_of(const struct target *target, const struct layout *layout, uint64_t frame,
                   uint64_t code)
{
    static uint8_t table[LINE_TABLE_MAX];
    const uint64_t instruction = word_at(target, frame + layout->instruction);
    const uint64_t begin = code + layout->instructions;
    const uint64_t object = word_at(target, code + layout->line_table);
    const uint64_t size = word_at(target, object + OBJECT_SIZE);
    int first;

    if (!target_read(target, code + layout->first_line, &first, sizeof(first)))
        return 0;
    if (instruction < begin) /* the first one was not executed yet */
        return first;
    if (size > sizeof(table) || !target_read(target, object + BYTES_DATA, table, size))
        return 0;
    return find_line(table, size, first, instruction - begin);
}

/* ---- frames ---- */

static void take_frame(const struct target *target, const struct layout *layout, uint64_t frame,
                       struct sample_thread *thread)
{
    const uint64_t code = word_at(target, frame + layout->code);
    struct python_frame *ret = &thread->python[thread->n_python];
    uint8_t owner = OWNED_BY_C;

    if (!target_read(target, frame + layout->owner, &owner, 1) || owner >= OWNED_BY_C)
        return;
    copy_string(target, layout, word_at(target, code + layout->name), ret->function,
                sizeof(ret->function));
    if (ret->function[0] == '\0')
        return;
    copy_string(target, layout, word_at(target, code + layout->file), ret->file, sizeof(ret->file));
    ret->line = line_of(target, layout, frame, code);
    thread->n_python++;
}

static void take_thread(const struct target *target, const struct layout *layout, uint64_t state)
{
    const pid_t id = (pid_t)word_at(target, state + layout->native_id);
    struct sample *sample = target->sample;
    uint64_t frame = word_at(target, state + layout->current_frame);

    if (layout->by_cframe)
        frame = word_at(target, frame + 8);
    for (size_t i = 0; i < sample->n_threads; i++) {
        struct sample_thread *thread = &sample->threads[i];
        if (thread->inner_tid != id || thread->n_python > 0)
            continue;
        for (unsigned n = 0; n < STEPS_MAX && frame != 0; n++) {
            if (thread->n_python == SAMPLE_FRAMES_MAX)
                break;
            take_frame(target, layout, frame, thread);
            frame = word_at(target, frame + layout->previous);
        }
    }
}

static bool is_interpreter(const struct mapping *mapping)
{
    const char *name = memrchr(mapping->path, '/', mapping->path_size);

    return name && mapping->offset == 0 &&
           (strncmp(name, "/python3", 8) == 0 || strncmp(name, "/libpython3", 11) == 0);
}

/* Finds the interpreter of a process that has not said where it is, such as a command. Returns
 * false if there is none. */
static bool find_interpreter(const struct target *target, struct hints *ret)
{
    const char *line = target->sample->maps;
    struct mapping mapping;

    *ret = (struct hints){0};
    while (*line != '\0' && ret->python == 0 && mapping_parse(line, &mapping)) {
        if (is_interpreter(&mapping)) {
            const uint64_t version = sample_symbol(target, mapping.begin, "Py_Version");
            ret->python_version = version != 0 ? (uint32_t)word_at(target, version) : 0;
            ret->python = sample_symbol(target, mapping.begin, "_PyRuntime");
        }
        line = strchrnul(line, '\n');
        line += *line != '\0';
    }
    return ret->python != 0;
}

void sample_take_python(const struct target *target, const struct hints *told)
{
    struct hints found;
    const struct hints *hints = told->python != 0                  ? told
                                : find_interpreter(target, &found) ? &found
                                                                   : NULL;
    struct layout layout;
    uint64_t interpreter, state;
    unsigned n_threads = 0;

    if (!hints || !layout_of(target, hints, &layout))
        return;
    interpreter = word_at(target, hints->python + layout.interpreters);
    for (unsigned i = 0; i < INTERPRETERS_MAX && interpreter != 0; i++) {
        state = word_at(target, interpreter + layout.threads);
        for (; state != 0 && n_threads < THREADS_MAX; n_threads++) {
            take_thread(target, &layout, state);
            state = word_at(target, state + layout.next_thread);
        }
        interpreter = word_at(target, interpreter + layout.next_interpreter);
    }
}
