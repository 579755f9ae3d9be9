// SPDX-License-Identifier: MIT
// The last two minutes of each group: first as the supervisor remembers them, then as this browser has seen them.

export const LENGTH = 120;

class Series {
  constructor() {
    this.values = [];
  }
  push(value) {
    this.values.push(value);
    if (this.values.length > LENGTH) this.values.shift();
  }
  get last() {
    return this.values.at(-1) ?? null;
  }
}

const ended = group => group.succeeded + group.rejected + group.cancelled + group.dead;

/** Rates of jobs that end and of those that die, the length of the queue, and the size of an elastic pool. */
class Track {
  constructor() {
    this.rate = new Series();
    this.dead = new Series();
    this.queue = new Series();
    this.busy = new Series();
    this.up = new Series();
    this.wanted = new Series();
    this.pressed = new Series();
    this.wait = new Series();
  }
  add(group, now) {
    const n = ended(group);
    // After a restart, counters begin at 0.
    if (this.at && n >= this.ended && group.dead >= this.died) {
      const seconds = Math.max(0.1, (now - this.at) / 1000);
      this.rate.push((n - this.ended) / seconds);
      this.dead.push((group.dead - this.died) / seconds);
    }
    this.queue.push(group.queued + group.waiting);
    this.busy.push(group.running);
    if (group.wanted !== undefined) {
      this.up.push(group.up);
      this.wanted.push(group.wanted);
      this.pressed.push(group.held === 'pressure');
      this.wait.push(group.queued > 0 && group.oldest_queued_at ? Math.max(0, Date.now() * 1000 - group.oldest_queued_at) : 0);
    }
    [this.at, this.ended, this.died] = [now, n, group.dead];
  }
}

/** The group at the beginning of that second. */
function before(group, samples, second) {
  const sample = samples.find(sample => sample.second >= second);
  if (!sample) return {...group, wanted: undefined};
  return {name: group.name, succeeded: sample.ended - sample.dead, rejected: 0, cancelled: 0, dead: sample.dead, queued: sample.waiting, waiting: 0, running: sample.running};
}

export class History {
  constructor() {
    this.tracks = new Map();
    this.all = new Track();
  }
  /** Begins with what the supervisor remembers. past: of GetHistory; from: when it was started, in microseconds; at: now, as of add(). */
  begin(groups, past, from, at) {
    const samples = new Map(past.map(group => [group.name, group.samples]));
    const now = Date.now() * 1000;
    const end = Math.floor(now / 1e6);
    for (let second = Math.max(end - LENGTH, Math.ceil(from / 1e6)); second <= end; second++) {
      this.add(groups.map(group => before(group, samples.get(group.name) ?? [], second)), at - (now - second * 1e6));
    }
  }
  /** at: when the supervisor has told it, in microseconds of troupe-web's clock. */
  add(groups, at) {
    if (at === this.at) return;
    this.at = at;
    const now = at / 1000;
    const sum = {succeeded: 0, rejected: 0, cancelled: 0, dead: 0, queued: 0, waiting: 0, running: 0};
    const names = new Set();
    for (const group of groups) {
      this.of(group.name).add(group, now);
      names.add(group.name);
      for (const name of Object.keys(sum)) sum[name] += group[name];
    }
    this.all.add(sum, now);
    for (const name of this.tracks.keys()) if (!names.has(name)) this.tracks.delete(name);
  }
  of(name) {
    let track = this.tracks.get(name);
    if (!track) this.tracks.set(name, track = new Track());
    return track;
  }
}
