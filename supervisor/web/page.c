/* SPDX-License-Identifier: MIT */
/* The files of the page, which are part of the program. */

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "supervisor/web/answer.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Paths are relative to the directory in which the compiler is started: the top of the tree. */
#ifndef TROUPE_PAGE_DIRECTORY
#define TROUPE_PAGE_DIRECTORY "supervisor/web/page"
#endif

#define FILE_TEXT(symbol, name)                                                                    \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global page_" #symbol ", page_" #symbol "_end\n"                                     \
            "page_" #symbol ":\n"                                                                  \
            ".incbin \"" TROUPE_PAGE_DIRECTORY "/" name "\"\n"                                     \
            "page_" #symbol "_end:\n"                                                              \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char page_##symbol[], page_##symbol##_end[]

FILE_TEXT(index, "index.html");
FILE_TEXT(style, "style.css");
FILE_TEXT(icon, "icon.svg");
FILE_TEXT(page, "page.js");
FILE_TEXT(client, "client.js");
FILE_TEXT(element, "element.js");
FILE_TEXT(format, "format.js");
FILE_TEXT(history, "history.js");
FILE_TEXT(chart, "chart.js");
FILE_TEXT(group, "group.js");
FILE_TEXT(worker, "worker.js");
FILE_TEXT(death, "death.js");
FILE_TEXT(letter, "letter.js");
FILE_TEXT(job, "job.js");
FILE_TEXT(event, "event.js");

struct page_file {
    const char *path, *type, *begin, *end;
};

#define SCRIPT(symbol)                                                                             \
    {                                                                                              \
        "/" #symbol ".js", "text/javascript; charset=utf-8", page_##symbol, page_##symbol##_end    \
    }

static const struct page_file files[] = {
    {"/", "text/html; charset=utf-8", page_index, page_index_end},
    {"/style.css", "text/css; charset=utf-8", page_style, page_style_end},
    {"/icon.svg", "image/svg+xml", page_icon, page_icon_end},
    SCRIPT(page),
    SCRIPT(client),
    SCRIPT(element),
    SCRIPT(format),
    SCRIPT(history),
    SCRIPT(chart),
    SCRIPT(group),
    SCRIPT(worker),
    SCRIPT(death),
    SCRIPT(letter),
    SCRIPT(job),
    SCRIPT(event),
};

const struct page_file *page_find(const char *path)
{
    for (size_t i = 0; i < ELEMENTS(files); i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    return NULL;
}

enum MHD_Result page_answer(struct MHD_Connection *connection, const struct page_file *file)
{
    const char *known = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
    size_t size = (size_t)(file->end - file->begin);
    char tag[24];
    struct MHD_Response *response;
    bool same;

    snprintf(tag, sizeof(tag), "\"%016" PRIx64 "\"", hash_bytes(file->begin, size));
    same = known && strstr(known, tag);
    response = MHD_create_response_from_buffer(same ? 0 : size, (void *)(uintptr_t)file->begin,
                                               MHD_RESPMEM_PERSISTENT);
    if (response) {
        MHD_add_response_header(response, "Content-Type", file->type);
        MHD_add_response_header(response, "Cache-Control", "no-cache");
        MHD_add_response_header(response, "ETag", tag);
    }
    return answer_send(connection, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
}
