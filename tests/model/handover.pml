/* SPDX-License-Identifier: MIT */
/*
 * The hand-over of workers from one supervisor to the next, by the keeper. The supervisor starts
 * worker after worker in one slot and may be killed between any two steps, as when it leaves for an
 * upgrade; a worker ends at any time, or only when it is killed. Checked:
 *
 *   - Every worker that was held, or was about to be, is reported dead, with its exit status.
 *   - None is reported twice, unless the supervisor dies between the report and its RELEASE.
 *   - Every living worker has a supervisor that knows it, or is killed. None is left at the end.
 *
 * What stands for what:
 *
 *   requests, replies     the channel of keeper/message.h; each side reads in order
 *   keeper                run_turn() in keeper/keeper.c: keeper_hand_over(), keeper_reap_one(),
 *                         keeper_take_request(), keeper_supervisor_ended()
 *   supervisor            held_collect(), held_take(), process_adopt(), process_hold(),
 *                         process_on_reaped(), process_release()
 *   life[]                the kernel: a worker that has ended is a zombie until it is reaped
 *
 * The supervisor never blocks: it sends only while there is room. One part left out at a time
 * (-DBROKEN_…) must break it; tests/model/run sees to that.
 */

#ifndef LIVES
#define LIVES 2
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#define NOBODY LIVES
#define ROOM   3

mtype = {SPAWN, HOLD, RELEASE, SPAWNED, EXITED, HELD, HELD_END};
mtype = {UNBORN, RUNS, ZOMBIE, REAPED};
mtype = {NOT, KNOWN, UNKNOWN}; /* whether the exit status is there */

chan requests = [ROOM] of {mtype, byte};
chan replies = [ROOM] of {mtype, byte, mtype};

mtype life[LIVES] = UNBORN;
bool stubborn[LIVES]; /* ends only when it is killed */

/* The keeper's tables. */
bool child[LIVES];
bool held[LIVES];
mtype ended[LIVES] = NOT;  /* of what is held */
mtype recent[LIVES] = NOT; /* exit status of a child that was not held when it was reaped */

/* The supervisor's process, as the kernel and the keeper see it. */
bool starts; /* the keeper starts it */
bool runs;   /* and has not noticed its end yet */
bool killed; /* SIGKILL was sent */
bool dead;   /* and it has ended */
bool over;   /* nothing is left to do */
byte crashes;

/* What the test knows. */
bool hold_sent[LIVES], reported[LIVES], may_double[LIVES];
byte born; /* workers that were requested: their ids are never used again */

/* ---- workers ---- */

active proctype workers() {
end:
    do
    :: atomic { life[0] == RUNS && !stubborn[0] -> life[0] = ZOMBIE }
#if LIVES > 1
    :: atomic { life[1] == RUNS && !stubborn[1] -> life[1] = ZOMBIE }
#endif
#if LIVES > 2
    :: atomic { life[2] == RUNS && !stubborn[2] -> life[2] = ZOMBIE }
#endif
    od
}

/* ---- the keeper ---- */

inline take_request() {
    if
    :: requests ? SPAWN(id) ->
        atomic {
            life[id] = RUNS;
            child[id] = true;
            if
            :: stubborn[id] = true
            :: stubborn[id] = false
            fi
        };
        reply_kind = SPAWNED; reply_id = id; reply_waits = true
    :: requests ? HOLD(id) ->
        d_step {
            held[id] = true;
            if
            :: !child[id] ->
#ifndef BROKEN_RECENT
                ended[id] = (recent[id] == NOT -> UNKNOWN : recent[id])
#else
                ended[id] = UNKNOWN
#endif
            :: else
            fi
        }
    :: requests ? RELEASE(id) ->
        d_step { held[id] = false; ended[id] = NOT }
    fi;
    id = 0
}

inline reap(w) {
    d_step {
        life[w] = REAPED;
        child[w] = false;
        if
        :: held[w] -> ended[w] = KNOWN
        :: else -> recent[w] = KNOWN
        fi;
        reply_kind = EXITED; reply_id = w; reply_waits = true
    }
}

/* What the dead supervisor has sent counts; what it has not read is gone. */
inline supervisor_ended() {
#ifndef BROKEN_DRAIN
    do
    :: nempty(requests) -> take_request(); reply_waits = false
    :: empty(requests) -> break
    od;
#else
    do
    :: nempty(requests) -> requests ? _, _
    :: empty(requests) -> break
    od;
#endif
    atomic {
        reply_waits = false;
        do
        :: nempty(replies) -> replies ? _, _, _
        :: empty(replies) -> break
        od;
        w = 0;
        do
        :: w < LIVES ->
#ifndef BROKEN_KILL
            /* SIGKILL to what only the dead supervisor knew of; nobody is told of its end. */
            if
            :: child[w] && !held[w] ->
                child[w] = false;
                if
                :: life[w] == RUNS -> life[w] = ZOMBIE
                :: else
                fi
            :: else
            fi;
#endif
            recent[w] = NOT;
            w++
        :: else -> break
        od;
        w = 0;
        dead = false;
        runs = false;
        starts = true;
        runs = true;
        handing_over = true;
        next_held = 0
    }
}

inline hand_over() {
    if
    :: next_held < LIVES && held[next_held] ->
        replies ! HELD(next_held, ended[next_held]);
        next_held++
    :: next_held < LIVES && !held[next_held] -> next_held++
    :: next_held == LIVES -> replies ! HELD_END(0, NOT); handing_over = false; next_held = 0
    fi
}

active proctype keeper() {
    byte w, id, next_held;
    bool handing_over = true, reply_waits;
    mtype reply_kind;
    byte reply_id;

    atomic { starts = true; runs = true };
end:
    do
    :: dead -> supervisor_ended()
    :: !dead && reply_waits && nfull(replies) ->
        replies ! reply_kind(reply_id, KNOWN);
        reply_waits = false
    :: !dead && !reply_waits && handing_over && nfull(replies) -> hand_over()
#ifdef BROKEN_ORDER
    :: !dead && !reply_waits && nempty(requests) -> take_request()
    :: !dead && !reply_waits && child[0] && life[0] == ZOMBIE -> reap(0)
#else
    :: !dead && !reply_waits && !handing_over && nempty(requests) -> take_request()
    :: !dead && !reply_waits && !handing_over && child[0] && life[0] == ZOMBIE -> reap(0)
#endif
#if LIVES > 1
    :: !dead && !reply_waits && !handing_over && child[1] && life[1] == ZOMBIE -> reap(1)
#endif
#if LIVES > 2
    :: !dead && !reply_waits && !handing_over && child[2] && life[2] == ZOMBIE -> reap(2)
#endif
    od
}

/* ---- the supervisor ---- */

inline report(w, status) {
    d_step {
        assert(!reported[w] || may_double[w]);
        assert(status == KNOWN);
        reported[w] = true;
        may_double[w] = true
    }
}

inline release(w) {
    d_step {
        requests ! RELEASE(w);
        may_double[w] = false
    }
}

/* One slot: `current` is the worker in it. A kill of the supervisor forgets all of its variables. */
inline live() {
    /* held_collect() */
    do
    :: replies ? HELD(id, status) ->
        assert(current == NOBODY); /* the slot never has two */
        current = id; started = true; is_held = true; exited = status
    :: replies ? HELD_END(_, _) -> break
    od;
    do
    :: current == NOBODY && born < LIVES && nfull(requests) ->
        d_step { requests ! SPAWN(born); current = born; born++; started = false; is_held = false;
                 exited = NOT }
    :: replies ? SPAWNED(id, _) -> started = true
    :: current != NOBODY && started && !is_held && exited == NOT && nfull(requests) ->
        d_step { requests ! HOLD(current); hold_sent[current] = true; is_held = true }
    :: replies ? EXITED(id, status) ->
        if
        :: id == current -> exited = KNOWN
        :: else
        fi
    :: current != NOBODY && started && exited == NOT && life[current] == RUNS ->
        life[current] = ZOMBIE /* process_kill_all() */
    :: current != NOBODY && exited != NOT && nfull(requests) ->
        if
#ifndef BROKEN_RELEASE
        :: is_held -> report(current, exited); release(current)
#else
        :: is_held -> release(current); report(current, exited)
#endif
        :: else
        fi;
        current = NOBODY
    :: current == NOBODY && born == LIVES && empty(requests) && empty(replies) -> break
    od;
    over = true
}

active proctype supervisor() {
    byte current, id;
    mtype status, exited;
    bool started, is_held;

begin:
    current = NOBODY; id = 0; status = NOT; exited = NOT; started = false; is_held = false;
end:
    atomic { starts -> starts = false };
    { live(); goto done } unless { atomic { killed -> killed = false; dead = true } };
    goto begin;
done:
    skip
}

active proctype killer() {
end:
    do
    :: atomic { crashes < CRASHES && runs && !killed && !dead && !starts && !over -> crashes++; killed = true }
    od
}

/* When nothing can happen any more. */
active proctype judge() {
    byte w;

    timeout;
    assert(over);
    assert(runs);
    d_step {
        w = 0;
        do
        :: w < LIVES ->
            assert(life[w] != RUNS);
            assert(!hold_sent[w] || reported[w]);
            assert(!held[w]);
            w++
        :: else -> break
        od
    }
}
