/* SPDX-License-Identifier: MIT */
/*
 * The sleep and wake protocol between the supervisor and one worker: both rings, both reasons to
 * sleep (the ring to read is empty, the ring to write is full), one word and one flag for each: the
 * word is the peer's bell, or its cursor. The supervisor sends N messages, the worker answers each. A message that arrives while its
 * reader sleeps with nobody about to wake it, or room that a writer is never told of, is a state
 * without a way out: spin reports an invalid end state.
 *
 * Memory is as in x86's TSO: every process has a queue of stores that reach memory later, in order;
 * it sees its own at once. fence() is the sequentially consistent fence of wake_fence(). System
 * calls are given no fence: the protocol must not need one.
 *
 * What stands for what:
 *
 *   store, load, fence    atomics in shared memory; wake_fence() in shared/ring/wake.h
 *   publish               channel_publish() over ring_publish(): cursor, fence, flag, wake
 *   release               channel_release() over ring_release(): likewise
 *   prepare_sleep         channel_prepare_sleep(): note the bell, raise flag, fence, re-check the
 *                         peer's tail
 *   ring_bell             wake_peer() in shared/ring/channel.c
 *   prepare_block         channel_prepare_block(): publish, raise flag, fence, re-check its head
 *   sleep_on              sleep_on() in shared/ring/channel.c: futex(2), or poll and read of the eventfd
 *   wake                  wake_at_once() in shared/ring/channel.c for the worker; for the supervisor
 *                         endpoint_wake_peer(): a futex wake goes with the turn's submission
 *   worker                the loop of worker/worker/worker.c: channel_wait(), ring_next(),
 *                         reserve() with channel_wait_space(), publish, release
 *   supervisor            turns of loop_run(): run_completions() with endpoint_on_tail() and
 *                         endpoint_space_came(), endpoint_poll(), endpoint_publish(), endpoint_cool(),
 *                         submission. endpoint_reserve() and endpoint_await_space() are try_send.
 *
 * Back ends: futex waits compare the word with what was expected; -DEVENTFD: a counter that a read
 * resets, one per direction, for data and room alike.
 *
 * A4: a wake-up is only issued while the receiver may be asleep: it has raised its flag, and has
 * not yet taken it down for everybody to see (the assertion in wake).
 *
 * One part left out at a time (-DBROKEN_…) must break it; tests/model/run sees to that.
 */

#ifndef N
#define N 3
#endif
#ifndef ROOM
#define ROOM 1 /* records that fit into a ring */
#endif
#define STORES 3

/* Processes. */
#define SUPERVISOR 0
#define WORKER     1
#define other(p)   (1 - (p))

/* Words: cursors and flags, by who writes them: "tail" of the ring it writes, "head" of the ring it
 * reads. */
#define TAIL(p)     (p)
#define HEAD(p)     (2 + (p))
#define SLEEPING(p) (4 + (p))
#define BLOCKED(p)  (6 + (p))
#define BELL(p)     (8 + (p)) /* counts its wake-ups of a peer that has nothing to read */
#define NOTHING     10

byte memory[10];

typedef queue {
    byte word[STORES];
    byte value[STORES];
    byte n
}
queue stores[2];

/* Raised, and not yet seen by everybody to be down again. */
bool may_sleep[8];

/* What a process waits on in the kernel (the worker: one word), and the eventfds. */
byte waits_on[2] = NOTHING;
bool counter[2];

/* The supervisor's futex waits and their completions: [0] its peer's bell, [1] its peer's head. */
bool to_arm[2]; /* to be submitted with the turn's end */
bool armed[2];
bool fired[2];
bool wake_queued[2]; /* its wakes for that: of its bell, of its head's word */

inline store(p, w, v) {
    atomic {
        stores[p].n < STORES ->
        stores[p].word[stores[p].n] = w;
        stores[p].value[stores[p].n] = v;
        stores[p].n++;
        if
        :: w >= SLEEPING(0) && v == 1 -> may_sleep[w] = true
        :: else
        fi
    }
}

inline load(p, w, into) {
    d_step {
        into = memory[w];
        if
        :: stores[p].n > 0 && stores[p].word[0] == w -> into = stores[p].value[0]
        :: else
        fi;
        if
        :: stores[p].n > 1 && stores[p].word[1] == w -> into = stores[p].value[1]
        :: else
        fi;
        if
        :: stores[p].n > 2 && stores[p].word[2] == w -> into = stores[p].value[2]
        :: else
        fi
    }
}

#define fence(p) stores[p].n == 0

/* The oldest store of a process becomes visible. */
inline flush(p) {
    d_step {
        flushed = stores[p].word[0];
        memory[flushed] = stores[p].value[0];
        stores[p].n--;
        stores[p].word[0] = stores[p].word[1];
        stores[p].value[0] = stores[p].value[1];
        stores[p].word[1] = stores[p].word[2];
        stores[p].value[1] = stores[p].value[2];
        stores[p].word[2] = 0;
        stores[p].value[2] = 0;
        if /* down for everybody, and not about to be up again */
        :: memory[flushed] == 0 &&
           !(stores[p].n > 0 && stores[p].word[0] == flushed) &&
           !(stores[p].n > 1 && stores[p].word[1] == flushed) -> may_sleep[flushed] = false
        :: else
        fi;
        flushed = 0
    }
}

active proctype store_buffers() {
    byte flushed;
end:
    do
    :: stores[0].n > 0 -> flush(0)
    :: stores[1].n > 0 -> flush(1)
    od
}

/* ---- wake-ups ---- */

/* The kernel's part of FUTEX_WAKE. */
inline futex_wake(w) {
    d_step {
        if
        :: waits_on[WORKER] == w -> waits_on[WORKER] = NOTHING
        :: else
        fi;
        if
        :: armed[0] && w == BELL(WORKER) -> armed[0] = false; fired[0] = true
        :: else
        fi;
        if
        :: armed[1] && w == HEAD(WORKER) -> armed[1] = false; fired[1] = true
        :: else
        fi
    }
}

/* By p, to the peer that waits on p's word w. */
inline wake(p, w) {
#ifdef EVENTFD
    counter[other(p)] = true
#else
    if
    :: p == WORKER -> futex_wake(w)
    :: else -> wake_queued[(w) == HEAD(SUPERVISOR)] = true
    fi
#endif
}

/* A locked instruction: the stores before it reach memory first. */
inline ring_bell(p) {
#ifndef BROKEN_BELL
    atomic { stores[p].n == 0 -> memory[BELL(p)]++ }
#else
    skip
#endif
}

/* The flag is looked at and a wake-up decided on in one step: A4 is about this very moment. */
inline wake_if(p, flag, w) {
    atomic {
#ifdef BROKEN_ALWAYS_WAKE
        seen = 1;
#else
        load(p, flag, seen);
#endif
        if
        :: seen == 1 -> assert(may_sleep[flag])
        :: else
        fi
    };
    if
    :: seen == 1 && w == BELL(p) -> ring_bell(p); wake(p, w)
    :: seen == 1 && w != BELL(p) -> wake(p, w)
    :: else
    fi;
    seen = 0
}

/* `shown` is the value that was published last. */
inline publish(p) {
    if
    :: tail != shown ->
        store(p, TAIL(p), tail);
        shown = tail;
#ifndef BROKEN_FENCE_PUBLISH
        fence(p);
#endif
        wake_if(p, SLEEPING(other(p)), BELL(p))
    :: else
    fi
}

inline release(p) {
    if
    :: head != released ->
        store(p, HEAD(p), head);
        released = head;
#ifndef BROKEN_FENCE_RELEASE
        fence(p);
#endif
        wake_if(p, BLOCKED(other(p)), HEAD(p))
    :: else
    fi
}

/* ---- sleeping ---- */

/* ring_pending() and ring_reserve() with what was last seen of the peer's cursors. */
inline look_at_tail(p) {
    load(p, TAIL(other(p)), peer_tail)
}
inline look_at_head(p) {
    load(p, HEAD(other(p)), peer_head)
}
#define pending (peer_tail != head)
#define full    (tail - peer_head >= ROOM)

/* pending afterwards = do not sleep. */
inline prepare_sleep(p) {
    load(p, BELL(other(p)), expected_bell);
    store(p, SLEEPING(p), 1);
#ifndef BROKEN_FENCE_SLEEP
    fence(p);
#endif
#ifndef BROKEN_RECHECK_SLEEP
    look_at_tail(p);
    if
    :: pending -> store(p, SLEEPING(p), 0)
    :: else
    fi
#endif
}

/* full afterwards = sleep. */
inline prepare_block(p) {
    publish(p);
    store(p, BLOCKED(p), 1);
#ifndef BROKEN_FENCE_BLOCK
    fence(p);
#endif
#ifndef BROKEN_RECHECK_BLOCK
    look_at_head(p);
    if
    :: !full -> store(p, BLOCKED(p), 0)
    :: else
    fi
#endif
}

/* The worker, on one word. The futex compares in the kernel what was expected. */
inline sleep_on(p, w, expected) {
#ifdef EVENTFD
    atomic { counter[p] -> counter[p] = false }
#else
    atomic {
        if
#ifndef BROKEN_COMPARE
        :: memory[w] != expected
#endif
        :: else -> waits_on[p] = w
        fi
    };
    waits_on[p] == NOTHING
#endif
}

/* ---- the worker ---- */

active proctype worker() {
    byte tail, shown, peer_head;     /* the ring it writes */
    byte head, released, peer_tail;  /* the ring it reads */
    byte seen, expected_bell;

    do
    :: head == N -> break
    :: else ->
        /* channel_wait() */
        look_at_tail(WORKER);
        do
        :: pending -> break
        :: else ->
            prepare_sleep(WORKER);
            if
            :: pending -> break
            :: else
            fi;
            sleep_on(WORKER, BELL(SUPERVISOR), expected_bell);
            store(WORKER, SLEEPING(WORKER), 0);
            look_at_tail(WORKER)
        od;
        head++; /* ring_next(), and the handler */

        /* reserve() */
        if
        :: full -> look_at_head(WORKER)
        :: else
        fi;
        do
        :: !full -> break
        :: else ->
            prepare_block(WORKER);
            if
            :: full ->
                sleep_on(WORKER, HEAD(SUPERVISOR), peer_head);
                store(WORKER, BLOCKED(WORKER), 0);
                look_at_head(WORKER)
            :: else
            fi
        od;
        tail++; /* ring_commit() */
        publish(WORKER);
        if
        :: release(WORKER)
        :: head != N && pending /* several read before they are given back */
        fi
    od
}

/* ---- the supervisor ---- */

/* The kernel's part of FUTEX_WAIT: armed only if the word is still what was expected. */
inline submit_wait(i, w, expected) {
    d_step {
        if
        :: to_arm[i] ->
            to_arm[i] = false;
            if
#ifndef BROKEN_COMPARE
            :: memory[w] != expected -> fired[i] = true
#endif
            :: else -> armed[i] = true
            fi
        :: else
        fi
    }
}

/* endpoint_reserve(), commit, and what follows when there is no room. */
inline try_send() {
    do
    :: tail == N -> break
    :: else ->
        if
        :: full -> look_at_head(SUPERVISOR)
        :: else
        fi;
        if
        :: full -> prepare_block(SUPERVISOR)
        :: else
        fi;
        if
        :: full ->
#ifndef EVENTFD
            if
            :: !wants_space -> to_arm[1] = true; expected_head = peer_head
            :: else /* waited for already */
            fi;
#endif
            wants_space = true;
            break
        :: else -> tail++
        fi
    od
}

inline space_came() {
    store(SUPERVISOR, BLOCKED(SUPERVISOR), 0);
    wants_space = false;
    try_send()
}

inline run_completions() {
#ifdef EVENTFD
    if
    :: atomic { counter[SUPERVISOR] -> counter[SUPERVISOR] = false };
        store(SUPERVISOR, SLEEPING(SUPERVISOR), 0);
        hot = true;
        if
        :: wants_space -> space_came()
        :: else
        fi
    :: else
    fi
#else
    if
    :: fired[0] ->
        fired[0] = false;
        store(SUPERVISOR, SLEEPING(SUPERVISOR), 0);
        hot = true
    :: else
    fi;
    if
    :: fired[1] ->
        fired[1] = false;
        space_came()
    :: else
    fi
#endif
}

inline cool() {
    if
    :: hot ->
        prepare_sleep(SUPERVISOR);
        if
        :: !pending ->
            hot = false;
#ifndef EVENTFD
            to_arm[0] = true
#endif
        :: else
        fi
    :: else
    fi
}

inline submit() {
    if
    :: wake_queued[0] -> wake_queued[0] = false; futex_wake(BELL(SUPERVISOR))
    :: else
    fi;
    if
    :: wake_queued[1] -> wake_queued[1] = false; futex_wake(HEAD(SUPERVISOR))
    :: else
    fi;
    submit_wait(0, BELL(WORKER), expected_bell);
    submit_wait(1, HEAD(WORKER), expected_head)
}

active proctype supervisor() {
    byte tail, shown, peer_head;
    byte head, released, peer_tail;
    byte seen, expected_bell, expected_head;
    bool hot = true, wants_space;

    do
    :: head == N -> break
    :: else ->
        run_completions();
        if /* something new to send, sometimes also while it waits for room */
        :: try_send()
        :: wants_space || tail == N
        fi;
        if
        :: hot ->
            look_at_tail(SUPERVISOR);
            do
            :: pending -> head++
            :: else -> break
            od;
            release(SUPERVISOR)
        :: else
        fi;
        publish(SUPERVISOR);
        if
        :: cool()
        :: hot /* recently active: polled once more */
        fi;
        submit();
        if
        :: hot || head == N
        :: !hot && (fired[0] || fired[1] || counter[SUPERVISOR])
        fi
    od
}
