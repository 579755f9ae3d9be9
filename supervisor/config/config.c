/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config.h"

#include "supervisor/config/config-exchange.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/keys/keys.h"
#include <stdlib.h>

struct config *config_free(struct config *config)
{
    if (!config)
        return NULL;
    for (size_t i = 0; i < config->n_groups; i++)
        config_group_free(config->groups[i]);
    free(config->groups);
    for (size_t i = 0; i < config->n_exchanges; i++)
        config_exchange_free(config->exchanges[i]);
    free(config->exchanges);
    config_schema_clear(&CONFIG_DAEMON_SCHEMA, &config->daemon);
    config_draft_free(config->daemon_draft);
    free(config);
    return NULL;
}
