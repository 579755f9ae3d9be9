/* SPDX-License-Identifier: MIT */

#include "supervisor/control/interfaces.h"

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
    static const struct request_interface symbol = {                                               \
        name, symbol##_text, (const struct request_method *const[]){__VA_ARGS__, NULL}}

INTERFACE(service, "org.varlink.service", control_service_methods);
INTERFACE(supervisor, "io.troupe.Supervisor", control_supervisor_methods, control_life_methods,
          control_status_methods, control_watch_methods, control_log_methods,
          control_backup_methods, control_metrics_methods, control_explain_methods);
INTERFACE(jobs, "io.troupe.Jobs", control_job_methods, control_list_jobs_methods,
          control_cancel_methods, control_attach_methods);
INTERFACE(actors, "io.troupe.Actors", control_actor_methods, control_tell_methods,
          control_timer_methods, control_exchange_methods, control_dead_letter_methods);

const struct request_interface *const control_interfaces[] = {
    &service, &supervisor, &jobs, &actors, NULL,
};
