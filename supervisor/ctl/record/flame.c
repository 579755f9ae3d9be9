/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/record/flame.h"

#include "supervisor/ctl/text/field.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define WIDTH       1200.0
#define ROW         17
#define TOP         34
#define LETTER      6.6 /* approximate width of a character */
#define NARROWEST   0.3 /* narrower boxes are left out */
#define LETTERS_MAX 160

/* Function number `i` of a stack, from its thread on to what it waits in; NULL at the end. */
static const char *function_at(const json_t *stack, size_t i)
{
    const json_t *functions = json_object_get(stack, "functions");
    const size_t n = json_array_size(functions);

    if (i == 0)
        return field_text(stack, "thread");
    if (i <= n)
        return json_string_value(json_array_get(functions, i - 1));
    return i == n + 1 && field_true(stack, "waits") ? FLAME_WAITS : NULL;
}

void flame_write_folded(FILE *file, const json_t *profile)
{
    const json_t *stacks = json_object_get(profile, "stacks");

    for (size_t i = 0; i < json_array_size(stacks); i++) {
        const json_t *stack = json_array_get(stacks, i);
        const char *function;

        for (size_t k = 0; (function = function_at(stack, k)); k++) {
            if (k > 0)
                fputc(';', file);
            for (; *function != '\0'; function++)
                fputc(*function == ';' ? ':' : *function, file);
        }
        fprintf(file, " %" PRIu64 "\n", field_count(stack, "count"));
    }
}

/* ---- the tree: a box is {"count": samples, "functions": {name: box}} ---- */

static json_t *box_below(json_t *box, const char *name)
{
    json_t *inner = json_object_get(box, "functions"), *below = json_object_get(inner, name);

    if (!below) {
        below = json_pack("{s:i, s:{}}", "count", 0, "functions");
        if (json_object_set_new(inner, name, below) < 0)
            return NULL;
    }
    return below;
}

static int add_samples(json_t *box, uint64_t n)
{
    const uint64_t sum = field_count(box, "count") + n;

    return json_object_set_new(box, "count", json_integer((json_int_t)sum));
}

/* Returns how many rows there are, or -ENOMEM. */
static int build_tree(json_t *root, const json_t *stacks)
{
    int depth = 1;

    for (size_t i = 0; i < json_array_size(stacks); i++) {
        const json_t *stack = json_array_get(stacks, i);
        const uint64_t n = field_count(stack, "count");
        json_t *box = root;
        const char *function;
        int row = 1;

        for (size_t k = 0; box; k++, row++) {
            if (add_samples(box, n) < 0)
                return -ENOMEM;
            function = function_at(stack, k);
            if (!function)
                break;
            box = box_below(box, function);
        }
        if (!box)
            return -ENOMEM;
        depth = row > depth ? row : depth;
    }
    return depth;
}

/* ---- the picture ---- */

struct picture {
    FILE *file;
    double scale; /* of one sample */
    uint64_t total;
    int depth;
};

/* Writes at most `letters` characters of UTF-8. */
static void write_text(FILE *file, const char *text, size_t letters)
{
    for (; *text != '\0'; text++) {
        if ((*text & 0xc0) != 0x80 && letters-- == 0)
            break;
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else
            fputc(*text, file);
    }
}

/* Warm colours that stay the same for a name; waiting is grey. */
static void write_colour(FILE *file, const char *name)
{
    unsigned hash = 2166136261u;

    if (strcmp(name, FLAME_WAITS) == 0) {
        fputs("#b8c4d0", file);
        return;
    }
    for (const char *c = name; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    fprintf(file, "rgb(%u,%u,%u)", 215 + hash % 40, 110 + (hash >> 8) % 110, (hash >> 16) % 60);
}

static void write_box(const struct picture *picture, const char *name, const json_t *box, double x,
                      int row)
{
    const double width = (double)field_count(box, "count") * picture->scale;
    const int y = TOP + (picture->depth - 1 - row) * ROW;
    const char *key;
    json_t *inner;
    FILE *file = picture->file;

    if (width < NARROWEST)
        return;
    fputs("<g><title>", file);
    write_text(file, name, LETTERS_MAX);
    fprintf(
        file,
        " (%" PRIu64
        " samples, %.1f%%)</title><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"",
        field_count(box, "count"),
        100.0 * (double)field_count(box, "count") / (double)picture->total, x, y, width, ROW - 1);
    write_colour(file, name);
    fputs("\"/>", file);
    if (width > 4 * LETTER) {
        fprintf(file, "<text x=\"%.1f\" y=\"%d\">", x + 3, y + ROW - 5);
        write_text(file, name, (size_t)((width - 6) / LETTER));
        fputs("</text>", file);
    }
    fputs("</g>\n", file);
    json_object_foreach(json_object_get(box, "functions"), key, inner)
    {
        write_box(picture, key, inner, x, row + 1);
        x += (double)field_count(inner, "count") * picture->scale;
    }
}

int flame_write_svg(FILE *file, const json_t *profile)
{
    json_auto_t *root = json_pack("{s:i, s:{}}", "count", 0, "functions");
    struct picture picture = {.file = file};

    picture.depth = root ? build_tree(root, json_object_get(profile, "stacks")) : -ENOMEM;
    if (picture.depth < 0)
        return picture.depth;
    picture.total = field_count(root, "count");
    picture.scale = picture.total > 0 ? WIDTH / (double)picture.total : 0;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" "
            "font-family=\"monospace\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"3\" y=\"16\" "
            "font-size=\"13\">",
            WIDTH, TOP + picture.depth * ROW + 4);
    write_text(file, field_text(profile, "worker"), LETTERS_MAX);
    fprintf(file, ": %" PRIu64 " samples</text>\n", field_count(profile, "samples"));
    write_box(&picture, "all", root, 0, 0);
    fputs("</svg>\n", file);
    return 0;
}
