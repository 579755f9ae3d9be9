/* SPDX-License-Identifier: MIT */

/* The cells of a group, one per key with Cells=by-key. */

#include "shared/base/log.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group-private.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/forward.h"
#include "supervisor/message/router.h"
#include <assert.h>
#include <string.h>

bool group_is_keyed(const struct group *group)
{
    return !group->cell;
}

struct cell *group_next_cell(const struct group *group, const struct cell *cell)
{
    const struct list *next = cell ? cell->link.next : group->cells.cells.next;

    return next == &group->cells.cells ? NULL : list_entry(next, struct cell, link);
}

struct cell *group_find_cell(const struct group *group, const char *key, size_t size)
{
    struct cell *cell = cell_table_find(&group->cells, key, size);

    if (cell)
        cell_catch_up(cell);
    return cell;
}

/* Whether a further cell would give the submitter more cells than remain for others. */
static bool exceeds_cells(const struct group *group, const struct cell_request *request)
{
    const struct submitter *own =
        request->bounded ? submitter_find(&group->submitters, request->submitter_uid) : NULL;

    return own && own->n_cells > 0 &&
           own->n_cells + 1 + group->cells.n_cells > group->config->cells_max;
}

static int group_make_cell(struct group *group, const struct cell_request *request,
                           struct cell **ret)
{
    char name[PROTOCOL_NAME_MAX + 1];

    if (group->closed || group->removal != GROUP_STAYS)
        return CELL_E_STOPPING;
    if (group->cells.n_cells >= group->config->cells_max || exceeds_cells(group, request))
        return CELL_E_TOO_MANY;
    memcpy(name, request->key, request->key_size);
    name[request->key_size] = '\0';
    return cell_new(ret, group, name);
}

/* Finds the cell, or makes one that is in no table yet. */
static int group_pick_cell(struct group *group, const struct cell_request *request,
                           struct cell **ret)
{
    if (group->cell) {
        *ret = group->cell;
        return 0;
    }
    if (request->key_size == 0)
        return CELL_E_NO_KEY;
    if (!protocol_name_valid(request->key, request->key_size))
        return CELL_E_BAD_KEY;
    *ret = group_find_cell(group, request->key, request->key_size);
    if (!*ret)
        return group_make_cell(group, request, ret);
    return cell_is_retiring(*ret) ? cell_call_back(*ret) : 0;
}

/* `request`: because of which the cell was made; NULL = it is restored. */
static void group_begin_cell(struct group *group, const struct cell_request *request,
                             struct cell *cell)
{
    if (request && request->bounded)
        cell_set_maker(cell, request->submitter_uid);
    pool_tell(&cell->pool, (struct event){.level = LOG_LEVEL_INFO, .type = "cell.created"},
              "is created");
    if (group->wanted)
        cell_start(cell);
    cell_watch_idle(cell);
}

static int group_submit_to_keyed(struct group *group, const struct cell_request *request,
                                 struct job **ret)
{
    struct cell *cell;
    bool made;
    int r = group->drain != GROUP_OPEN ? CELL_E_DRAINING : group_pick_cell(group, request, &cell);

    if (r == CELL_E_TOO_MANY)
        job_count(&group->counts, JOBS_REFUSED, 1);
    if (r != 0)
        return r;
    made = !list_linked(&cell->link);
    if (made)
        cell_table_add(&group->cells, cell);
    r = cell_submit(cell, request, ret);
    if (r != 0 && r != CELL_E_WAIT && made) {
        /* A refused job leaves no cell behind. */
        cell_table_remove(&group->cells, cell);
        cell_free(cell);
    } else if (made) {
        group_begin_cell(group, request, cell);
    } else if (r != 0) {
        cell_watch_idle(cell);
    }
    return r;
}

int group_submit_to_cell(struct group *group, const struct cell_request *request, struct job **ret)
{
    return group->cell ? cell_submit(group->cell, request, ret)
                       : group_submit_to_keyed(group, request, ret);
}

int group_submit_untied(struct group *group, const struct cell_request *request, struct job **ret)
{
    return !request->rare && group->config->unique == CONFIG_UNIQUE_NO
               ? group_submit_to_cell(group, request, ret)
               : group_submit_unique(group, request, ret);
}

int group_submit(struct group *group, const struct cell_request *request, struct job **ret)
{
    return request->rare && request->rare->ties ? group_submit_tied(group, request, ret)
                                                : group_submit_untied(group, request, ret);
}

int group_takes_jobs(const struct group *group)
{
    if (group->config->unread)
        return CELL_E_BAD_FILE;
    if (group->closed || group->removal != GROUP_STAYS)
        return CELL_E_STOPPING;
    return group->drain != GROUP_OPEN ? CELL_E_DRAINING : 0;
}

/* Finds or makes the cell, and adds it to the table unless it does not `admit` the request. */
static int take_cell(struct group *group, const struct cell_request *request,
                     int (*admit)(const struct cell *cell, const struct cell_request *request),
                     struct cell **ret)
{
    int r = group_pick_cell(group, request, ret);
    bool made;

    if (r != 0)
        return r;
    made = !list_linked(&(*ret)->link);
    r = admit ? admit(*ret, request) : 0;
    if (made && r != 0) {
        *ret = cell_free(*ret);
    } else if (made) {
        cell_table_add(&group->cells, *ret);
        group_begin_cell(group, request, *ret);
    } else {
        cell_watch_idle(*ret);
    }
    return r;
}

int group_take_cell(struct group *group, const struct cell_request *request, struct cell **ret)
{
    return take_cell(group, request, NULL, ret);
}

int group_take_room(struct group *group, const struct cell_request *request, struct cell **ret)
{
    return take_cell(group, request, cell_admits, ret);
}

int group_move_job(struct group *to, struct job *job)
{
    const struct cell_request request = {
        .key = job->key, .key_size = job->key_size, .size = job->payload.size};
    int r = group_takes_jobs(to);
    struct cell *cell;

    if (r == 0 && to->config->durable != !!job->record)
        r = CELL_E_DURABLE;
    if (r == 0 && job->record && durable_job_is_moving(job))
        r = CELL_E_MOVING;
    if (r == 0)
        r = group_take_room(to, &request, &cell);
    if (r == 0)
        cell_move_job(job, cell);
    return r;
}

struct cell *group_restore_cell(struct group *group, const char *key, size_t size)
{
    char name[PROTOCOL_NAME_MAX + 1] = "";
    struct cell *cell = group->cell ? group->cell : group_find_cell(group, key, size);

    if (cell)
        return !cell_is_retiring(cell) || cell_call_back(cell) == 0 ? cell : NULL;
    if (!protocol_name_valid(key, size))
        return NULL;
    memcpy(name, key, size);
    if (cell_new(&cell, group, name) < 0)
        return NULL;
    cell_table_add(&group->cells, cell);
    group_begin_cell(group, NULL, cell);
    return cell;
}

static void group_retire_cell(struct cell *cell)
{
    assert(cell->counts.n[JOBS_LIVE] == 0);
    cell_table_remove(&cell->group->cells, cell);
    pool_tell(&cell->pool, (struct event){.level = LOG_LEVEL_INFO, .type = "cell.retired"},
              "is retired: no jobs for CellIdleSec=");
    cell_free(cell);
}

/* Stops the roll in all cells: it would also fail there. */
static void group_roll_failed(struct cell *failed)
{
    size_t n = 0;

    group_commands_finish(failed->group); /* none begins to roll after that */
    group_each_cell (cell, failed->group)
        n += pool_halt_roll(&cell->pool);
    pool_tell(&failed->pool,
              (struct event){.level = LOG_LEVEL_ERROR,
                             .type = "group.roll-stopped",
                             .message_id = EVENT_ID_ROLL_STOPPED},
              "is not rolled on: a new worker did not come up; %zu continue as they are, reload "
              "to try again",
              n);
}

const struct cell_handler GROUP_CELL_HANDLER = {
    .down = group_note_down,
    .drained = group_review_removal,
    .drains = group_review_drain,
    .retired = group_retire_cell,
    .roll_failed = group_roll_failed,
    .sized = group_note_size,
};

/* ---- a group with Cells=by-key as an actor: it forwards messages to its cells ---- */

static bool is_stopped(const struct actor *actor)
{
    const struct group *group = actor->owner;

    return !group->wanted;
}

/* The submitter of all messages; no user has this number. */
#define MESSAGES_UID ((uid_t)-1)

/* Finds or makes the cell of the message's routing key. Where submitters have shares of the cells,
 * messages have one together. */
static int resolve(struct actor *actor, const struct topic *topic, struct actor **ret,
                   const char **ret_reason)
{
    struct group *group = actor->owner;
    const struct config_group *config = group->config;
    const struct refusal *refusal;
    struct cell *cell;
    int r = group_take_cell(group,
                            &(struct cell_request){
                                .key = topic->key,
                                .key_size = topic->key_size,
                                .submitter_uid = MESSAGES_UID,
                                .bounded = config->submit_user || config->submit_group,
                            },
                            &cell);

    if (r == 0) {
        *ret = cell->pool.actor;
        return 0;
    }
    refusal = refusal_of(r);
    *ret_reason = refusal ? refusal->text : strerror(-r);
    if (r == CELL_E_NO_KEY || r == CELL_E_BAD_KEY)
        return ROUTER_E_NO_KEY;
    if (r == CELL_E_TOO_MANY)
        return ROUTER_E_CELLS;
    return r < 0 ? r : ROUTER_E_GONE;
}

static const struct actor_class GROUP_ACTOR = {
    .kind = ACTOR_GROUP,
    .deliver = forward_deliver,
    .feed = forward_feed,
    .hand_on = forward_to_resolved,
    .resolve = resolve,
    .is_stopped = is_stopped,
};

int group_new_actor(struct group *group)
{
    const struct actor_options options = {
        .class = &GROUP_ACTOR, .owner = group, .name = group->name, .config = group->config};

    return group->config->type == CONFIG_ACTOR
               ? actor_new(&group->actor, group->context->messages, &options)
               : 0;
}

void group_set_message_log(struct group *group, uint8_t what)
{
    group->message_log = what;
    if (group->actor)
        group->actor->log = what;
    group_command(group, &(struct cell_command){.type = CELL_LOG_MESSAGES, .log = what});
}
