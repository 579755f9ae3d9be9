// SPDX-License-Identifier: MIT
// Formats numbers, times and states.

const NARROW = '\u202f';

/** Characters that are invisible or change the direction of others: they make a text look like another one. */
const INVISIBLE = /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** Returns the text with these characters escaped, such as \\u202e. */
export const visible = text => String(text).replace(INVISIBLE, c => `\\u${c.codePointAt(0).toString(16).padStart(4, '0')}`);

export function number(n) {
  if (n === null || n === undefined) return '';
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, NARROW);
}

/** A rate per second. */
export function rate(n) {
  if (n === null || n === undefined) return '–';
  if (n === 0) return '0';
  return n < 10 ? n.toFixed(1) : number(Math.round(n));
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit > 0 && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

/** A duration in microseconds, with two digits that matter. */
export function span(usec) {
  if (usec === null || usec === undefined) return '';
  if (usec < 1000) return `${Math.round(usec)} µs`;
  if (usec < 1e6) return `${usec < 9950 ? (usec / 1e3).toFixed(1) : Math.round(usec / 1e3)} ms`;
  const s = usec / 1e6;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

/** How long ago, from microseconds since 1970. */
export function ago(usec) {
  if (!usec) return '';
  const age = Date.now() * 1000 - usec;
  return age < 1e6 ? 'now' : `${span(Math.floor(age / 1e6) * 1e6)} ago`;
}

/** How long since then. */
export function since(usec) {
  return usec ? span(Math.max(0, Math.floor(Date.now() - usec / 1e3)) * 1e3) : '';
}

const pad = (n, digits = 2) => String(n).padStart(digits, '0');

export function clock(usec, fraction = false) {
  const date = new Date(usec / 1000);
  const text = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return fraction ? `${text}.${pad(date.getMilliseconds(), 3)}` : text;
}

export function moment(usec) {
  const date = new Date(usec / 1000);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return day === moment.today() ? clock(usec) : `${day} ${clock(usec)}`;
}
moment.today = () => {
  const date = new Date();
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
};

/** How a state looks: good, busy, quiet, warn or bad. */
export function tone(state) {
  switch (state) {
  case 'running': case 'idle': case 'succeeded': case 'active': return 'good';
  case 'busy': case 'started': return 'busy';
  case 'paused': case 'stopped': case 'queued': case 'delayed': case 'pending': case 'unknown': case 'cancelled': case 'retiring': case 'stopping': case 'draining': return 'quiet';
  case 'starting': case 'backoff': case 'degraded': case 'rejected': case 'reloading': case 'killing': return 'warn';
  default: return 'bad';
  }
}

const CAUSES = {
  exit: 'exited', signal: 'killed by a signal', oom: 'out of memory', job_timeout: 'took too long', watchdog: 'hung',
  start_timeout: 'did not become ready', violation: 'broke the protocol', no_progress: 'no progress', stop: 'stopped',
  system_call: 'forbidden system call', result_too_large: 'result too large',
  retry: 'asked to be tried again', supervisor: 'ended with the worker',
};
export const cause = name => CAUSES[name] ?? name;

const REASONS = {
  unhandled: 'no handler', no_match: 'no subscription matches', gone: 'recipient is gone', mailbox_full: 'mailbox full', dropped: 'dropped',
  late_reply: 'reply came too late', wrong_reply: 'unexpected reply', unknown_death: 'unknown death', loop: 'loop of exchanges', no_memory: 'out of memory',
  job: 'retries exhausted', error: 'handler failed', crash: 'worker died',
};
export const reason = name => REASONS[name] ?? name;

/** "worker.not-recycled" reads "worker not recycled". */
export const words = name => name.replace(/[._-]/g, ' ');

export function plural(n, one, many = one + 's') {
  return `${number(n)} ${n === 1 ? one : many}`;
}

/** A payload as text; binary ones stay Base64. */
export function payload(value) {
  return value.encoding === 'utf8' ? value.data : `(Base64) ${value.data}`;
}

/** The address of a view of something: link('group', 'mail/acme'). */
export const link = (view, name) => `#/${view}/${String(name).split('/').map(encodeURIComponent).join('/')}`;
