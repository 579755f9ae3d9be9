/* SPDX-License-Identifier: MIT */

#include "supervisor/control/interfaces.h"

/* Paths are relative to the directory in which the compiler is started: the top of the tree. */
#ifndef TROUPE_VARLINK_DIRECTORY
#define TROUPE_VARLINK_DIRECTORY "supervisor/control"
#endif

/* A text file as a NUL-terminated array of characters. */
#define EMBED(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol "\n"                                                                \
            ".type " #symbol ", @object\n" #symbol ":\n"                                           \
            ".incbin \"" TROUPE_VARLINK_DIRECTORY "/" file "\"\n"                                  \
            ".byte 0\n"                                                                            \
            ".size " #symbol ", . - " #symbol "\n"                                                 \
            ".popsection\n")

EMBED(interfaces_service_text, "org.varlink.service.varlink");
EMBED(interfaces_supervisor_text, "io.troupe.Supervisor.varlink");
EMBED(interfaces_jobs_text, "io.troupe.Jobs.varlink");
EMBED(interfaces_actors_text, "io.troupe.Actors.varlink");

static const struct request_interface service = {"org.varlink.service", interfaces_service_text,
                                                 service_methods};
static const struct request_interface supervisor = {
    "io.troupe.Supervisor", interfaces_supervisor_text, control_supervisor_methods};
static const struct request_interface jobs = {"io.troupe.Jobs", interfaces_jobs_text,
                                              control_jobs_methods};
static const struct request_interface actors = {"io.troupe.Actors", interfaces_actors_text,
                                                control_actors_methods};

const struct request_interface *const control_interfaces[] = {
    &service, &supervisor, &jobs, &actors, NULL,
};
