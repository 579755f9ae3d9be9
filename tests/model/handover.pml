/* SPDX-License-Identifier: MIT */
/*
 * The hand-over of workers from one supervisor to the next, by the keeper. The supervisor starts
 * worker after worker in one slot and may be killed between any two steps, or leave for an upgrade,
 * for which its successor is started before; a worker ends at any time, or only when it is killed.
 * Checked:
 *
 *   - Every worker that was held, or was about to be, is reported dead, with its exit status.
 *   - None is reported twice, unless the supervisor dies between the report and its RELEASE.
 *   - Every living worker has a supervisor that knows it, or is killed. None is left at the end.
 *   - No supervisor is left that waits to be the next one.
 *
 * What stands for what:
 *
 *   requests, replies     the channels of keeper/message.h, one for each of two supervisors; each side
 *                         reads in order
 *   keeper                run_turn() in keeper/keeper.c: keeper_hand_over(), keeper_reap_one(),
 *                         keeper_take_request(), keeper_supervisor_ended(), keeper_start_next(),
 *                         keeper_drop_next()
 *   supervisor            held_collect(), held_take(), process_adopt(), process_hold(),
 *                         process_on_reaped(), process_release(), spawner_tell(, MESSAGE_NEXT),
 *                         spawner_tell(, MESSAGE_STAY), leave_at_once()
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
#ifndef UPGRADES
#define UPGRADES 1
#endif
#define NOBODY LIVES
#define ROOM   3

mtype = {SPAWN, HOLD, RELEASE, NEXT, STAY, SPAWNED, EXITED, HELD, HELD_END};
mtype = {UNBORN, RUNS, ZOMBIE, REAPED};
mtype = {NOT, KNOWN, UNKNOWN}; /* whether the exit status is there */

chan requests[2] = [ROOM] of {mtype, byte};
chan replies[2] = [ROOM] of {mtype, byte, mtype};

mtype life[LIVES] = UNBORN;
bool stubborn[LIVES]; /* ends only when it is killed */

/* The keeper's tables. */
bool child[LIVES];
bool held[LIVES];
mtype ended[LIVES] = NOT;  /* of what is held */
mtype recent[LIVES] = NOT; /* exit status of a child that was not held when it was reaped */

/* The supervisor processes, as the kernel and the keeper see them. */
bool starts[2]; /* the keeper starts it */
bool runs[2];   /* and has not noticed its end yet */
bool killed[2]; /* SIGKILL was sent */
bool dead[2];   /* and it has ended */
bool leaves;    /* the one that ended wants the next one */
byte now;       /* the one that is not the next */
bool next;      /* the other one waits */
bool over;      /* nothing is left to do */
byte crashes, upgrades;

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

inline drop_next() {
    if
    :: next -> next = false; killed[1 - now] = true
    :: else
    fi
}

inline take_request() {
    if
    :: requests[now] ? SPAWN(id) ->
        atomic {
            life[id] = RUNS;
            child[id] = true;
            if
            :: stubborn[id] = true
            :: stubborn[id] = false
            fi
        };
        reply_kind = SPAWNED; reply_id = id; reply_waits = true
    :: requests[now] ? HOLD(id) ->
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
    :: requests[now] ? RELEASE(id) ->
        d_step { held[id] = false; ended[id] = NOT }
    :: requests[now] ? NEXT(_) ->
        d_step {
            drop_next();
            if
            :: runs[1 - now] /* until its end is noticed; or there is no new program */
            :: !runs[1 - now] && !dead[now] ->
                next = true; starts[1 - now] = true; runs[1 - now] = true
            :: else
            fi
        }
    :: requests[now] ? STAY(_) ->
        d_step { drop_next() }
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
    :: nempty(requests[now]) -> take_request(); reply_waits = false
    :: empty(requests[now]) -> break
    od;
#else
    do
    :: nempty(requests[now]) -> requests[now] ? _, _
    :: empty(requests[now]) -> break
    od;
#endif
    atomic {
        reply_waits = false;
        do
        :: nempty(replies[now]) -> replies[now] ? _, _, _
        :: empty(replies[now]) -> break
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
        dead[now] = false;
        runs[now] = false;
        if
        :: leaves && next -> next = false; now = 1 - now
        :: else ->
#ifndef BROKEN_DROP
            drop_next();
#else
            next = false;
#endif
            starts[now] = true;
            runs[now] = true
        fi;
        leaves = false;
        handing_over = true;
        next_held = 0
    }
}

inline hand_over(to) {
    if
    :: next_held < LIVES && held[next_held] ->
        replies[to] ! HELD(next_held, ended[next_held]);
        next_held++
    :: next_held < LIVES && !held[next_held] -> next_held++
    :: next_held == LIVES -> replies[to] ! HELD_END(0, NOT); handing_over = false; next_held = 0
    fi
}

active proctype keeper() {
    byte w, id, next_held;
    bool handing_over = true, reply_waits;
    mtype reply_kind;
    byte reply_id;

    atomic { starts[0] = true; runs[0] = true };
end:
    do
    :: dead[now] -> supervisor_ended()
    :: dead[1 - now] -> d_step { dead[1 - now] = false; runs[1 - now] = false; next = false }
    :: !dead[now] && reply_waits && nfull(replies[now]) ->
        replies[now] ! reply_kind(reply_id, KNOWN);
        reply_waits = false
#ifndef BROKEN_EARLY
    :: !dead[now] && !reply_waits && handing_over && nfull(replies[now]) -> hand_over(now)
#else /* to the next one as soon as it is there */
    :: !dead[now] && !reply_waits && (handing_over || next) -> hand_over((next -> 1 - now : now))
#endif
#ifdef BROKEN_ORDER
    :: !dead[now] && !reply_waits && nempty(requests[now]) -> take_request()
    :: !dead[now] && !reply_waits && child[0] && life[0] == ZOMBIE -> reap(0)
#else
    :: !dead[now] && !reply_waits && !handing_over && nempty(requests[now]) -> take_request()
    :: !dead[now] && !reply_waits && !handing_over && child[0] && life[0] == ZOMBIE -> reap(0)
#endif
#if LIVES > 1
    :: !dead[now] && !reply_waits && !handing_over && child[1] && life[1] == ZOMBIE -> reap(1)
#endif
#if LIVES > 2
    :: !dead[now] && !reply_waits && !handing_over && child[2] && life[2] == ZOMBIE -> reap(2)
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
        requests[me] ! RELEASE(w);
        may_double[w] = false
    }
}

/* One slot: `current` is the worker in it. A kill of the supervisor forgets all of its variables. */
inline live() {
    /* held_collect() */
    do
    :: replies[me] ? HELD(id, status) ->
        assert(current == NOBODY); /* the slot never has two */
        current = id; started = true; is_held = true; exited = status
    :: replies[me] ? HELD_END(_, _) -> break
    od;
    do
    :: current == NOBODY && born < LIVES && nfull(requests[me]) ->
        d_step { requests[me] ! SPAWN(born); current = born; born++; started = false; is_held = false;
                 exited = NOT }
    :: replies[me] ? SPAWNED(id, _) -> started = true
    :: current != NOBODY && started && !is_held && exited == NOT && nfull(requests[me]) ->
        d_step { requests[me] ! HOLD(current); hold_sent[current] = true; is_held = true }
    :: replies[me] ? EXITED(id, status) ->
        if
        :: id == current -> exited = KNOWN
        :: else
        fi
    :: current != NOBODY && started && exited == NOT && life[current] == RUNS ->
        life[current] = ZOMBIE /* process_kill_all() */
    :: current != NOBODY && exited != NOT && nfull(requests[me]) ->
        if
#ifndef BROKEN_RELEASE
        :: is_held -> report(current, exited); release(current)
#else
        :: is_held -> release(current); report(current, exited)
#endif
        :: else
        fi;
        current = NOBODY
    :: !leaving && upgrades < UPGRADES && nfull(requests[me]) ->
        d_step { requests[me] ! NEXT(0); upgrades++; leaving = true }
#ifndef BROKEN_STAY
    :: leaving && nfull(requests[me]) -> d_step { requests[me] ! STAY(0); leaving = false }
#else
    :: leaving -> leaving = false
#endif
    :: leaving -> goto left
    :: !leaving && current == NOBODY && born == LIVES && empty(requests[me]) && empty(replies[me]) -> break
    od;
    over = true
}

/* 0 is the first one. Which of them the keeper starts next is of no importance. */
active [2] proctype supervisor() {
    byte me = _pid - 2 /* workers and keeper */, current, id;
    mtype status, exited;
    bool started, is_held, leaving;

begin:
    current = NOBODY; id = 0; status = NOT; exited = NOT; started = false; is_held = false;
    leaving = false;
end:
    atomic { starts[me] -> starts[me] = false };
    { live(); goto done; left: atomic { leaves = true; dead[me] = true } } unless {
        atomic { killed[me] -> killed[me] = false; dead[me] = true } };
    goto begin;
done:
    skip
}

active proctype killer() {
end:
    do
    :: atomic { crashes < CRASHES && runs[0] && !killed[0] && !dead[0] && !starts[0] && !over -> crashes++; killed[0] = true }
    :: atomic { crashes < CRASHES && runs[1] && !killed[1] && !dead[1] && !starts[1] && !over -> crashes++; killed[1] = true }
    od
}

/* When nothing can happen any more. */
active proctype judge() {
    byte w;

    timeout;
    assert(over);
    assert(runs[now] && !runs[1 - now]);
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
