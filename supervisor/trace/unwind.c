/* SPDX-License-Identifier: MIT */
#include "supervisor/trace/unwind.h"
#include "shared/base/cleanup.h"
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_SIZE 1024

/* Text of bounded size that takes no more once it is full; see struct trace_output. */
struct trace_text {
    char *data;
    uint32_t *size; /* shared with the supervisor, which uses the text if this process is killed */
    size_t max;
};

struct unwinder {
    const struct target *target;
    struct trace_text *text;
    const struct sample_thread *thread;
    unsigned n_frames;
    char (*labels)[UNWIND_LABEL_MAX]; /* instead of text, for folder_add() */
    bool in_python; /* the frames of Python are written, in place of those of its interpreter */
    bool failed;    /* the text is full */
};

/* ---- text ---- */

/* Appends a line. Control characters in fields become '?'; tabs separate fields. */
__attribute__((format(printf, 2, 3))) static bool append(struct trace_text *text,
                                                         const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= sizeof(line) || text->max - *text->size <= (size_t)n)
        return false;
    for (int i = 0; i < n - 1; i++)
        if ((unsigned char)line[i] < ' ' && line[i] != '\t')
            line[i] = '?';
    memcpy(text->data + *text->size, line, (size_t)n);
    *text->size += (uint32_t)n;
    return true;
}

struct frame {
    const char *language, *module, *function, *file;
    uint64_t offset;
    int line;
};

/* Copies a field without tabs. */
static const char *field(const char *text, char *buffer, size_t size)
{
    size_t n = 0;

    for (; text && text[n] != '\0' && n + 1 < size; n++)
        buffer[n] = text[n] == '\t' ? '?' : text[n];
    buffer[n] = '\0';
    return buffer;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Names a function in one word: "parse_chunk", "main (job.py)", "[libfoo.so]". */
static void write_label(const struct frame *frame, char ret[UNWIND_LABEL_MAX])
{
    const char *module = frame->module ? frame->module : "unknown";
    const char *function = frame->function ? frame->function : "";

    if (strcmp(frame->language, "python") == 0)
        (void)snprintf(ret, UNWIND_LABEL_MAX, "%s (%s)", function, base_name(frame->file));
    else if (function[0] != '\0')
        (void)snprintf(ret, UNWIND_LABEL_MAX, "%s", function);
    else
        (void)snprintf(ret, UNWIND_LABEL_MAX, "[%s]", base_name(module));
    for (char *c = ret; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            *c = '?';
}

static void write_frame(struct unwinder *unwinder, const struct frame *frame)
{
    char module[SAMPLE_FILE_MAX], function[SAMPLE_FUNCTION_MAX * 2], file[SAMPLE_FILE_MAX * 2];

    if (unwinder->n_frames >= SAMPLE_FRAMES_MAX || unwinder->failed)
        return;
    if (unwinder->labels) {
        write_label(frame, unwinder->labels[unwinder->n_frames++]);
        return;
    }
    unwinder->failed = !append(unwinder->text, "F\t%s\t%s\t%s\t%llu\t%s\t%d\n", frame->language,
                               field(frame->module, module, sizeof(module)),
                               field(frame->function, function, sizeof(function)),
                               (unsigned long long)frame->offset,
                               field(frame->file, file, sizeof(file)), frame->line);
    unwinder->n_frames++;
}

static void write_python(struct unwinder *unwinder)
{
    const struct sample_thread *thread = unwinder->thread;

    unwinder->in_python = true;
    for (size_t i = 0; i < thread->n_python; i++)
        write_frame(unwinder, &(struct frame){
                                  .language = "python",
                                  .function = thread->python[i].function,
                                  .file = thread->python[i].file,
                                  .line = thread->python[i].line,
                              });
}

/* ---- modules ---- */

/* Directories: this process's own descriptors in /proc, and debugging information by build id. */
static int own_files = -1, debug_files = -1;

static void prepare(void)
{
    own_files = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    debug_files = open("/usr/lib/debug/.build-id", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the file for reading if it is a regular one: opening a device could have an effect. */
static int open_regular(int path_fd)
{
    struct stat status;
    char name[16];

    if (fstat(path_fd, &status) < 0 || !S_ISREG(status.st_mode))
        return -1;
    (void)snprintf(name, sizeof(name), "%d", path_fd);
    return openat(own_files, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* fails if it is leased */
}

/* Opens a file below the root of the process. The path of a mapping has no symbolic links; one that
 * is there now could lead out of the root. */
static int open_path(const struct target *target, const char *path)
{
    _cleanup_close_ int at = -1;

    while (*path != '\0') {
        const size_t size = strcspn(path, "/");
        char name[NAME_MAX + 1];
        int next;
        if (size > NAME_MAX)
            return -1;
        (void)snprintf(name, sizeof(name), "%.*s", (int)size, path);
        next = openat(at < 0 ? target->root : at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        close_fd(at);
        at = next;
        if (at < 0)
            return -1;
        path += size + (path[size] == '/');
    }
    return at < 0 ? -1 : open_regular(at);
}

/* Opens the file below the root of the process if it is the one that is mapped there. */
static int open_mapped(const struct target *target, const struct sample_head *head,
                       const char *path)
{
    uint8_t bytes[SAMPLE_HEAD_SIZE];
    const int fd = open_path(target, path + 1);

    if (fd >= 0 && pread(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) &&
        memcmp(bytes, head->bytes, sizeof(bytes)) == 0)
        return fd;
    return fd < 0 ? -1 : close_fd(fd);
}

static const struct sample_head *find_head(const struct sample *sample, uint64_t address)
{
    for (size_t i = 0; i < sample->n_heads; i++)
        if (sample->heads[i].address == address)
            return &sample->heads[i];
    return NULL;
}

/* Reports the file of a line of /proc/PID/maps. */
static void report_mapping(Dwfl *dwfl, const struct target *target, const char *line)
{
    const struct sample_head *head;
    struct mapping mapping;
    char path[4096];
    int fd;

    if (!mapping_parse(line, &mapping) || mapping.offset != 0 || mapping.path[0] != '/' ||
        mapping.path_size >= sizeof(path))
        return;
    memcpy(path, mapping.path, mapping.path_size);
    path[mapping.path_size] = '\0';
    head = find_head(target->sample, mapping.begin);
    fd = head ? open_mapped(target, head, path) : -1;
    if (fd >= 0 && !dwfl_report_elf(dwfl, base_name(path), path, fd, mapping.begin, false))
        (void)close(fd);
}

/* The library closes what it is given. */
static void report_vdso(Dwfl *dwfl, const struct sample *sample, int vdso)
{
    const int fd = vdso >= 0 && sample->vdso_size > 0 ? fcntl(vdso, F_DUPFD, 0) : -1;

    if (fd >= 0 && !dwfl_report_elf(dwfl, "[vdso]", "[vdso]", fd, sample->vdso_at, false))
        (void)close(fd);
}

static void report_modules(Dwfl *dwfl, const struct target *target, int vdso)
{
    const struct sample *sample = target->sample;
    const char *line = sample->maps;

    dwfl_report_begin(dwfl);
    while (*line != '\0') {
        const char *end = strchrnul(line, '\n');
        report_mapping(dwfl, target, line);
        line = *end == '\0' ? end : end + 1;
    }
    report_vdso(dwfl, sample, vdso);
    (void)dwfl_report_end(dwfl, NULL, NULL);
}

/* ---- frames ---- */

static bool is_interpreter(const char *module)
{
    return strncmp(module, "python3", 7) == 0 || strncmp(module, "libpython3", 10) == 0;
}

/* The evaluation loop, whose frames are those of Python. Debian's interpreter has no symbols of its
 * static functions. */
static bool is_evaluation(const char *module, const char *function)
{
    return is_interpreter(module) && function && strncmp(function, "_PyEval_", 8) == 0;
}

/* Writes the inlined functions at this address, innermost first, and the function that contains
 * them. `frame` has the line of the address. Returns false if nothing is known of them. */
static bool write_inlined(struct unwinder *unwinder, Dwfl_Module *module, Dwarf_Addr pc,
                          struct frame frame)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = dwfl_module_addrdie(module, pc, &bias);
    _cleanup_free_ Dwarf_Die *around = NULL, *scopes = NULL;
    Dwarf_Files *files = NULL;
    size_t n_files = 0;
    bool written = false;

    if (!unit || dwarf_getscopes(unit, pc - bias, &around) <= 0)
        return false;
    const int n = dwarf_getscopes_die(&around[0], &scopes);
    (void)dwarf_getsrcfiles(unit, &files, &n_files);
    for (int i = 0; i < n; i++) {
        const int tag = dwarf_tag(&scopes[i]);
        Dwarf_Attribute attribute;
        Dwarf_Word number;
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        if (tag == DW_TAG_subprogram && !written)
            return false; /* nothing is inlined: the symbol says more */
        frame.function = tag == DW_TAG_subprogram ? frame.function : dwarf_diename(&scopes[i]);
        if (tag == DW_TAG_subprogram && dwarf_diename(&scopes[i]))
            frame.function = dwarf_diename(&scopes[i]);
        write_frame(unwinder, &frame);
        written = true;
        if (tag == DW_TAG_subprogram)
            break;
        frame.line = 0;
        if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &number) == 0)
            frame.line = (int)number;
        if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &number) == 0 &&
            number < n_files)
            frame.file = dwarf_filesrc(files, number, NULL, NULL);
    }
    return written;
}

static void write_address(struct unwinder *unwinder, Dwfl_Module *module, Dwarf_Addr pc)
{
    struct frame frame = {.language = "c", .offset = pc};
    GElf_Off offset;
    GElf_Sym symbol;
    Dwarf_Addr base = 0;
    Dwfl_Line *line;

    if (!module) {
        write_frame(unwinder, &frame);
        return;
    }
    frame.module = dwfl_module_info(module, NULL, &base, NULL, NULL, NULL, NULL, NULL);
    frame.function = dwfl_module_addrinfo(module, pc, &offset, &symbol, NULL, NULL, NULL);
    frame.offset = frame.function ? offset : pc - base;
    if (unwinder->thread->n_python > 0 && is_evaluation(frame.module, frame.function) &&
        !unwinder->in_python)
        write_python(unwinder);
    if (unwinder->in_python && is_interpreter(frame.module))
        return;
    line = dwfl_module_getsrc(module, pc);
    if (line)
        frame.file = dwfl_lineinfo(line, NULL, &frame.line, NULL, NULL, NULL);
    if (!write_inlined(unwinder, module, pc, frame))
        write_frame(unwinder, &frame);
}

static int on_frame(Dwfl_Frame *state, void *userdata)
{
    struct unwinder *unwinder = userdata;
    Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(state));
    Dwarf_Addr pc;
    bool activation;

    if (!dwfl_frame_pc(state, &pc, &activation) || unwinder->n_frames >= SAMPLE_FRAMES_MAX ||
        unwinder->failed)
        return DWARF_CB_ABORT;
    if (!activation && pc > 0)
        pc--; /* into the call */
    write_address(unwinder, dwfl_addrmodule(dwfl, pc), pc);
    return DWARF_CB_OK;
}

/* ---- what the library asks for ---- */

static pid_t next_thread(Dwfl *dwfl, void *userdata, void **state)
{
    return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *userdata, void **state)
{
    struct unwinder *unwinder = userdata;

    *state = unwinder;
    return tid == unwinder->thread->tid;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *userdata)
{
    const struct unwinder *unwinder = userdata;
    const struct sample_thread *thread = unwinder->thread;
    const uint64_t offset = address - thread->stack_at;

    if (thread->stack_size < sizeof(*ret) || offset > thread->stack_size - sizeof(*ret))
        return false;
    memcpy(ret, unwinder->target->sample->stacks + thread->stack_offset + offset, sizeof(*ret));
    return true;
}

/* If the thread has jumped to an address without code, begins with the function that has jumped. */
static struct registers start_registers(struct unwinder *unwinder, Dwfl *dwfl)
{
    struct registers registers = unwinder->thread->registers;

    if (!unwinder->thread->crashed || dwfl_addrmodule(dwfl, registers.pc))
        return registers;
    write_address(unwinder, NULL, registers.pc);
#if defined(__x86_64__)
    Dwarf_Word back;
    if (read_memory(dwfl, registers.sp, &back, unwinder)) {
        registers.pc = back - 1; /* the library takes it for the address of the fault */
        registers.sp += 8;
        registers.value[7] = registers.sp;
    }
#elif defined(__aarch64__)
    registers.pc = registers.value[30] - 4;
#endif
    return registers;
}

static bool set_registers(Dwfl_Thread *thread, void *userdata)
{
    struct unwinder *unwinder = userdata;
    const struct registers registers = start_registers(unwinder, dwfl_thread_dwfl(thread));

    if (!dwfl_thread_state_registers(thread, 0, SAMPLE_REGISTERS, registers.value))
        return false;
#if defined(__x86_64__)
    return dwfl_thread_state_registers(thread, 16, 1, &registers.pc);
#else
    dwfl_thread_state_register_pc(thread, registers.pc);
    return true;
#endif
}

static const Dwfl_Thread_Callbacks THREAD_CALLBACKS = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

/* Finds debugging information by its build id only: a name in a hostile file could be any path. */
static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                          const char *file, const char *link, GElf_Word checksum, char **ret_name)
{
    const unsigned char *id;
    GElf_Addr address;
    const int n = dwfl_module_build_id(module, &id, &address);
    char path[160];
    size_t size = 0;

    (void)userdata, (void)name, (void)base, (void)file, (void)checksum, (void)ret_name;
    if (n < 3 || n > 64 || (link && strchr(link, '/'))) /* with '/': a supplement of dwz */
        return -1;
    for (int i = 0; i < n; i++)
        size +=
            (size_t)snprintf(path + size, sizeof(path) - size, i == 1 ? "/%02x" : "%02x", id[i]);
    (void)snprintf(path + size, sizeof(path) - size, ".debug");
    return openat(debug_files, path, O_RDONLY | O_CLOEXEC);
}

static const Dwfl_Callbacks CALLBACKS = {
    .find_debuginfo = find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

static void unwind_thread(Dwfl *dwfl, struct unwinder *unwinder)
{
    const struct sample_thread *thread = unwinder->thread;
    char name[sizeof(thread->name)];

    unwinder->n_frames = 0;
    unwinder->in_python = false;
    unwinder->failed = !append(unwinder->text, "T\t%d\t%s\t%s\n", (int)thread->tid,
                               field(thread->name, name, sizeof(name)),
                               thread->crashed   ? "crashed"
                               : thread->stopped ? ""
                                                 : "running");
    if (thread->stopped)
        (void)dwfl_getthread_frames(dwfl, thread->tid, on_frame, unwinder);
    if (!unwinder->in_python)
        write_python(unwinder);
}

/* Returns NULL if nothing can be unwound. The caller ends it with dwfl_end(). */
static Dwfl *open_modules(struct unwinder *unwinder, int vdso)
{
    const struct target *target = unwinder->target;
    Dwfl *dwfl = dwfl_begin(&CALLBACKS);

    if (!dwfl)
        return NULL;
    report_modules(dwfl, target, vdso);
    if (dwfl_attach_state(dwfl, NULL, target->pid, &THREAD_CALLBACKS, unwinder))
        return dwfl;
    dwfl_end(dwfl);
    return NULL;
}

static void unwind(const struct target *target, int vdso, struct trace_text *text)
{
    struct unwinder unwinder = {.target = target, .text = text};
    Dwfl *dwfl = open_modules(&unwinder, vdso);

    if (!dwfl)
        return;
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < target->sample->n_threads; i++) {
            unwinder.thread = &target->sample->threads[i];
            if (unwinder.thread->crashed == (pass == 0))
                unwind_thread(dwfl, &unwinder);
        }
}

/* Writes the vDSO to a file, since libdw reads only files. */
static int vdso_file(const struct sample *sample)
{
    const int fd = memfd_create("vdso", MFD_CLOEXEC);

    if (fd >= 0 && write(fd, sample->vdso, sample->vdso_size) < 0)
        return close_fd(fd);
    return fd;
}

int unwind_all(const struct target *targets, size_t n, struct trace_output *output)
{
    struct trace_text text = {.data = output->text, .size = &output->size, .max = TRACE_TEXT_MAX};
    int files[SAMPLE_TARGETS_MAX];
    int r;

    (void)setpriority(PRIO_PROCESS, 0, 10); /* nobody waits for it */
    for (size_t i = 0; i < n; i++)
        files[i] = vdso_file(targets[i].sample);
    prepare();
    r = confine();
    for (size_t i = 0; r == 0 && i < n; i++)
        if (targets[i].sample->complete)
            unwind(&targets[i], files[i], &text);
    return r;
}

/* ---- many samples ---- */

struct folder {
    struct unwinder unwinder;
    Dwfl *dwfl; /* NULL = nothing can be unwound */
    int vdso;
    uint64_t modules; /* a digest of where they are */
    char labels[SAMPLE_FRAMES_MAX][UNWIND_LABEL_MAX];
};

int folders_confine(void)
{
    (void)setpriority(PRIO_PROCESS, 0, 10); /* nobody waits for it */
    prepare();
    return confine();
}

/* FNV-1a of the addresses of the mapped files. */
static uint64_t digest(const struct sample *sample)
{
    uint64_t value = 14695981039346656037u;

    for (size_t i = 0; i < sample->n_heads; i++)
        value = (value ^ sample->heads[i].address) * 1099511628211u;
    return value;
}

struct folder *folder_new(const struct target *target)
{
    struct folder *folder = calloc(1, sizeof(*folder));

    if (folder) {
        folder->unwinder = (struct unwinder){.target = target, .labels = folder->labels};
        folder->vdso = vdso_file(target->sample);
    }
    return folder;
}

/* Writes the thread's line, outermost function first. */
static size_t fold_thread(struct folder *folder, char *line, size_t max)
{
    struct unwinder *unwinder = &folder->unwinder;
    const struct sample_thread *thread = unwinder->thread;
    char name[sizeof(thread->name)];
    size_t size;

    unwinder->n_frames = 0;
    unwinder->in_python = false;
    (void)dwfl_getthread_frames(folder->dwfl, thread->tid, on_frame, unwinder);
    if (!unwinder->in_python)
        write_python(unwinder);
    size = (size_t)snprintf(line, max, "%s\t%s", field(thread->name, name, sizeof(name)),
                            thread->waits ? "waits" : "runs");
    for (unsigned i = unwinder->n_frames; i-- > 0 && size < max;)
        size += (size_t)snprintf(line + size, max - size, "\t%s", folder->labels[i]);
    return unwinder->n_frames > 0 && size < max ? size : 0;
}

void folder_add(struct folder *folder, void (*add)(void *userdata, const char *line, size_t size),
                void *userdata)
{
    const struct sample *sample = folder->unwinder.target->sample;
    const uint64_t modules = digest(sample);
    char line[UNWIND_LINE_MAX];

    if (!folder->dwfl || modules != folder->modules) {
        dwfl_end(folder->dwfl);
        folder->dwfl = open_modules(&folder->unwinder, folder->vdso);
        folder->modules = modules;
    }
    for (size_t i = 0; folder->dwfl && i < sample->n_threads; i++) {
        size_t size;
        folder->unwinder.thread = &sample->threads[i];
        size = sample->threads[i].stopped ? fold_thread(folder, line, sizeof(line)) : 0;
        if (size > 0)
            add(userdata, line, size);
    }
}
