/* SPDX-License-Identifier: MIT */

/*
 * An example of actors: accounts and a bank, which moves money between them so that no crash of any
 * process at any moment creates or loses a cent. One program in three roles:
 *
 *     bank serve-account DIRECTORY     the worker of the group "account", a cell for each
 *     bank serve-bank DIRECTORY        the worker of the group "bank"
 *     bank VERB …                      a client of them: see teller.h
 *
 * DIRECTORY holds the logs, SQLite databases.
 */

#include "worker/examples/bank/account.h"
#include "worker/examples/bank/bank.h"
#include "worker/examples/bank/teller.h"
#include <string.h>

int main(int argc, char *argv[])
{
    if (argc == 3 && strcmp(argv[1], "serve-account") == 0)
        return account_main(argv[2]);
    if (argc == 3 && strcmp(argv[1], "serve-bank") == 0)
        return bank_main(argv[2]);
    return teller_main(argc - 1, argv + 1);
}
