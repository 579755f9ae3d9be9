/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An example: a provisioning engine. An order is a job: the customer, the product, and its
 * properties. Its outcome is success (properties, messages) or failure (code, properties,
 * messages). The key of the job selects the cell, so customers, products, or both, have queues and
 * workers of their own.
 *
 *     provision submit [--by=customer|product|both] GROUP    sends the orders of standard input
 *     provision work [OPTION…]                               a worker: carries out orders
 *     provision provider [OPTION…]                           an actor that helps workers
 *
 * An order:    {"customer": "acme", "product": "mailbox", "properties": {"name": "info"}}
 * An outcome:  {"code": 0, "properties": {…}, "messages": [{"at": "2026-…Z", "text": "…"}, …]}
 *
 * Properties with a special meaning: "providers", the addresses of actors, of which the first that
 * answers sets up its part; "approval", a FIFO from which a line is awaited ("no REASON" refuses).
 */

/* The kinds of failures, in an outcome and as the code of the job. */
enum provision_code {
    PROVISION_DONE = 0,
    PROVISION_MALFORMED = 1,       /* the order is malformed */
    PROVISION_UNKNOWN_PRODUCT = 2, /* it is not in the catalogue */
    PROVISION_INCOMPLETE = 3,      /* a property is missing */
    PROVISION_REFUSED = 4,         /* it was not approved */
    PROVISION_PROVIDER = 5,        /* the provider says no */
    PROVISION_COMMUNICATIONS = 6,  /* the provider cannot be reached, or died */
};

int provision_submit(int argc, char *argv[]);
int provision_work(int argc, char *argv[]);
int provision_provider(int argc, char *argv[]);
