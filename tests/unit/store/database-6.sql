-- What version 6 wrote: a test reads it as the present one.
BEGIN;
CREATE TABLE store (run INTEGER NOT NULL, id_key INTEGER NOT NULL);
CREATE TABLE job ( number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT, priority INTEGER NOT
    NULL, state INTEGER NOT NULL, cancel INTEGER NOT NULL, attempt INTEGER NOT NULL, failed INTEGER NOT NULL,
    max_retries INTEGER NOT NULL, created INTEGER NOT NULL, started INTEGER, due INTEGER, deadline INTEGER,
    uid INTEGER NOT NULL, keep INTEGER NOT NULL, asked_retries INTEGER, asked_timeout INTEGER,
    asked_backoff_min INTEGER, asked_backoff_max INTEGER, asked_priority INTEGER, cause INTEGER, payload BLOB,
    moved INTEGER, canceller INTEGER);
CREATE UNIQUE INDEX job_name ON job (name) WHERE name IS NOT NULL;
CREATE TABLE ended ( number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT, state INTEGER NOT
    NULL, code INTEGER NOT NULL, reason TEXT, attempt INTEGER NOT NULL, failed INTEGER NOT NULL, max_retries
    INTEGER NOT NULL, priority INTEGER NOT NULL, uid INTEGER NOT NULL, created INTEGER NOT NULL, started
    INTEGER, ended INTEGER NOT NULL, result BLOB, cause INTEGER, moved INTEGER);
CREATE UNIQUE INDEX ended_name ON ended (name) WHERE name IS NOT NULL;
CREATE INDEX ended_time ON ended (ended);
CREATE TABLE dead ( number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT, letter INTEGER NOT
    NULL, code INTEGER NOT NULL, reason TEXT, attempt INTEGER NOT NULL, uid INTEGER NOT NULL, created INTEGER
    NOT NULL, ended INTEGER NOT NULL, asked_retries INTEGER, asked_timeout INTEGER, asked_backoff_min INTEGER,
    asked_backoff_max INTEGER, asked_priority INTEGER, cause INTEGER, payload BLOB);
PRAGMA application_id = 1416786021;
PRAGMA user_version = 6;
INSERT INTO store VALUES (3, 4711);
INSERT INTO job (number, grp, key, name, priority, state, cancel, attempt, failed, max_retries, created, started, due, uid,
    keep, asked_retries, asked_priority, payload) VALUES (281474976710657, 'mail', 'tenant', 'first', 40, 2, 0, 2, 2, 5,
    1700000000000000, 1700000001000000, 1700000009000000, 1000, 1, 5, 40, x'68656c6c6f');
INSERT INTO job (number, grp, priority, state, cancel, attempt, failed, max_retries, created, uid, keep, payload)
    VALUES (281474976710658, 'mail', 32, 0, 1, 0, 0, 3, 1700000000000001, 0, 1, x'');
INSERT INTO ended (number, grp, name, state, code, attempt, failed, max_retries, priority, uid, created, started, ended, result)
    VALUES (281474976710659, 'mail', 'done', 5, 0, 1, 0, 3, 32, 0, 1700000000000002, 1700000000000003, 1700000000000004, x'6f6b');
INSERT INTO dead (number, grp, letter, code, reason, attempt, uid, created, ended, payload) VALUES (281474976710660, 'mail', 7, 1,
    'killed by SIGSEGV', 4, 0, 1700000000000005, 1700000000000006, x'616761696e');
COMMIT;
