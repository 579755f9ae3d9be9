/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages between the supervisor and a template (Template= of troupe.group(5)), on a
 * SOCK_SEQPACKET socket that the template inherits as the descriptor TROUPE_TEMPLATE. Behind that
 * number are the names of variables that its workers do not have, each with a blank before it.
 *
 *   template → supervisor, the first byte of each message:
 *     'r'          ready to fork
 *     'u' REASON   cannot be forked, ever; a text without NUL
 *     'f' REASON   this request has failed
 *   supervisor → template, a request for a worker:
 *     the variables for its environment, NAME=VALUE, each with its NUL
 *     descriptors: the gate, standard output and error, then those that become TEMPLATE_FIRST_FD
 *     and the numbers that follow, to which the variables refer
 *
 * The gate is a SOCK_SEQPACKET socket. The new process writes one byte, by which the kernel tells
 * its pid, and waits for one byte; at the end of file it exits. Then the keeper did not take it.
 *
 * Both sides may be of different versions: a new kind of message needs a variable of its own, by
 * which each side learns that the other one knows it.
 */

#define TEMPLATE_VARIABLE "TROUPE_TEMPLATE"
/* The template has its socket under all these numbers, so that no file that it opens gets one. */
#define TEMPLATE_FIRST_FD    3
#define TEMPLATE_FDS_MAX     6
#define TEMPLATE_PASSED_MAX  (TEMPLATE_FDS_MAX + 2)
#define TEMPLATE_REQUEST_MAX 4096
#define TEMPLATE_REASON_MAX  160

enum template_message {
    TEMPLATE_READY = 'r',
    TEMPLATE_UNSAFE = 'u',
    TEMPLATE_FAILED = 'f',
};
