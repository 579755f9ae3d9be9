/* SPDX-License-Identifier: MIT */

#include "supervisor/control/interfaces.h"

#include "supervisor/control/control-context.h"
#include <string.h>

/* ---- org.varlink.service ---- */

static void get_info(struct request *request)
{
    struct reply *reply = request_begin(request);

    reply_string(reply, "vendor", "The Troupe authors");
    reply_string(reply, "product", "Troupe");
    reply_string(reply, "version", TROUPE_VERSION);
    reply_string(reply, "url", "man:troupe-varlink(7)");
    reply_array(reply, "interfaces");
    for (struct request_interface *const *i = request->context->interfaces; *i; i++)
        reply_string(reply, NULL, (*i)->name);
    reply_end_array(reply);
    request_end(request);
}

static void get_description(struct request *request)
{
    const char *name = request_string(request, "interface");

    for (struct request_interface *const *i = request->context->interfaces; *i; i++) {
        if (strcmp((*i)->name, name) != 0)
            continue;
        reply_string(request_begin(request), "description", (*i)->text);
        request_end(request);
        return;
    }
    request_fail_string(request, "org.varlink.service.InterfaceNotFound", "interface", name);
}

static const struct request_method service_methods[] = {
    {"GetInfo", get_info, .changes = false, .always = true},
    {"GetInterfaceDescription", get_description, .changes = false, .always = true},
    {0},
};

/* ---- all ---- */

/* Paths are relative to the directory in which the compiler is started: the top of the tree. */
#ifndef TROUPE_VARLINK_DIRECTORY
#define TROUPE_VARLINK_DIRECTORY "supervisor/control"
#endif

/* A text file as a NUL-terminated array of characters, and the interface that it describes. */
#define INTERFACE(symbol, name, ...)                                                               \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol "_text\n" #symbol "_text:\n"                                        \
            ".incbin \"" TROUPE_VARLINK_DIRECTORY "/" name ".varlink\"\n"                          \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char symbol##_text[];                                                             \
    static struct request_interface symbol = {                                                     \
        name, symbol##_text, (const struct request_method *const[]){__VA_ARGS__, NULL}, {0}}

INTERFACE(service, "org.varlink.service", service_methods);
INTERFACE(supervisor, "io.troupe.Supervisor", control_supervisor_methods, control_life_methods,
          control_limit_methods, control_status_methods, control_watch_methods, control_log_methods,
          control_stack_methods, control_place_methods, control_metrics_methods);
INTERFACE(jobs, "io.troupe.Jobs", control_job_methods, control_list_jobs_methods,
          control_history_methods, control_stream_methods, control_change_methods,
          control_attach_methods);
INTERFACE(actors, "io.troupe.Actors", control_actor_methods, control_tell_methods,
          control_dead_letter_methods);
INTERFACE(schedules, "io.troupe.Schedules", control_schedule_methods);

struct request_interface *const control_interfaces[] = {
    &service, &supervisor, &jobs, &actors, &schedules, NULL,
};
