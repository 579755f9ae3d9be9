/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An example: a provisioning engine. An order is a job: who the customer is, which product he has
 * ordered, and its properties. Its outcome is success (properties, messages) or failure (code,
 * properties, messages). The key of the job picks the cell, so customers, products, or both, have
 * queues and workers of their own.
 *
 *     provision submit [--by=customer|product|both] GROUP    sends the orders of standard input
 *     provision work [OPTION…]                               a worker: carries out orders
 *     provision provider [OPTION…]                           an actor that workers ask for help
 *
 * An order:    {"customer": "acme", "product": "mailbox", "properties": {"name": "info"}}
 * An outcome:  {"code": 0, "properties": {…}, "messages": [{"at": "2026-…Z", "text": "…"}, …]}
 *
 * Properties with a meaning of their own: "providers", the addresses of actors of which one must
 * set its part up, the first one that answers; "approval", a FIFO from which a line is awaited
 * ("no REASON" refuses).
 */

/* The kinds of failures, in an outcome and as the code of the job. */
enum provision_code {
    PROVISION_DONE = 0,
    PROVISION_MALFORMED = 1,       /* the order is not understood */
    PROVISION_UNKNOWN_PRODUCT = 2, /* it is not in the catalogue */
    PROVISION_INCOMPLETE = 3,      /* a property is missing */
    PROVISION_REFUSED = 4,         /* it was not approved */
    PROVISION_PROVIDER = 5,        /* the provider says no */
    PROVISION_COMMUNICATIONS = 6,  /* the provider cannot be reached, or died over it */
};

int provision_submit(int argc, char *argv[]);
int provision_work(int argc, char *argv[]);
int provision_provider(int argc, char *argv[]);
