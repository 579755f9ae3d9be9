// SPDX-License-Identifier: MIT
// What the workers do: a row for each, a bar for each attempt of a job, a mark for each death, on one canvas.

import {h, become, setAttribute, setText, show, table, row as tableRow, sync} from './element.js';
import {cause, clock, link, number, plural, span, tone, visible} from './format.js';

const KEPT_USEC = 600e6;
const BARS_MAX = 20000;
const ROWS_MAX = 5000;
const LANES_MAX = 8;
const PAGE = 200;
const ROW = 18;
const AXIS = 22;
const SPAN_MIN = 1e3;
const SPAN_BEGIN = 60e6;
const order = new Intl.Collator('en', {numeric: true}).compare;

/** Rows with bars. Bounded: older bars go first. */
class Timeline {
  constructor() {
    this.rows = new Map(); // by the worker's name
    this.open = new Map(); // bars without an end, by job
    this.closed = []; // all other bars, in the order of their ends
    this.first = 0; // the oldest one in `closed`
    this.sorted = null; // rows and headings of groups, as they are shown
    this.leftOut = 0;
    this.latest = 0;
  }

  row(group, worker) {
    let row = this.rows.get(worker);
    if (row || this.rows.size >= ROWS_MAX) return row;
    row = {group, worker, bars: [], lanes: [], marks: [], kept: false};
    this.rows.set(worker, row);
    this.sorted = null;
    return row;
  }

  begin(group, worker, job, at, attempt = null) {
    if (this.open.has(job)) return;
    const row = this.row(group, worker);
    let lane = row ? row.lanes.findIndex(bar => bar === null) : -1;
    if (row && lane < 0 && row.lanes.length < LANES_MAX) lane = row.lanes.length;
    if (lane < 0 || this.open.size >= BARS_MAX) {
      this.leftOut++;
      return;
    }
    const bar = {row, lane, job, attempt, from: at, to: null, outcome: 'running'};
    row.lanes[lane] = bar;
    this.open.set(job, bar);
  }

  end(job, at, outcome, attempt = null) {
    const bar = this.open.get(job);
    if (!bar) return;
    this.open.delete(job);
    bar.row.lanes[bar.lane] = null;
    Object.assign(bar, {to: Math.max(at, bar.from), outcome, attempt: bar.attempt ?? attempt});
    bar.row.bars.push(bar);
    this.closed.push(bar);
    if (this.closed.length - this.first > BARS_MAX) this.drop();
  }

  /** Forgets the oldest bar. */
  drop() {
    const {row} = this.closed[this.first];
    this.closed[this.first++] = undefined;
    row.bars.shift();
    this.forget(row);
    if (this.first > BARS_MAX) {
      this.closed = this.closed.slice(this.first);
      this.first = 0;
    }
  }

  /** Forgets the row of a worker that has nothing to show, unless it was there at the beginning. */
  forget(row) {
    if (row.kept || row.bars.length > 0 || row.marks.length > 0 || row.lanes.some(bar => bar !== null)) return;
    this.rows.delete(row.worker);
    this.sorted = null;
  }

  expire(now) {
    while (this.first < this.closed.length && this.closed[this.first].to < now - KEPT_USEC) this.drop();
  }

  /** Ends the bars of jobs that no longer run, whose end is not known. */
  cut(running, at) {
    for (const job of [...this.open.keys()]) if (!running.has(job)) this.end(job, at, 'end not known');
  }

  take(event) {
    const {type, group, worker, job, at} = event;
    this.latest = Math.max(this.latest, at);
    if (!type.startsWith('job.') || !job) return;
    if (type === 'job.started') this.begin(group, worker, job, at, event.attempt);
    else if (type !== 'job.accepted' && type !== 'job.dead')
      this.end(job, at, type === 'job.ended' ? event.job_state : type.slice(4), event.attempt);
  }

  /** Makes the marks those of these deaths. */
  mark(deaths) {
    const before = [...this.rows.values()].filter(row => row.marks.length > 0);
    for (const row of before) row.marks = [];
    for (const event of deaths) this.row(event.group, event.worker)?.marks.push(event);
    for (const row of before) this.forget(row);
  }

  /** All rows, each group after its heading. */
  list() {
    if (this.sorted) return this.sorted;
    const rows = [...this.rows.values()].sort((a, b) => order(a.group ?? '', b.group ?? '') || order(a.worker, b.worker));
    this.sorted = rows.flatMap((row, i) => row.group === rows[i - 1]?.group ? [row] : [{heading: row.group ?? ''}, row]);
    return this.sorted;
  }
}

const toneOf = outcome => ({running: 'busy', retried: 'warn', moved: 'quiet', recovered: 'quiet', 'end not known': 'quiet'})[outcome] ?? tone(outcome);
const deathName = death => death.signal ?? cause(death.cause);
const deathTone = death => death.cause === 'stop' ? 'quiet' : 'bad';

/** A step between two marks of the axis: 1, 2 or 5 times a power of ten, in microseconds. */
function stepOf(length, marks) {
  const power = 10 ** Math.floor(Math.log10(length / marks));
  return [1, 2, 5, 10].map(n => n * power).find(step => step * marks >= length);
}

/** Draws what `shown` shows: {from, to} in microseconds, {top} in pixels. Returns the bars and marks that are drawn. */
function paint(canvas, timeline, shown) {
  const style = getComputedStyle(canvas);
  const colour = name => style.getPropertyValue(`--${name}`);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const ratio = devicePixelRatio;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  const tones = Object.fromEntries(['good', 'busy', 'quiet', 'warn', 'bad'].map(name => [name, colour(name)]));
  const [text, muted, lines] = [colour('text'), colour('muted'), colour('line')];
  const left = gutter(width);
  const scale = (width - left) / (shown.to - shown.from);
  const x = at => left + (at - shown.from) * scale;
  const drawn = {bars: [], marks: []};
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = 'middle';

  const rows = timeline.list();
  for (let i = Math.floor(shown.top / ROW); i < rows.length && i * ROW - shown.top < height - AXIS; i++) {
    const row = rows[i];
    const y = AXIS + i * ROW - shown.top;
    context.font = `${row.heading === undefined ? 12 : '600 12'}px system-ui, sans-serif`;
    context.fillStyle = row.heading === undefined ? muted : text;
    context.fillText(visible(row.heading ?? row.worker).slice(0, 64), 6, y + ROW / 2, left - 12);
    context.fillStyle = lines;
    context.fillRect(0, y + ROW - 1, width, 1);
    if (row.heading !== undefined) continue;
    const size = (ROW - 5) / Math.max(1, row.lanes.length);
    const ends = []; // of the last bar in each lane: bars narrower than a pixel are not drawn over each other
    const bar = one => {
      const [from, to] = [Math.max(left, x(one.from)), Math.min(width, x(one.to ?? shown.now))];
      if (to < left || from > width || (one.to ?? shown.now) < shown.from) return;
      drawn.bars.push(one);
      const end = Math.max(to, from + 1);
      if (ends[one.lane]?.end >= end && ends[one.lane].outcome === one.outcome) return;
      ends[one.lane] = {end, outcome: one.outcome};
      context.fillStyle = tones[toneOf(one.outcome)];
      context.fillRect(from, y + 2 + one.lane * size, end - from, Math.max(1, size - 0.5));
    };
    row.bars.forEach(bar);
    row.lanes.forEach(one => one && bar(one));
    for (const mark of row.marks) {
      const at = x(mark.at);
      if (at < left || at > width) continue;
      drawn.marks.push(mark);
      context.fillStyle = tones[deathTone(mark.death)];
      context.beginPath();
      context.moveTo(at - 5, y + 1);
      context.lineTo(at + 5, y + 1);
      context.lineTo(at, y + ROW - 2);
      context.fill();
    }
  }

  context.clearRect(0, 0, width, AXIS);
  context.font = '11px system-ui, sans-serif';
  const step = stepOf(shown.to - shown.from, Math.max(2, (width - left) / 110));
  for (let at = Math.ceil(shown.from / step) * step; at < shown.to; at += step) {
    context.fillStyle = lines;
    context.fillRect(x(at), AXIS - 6, 1, 6);
    context.fillStyle = muted;
    context.fillText(step < 1e6 ? `${clock(at, true)}${step < 1e3 ? `+${Math.round(at % 1e3)} µs` : ''}` : clock(at), x(at) + 3, AXIS / 2 - 1);
  }
  return drawn;
}

/** How wide the names of workers are. */
const gutter = width => Math.min(190, width * 0.3);

const COLUMNS = [{title: 'Outcome', class: 'name'}, {title: 'Attempts shown', class: 'number'}, {title: 'Longest', class: 'number'}];

/** Counts of what is drawn, by outcome: for those who cannot see it, and what the colours mean. */
function summaryTable() {
  const counts = table('Attempts of jobs shown, by outcome', COLUMNS);
  const create = ({outcome}) => {
    const node = tableRow(COLUMNS);
    node.children[0].append(h('span', {class: 'state', 'data-tone': toneOf(outcome)}, h('i', {'aria-hidden': 'true'}), h('span', {}, outcome)));
    return node;
  };
  const update = (node, {n, longest}) => {
    setText(node.children[1], number(n));
    setText(node.children[2], span(longest));
  };
  return {
    node: counts.node,
    update(bars, now) {
      const found = new Map();
      for (const {outcome, from, to} of bars) {
        const entry = found.get(outcome) ?? {outcome, n: 0, longest: 0};
        found.set(outcome, {outcome, n: entry.n + 1, longest: Math.max(entry.longest, (to ?? now) - from)});
      }
      sync(counts.body, [...found.values()].sort((a, b) => order(a.outcome, b.outcome)), entry => entry.outcome, create, update);
      show(counts.node, found.size > 0);
    },
  };
}

/** All workers, or those of one group. */
export function timelineView(app, target = '') {
  const timeline = new Timeline();
  const canvas = h('canvas', {role: 'img', tabindex: '0', 'aria-label': 'Timeline'});
  const spacer = h('div');
  const scroller = h('div', {class: 'timeline', tabindex: '-1'}, canvas, spacer);
  const tip = h('div', {class: 'tip', hidden: true});
  const note = h('p', {class: 'muted', hidden: true});
  const counts = summaryTable();
  const abort = new AbortController();
  let [length, fixedEnd] = [SPAN_BEGIN, null]; // null: the end is now
  let pending = []; // events until it is known what ran before them; null: it is
  let lostAt = 0;
  let refused = false;
  let marksOf = null;
  let frame = null;
  let drag = null;
  let pointer = null; // where the mouse is: bars move below it

  const now = () => Math.max(Date.now() * 1000, timeline.latest);
  const visibleTime = () => {
    const at = now();
    const to = fixedEnd ?? at;
    return {now: at, from: to - length, to, top: scroller.scrollTop};
  };

  function draw() {
    frame = null;
    if (!canvas.isConnected) return;
    const at = now();
    timeline.expire(at);
    if (marksOf !== app.events.at(-1)) {
      marksOf = app.events.at(-1);
      timeline.mark(app.events.filter(event => event.type === 'worker.died' && event.death && event.at > at - KEPT_USEC && (!target || event.group === target)));
    }
    const total = AXIS + timeline.list().length * ROW;
    const height = Math.min(total, Math.max(200, innerHeight * 0.65));
    scroller.style.height = canvas.style.height = `${height}px`;
    spacer.style.height = `${total - height}px`;
    const shown = visibleTime();
    const drawn = paint(canvas, timeline, shown);
    counts.update(drawn.bars, at);
    setAttribute(canvas, 'aria-label', `Timeline of ${plural(timeline.rows.size, 'worker')} from ${clock(shown.from, true)} to ${clock(shown.to, true)}, ${
      span(length)}: ${plural(drawn.bars.length, 'attempt')} and ${plural(drawn.marks.length, 'death')} in the rows shown`);
    showTip();
    setText(note, refused ? 'Attempts of jobs are only for users who may read contents (ReadGroup=); deaths are shown.'
      : timeline.leftOut ? `${plural(timeline.leftOut, 'attempt')} left out: there are more than ${number(ROWS_MAX)} workers, or more than ${LANES_MAX} attempts on one.` : '');
    show(note, note.textContent !== '');
  }
  function later() {
    frame ??= requestAnimationFrame(draw);
  }

  // ---- what happens

  function takeWorkers(group, workers, running) {
    for (const worker of workers ?? []) {
      const row = timeline.row(group, worker.name);
      if (row) row.kept = true;
      if (!worker.job_since_at || refused) continue; // an event will say that it begins
      running.add(worker.job);
      timeline.begin(group, worker.name, worker.job, worker.job_since_at);
    }
  }
  /** Reads what runs. The first question is answered after the supervisor has begun to send events. */
  async function load() {
    const running = new Set();
    await app.client.get('info');
    for (let offset = 0, more = true; more && offset < ROWS_MAX; offset += PAGE) {
      const {groups} = await app.client.get('status', {target, offset, limit: PAGE});
      for (const group of groups) for (const of of [group, ...group.cells ?? []]) takeWorkers(group.name, of.workers, running);
      more = groups.some(group => !group.cells && group.workers_total > offset + PAGE);
    }
    timeline.cut(running, lostAt);
  }
  async function loadAll() {
    pending = [];
    try {
      await load();
    } catch { /* the banner says it; events show what begins from now on */ }
    for (const event of pending ?? []) timeline.take(event);
    pending = null;
    later();
  }
  app.client.listen((type, data) => {
    if (type === 'here') loadAll();
    else if (type === 'closed') lostAt = now();
    else if (type === 'refused') {
      refused = true;
      timeline.open.clear();
      for (const row of timeline.rows.values()) row.lanes = [];
      abort.abort();
    } else if (type === 'event' && (!target || data.group === target)) {
      if (!pending) timeline.take(data);
      else if (pending.length < BARS_MAX) pending.push(data);
    }
    later();
  }, '/api/job-events', abort.signal);

  // ---- zoom, drag and tooltip

  function move(newLength, anchor) {
    const shown = visibleTime();
    newLength = Math.min(KEPT_USEC, Math.max(SPAN_MIN, newLength));
    const end = anchor + (shown.to - anchor) * newLength / length;
    length = newLength;
    place(end);
  }
  function place(end) {
    const at = now();
    fixedEnd = end >= at - length / 100 ? null : Math.max(end, at - KEPT_USEC);
    later();
  }
  const zoom = factor => move(length * factor, visibleTime().to);
  const live = () => place(Infinity);
  const timeAt = x => {
    const {from, to} = visibleTime();
    const left = gutter(canvas.clientWidth);
    return from + (x - left) / (canvas.clientWidth - left) * (to - from);
  };

  /** The mark or the bar there. */
  function find(x, y) {
    const row = y < AXIS ? null : timeline.list()[Math.floor((y - AXIS + scroller.scrollTop) / ROW)];
    if (!row || row.heading !== undefined) return {};
    const perPixel = length / (canvas.clientWidth - gutter(canvas.clientWidth));
    const at = timeAt(x);
    const mark = row.marks.find(one => Math.abs(one.at - at) <= 5 * perPixel);
    const lane = Math.floor(((y - AXIS + scroller.scrollTop) % ROW - 2) / ((ROW - 5) / Math.max(1, row.lanes.length)));
    const bars = [...row.bars, ...row.lanes.filter(Boolean)].filter(bar => at >= bar.from - perPixel && at <= (bar.to ?? now()) + perPixel);
    return {row, mark, bar: bars.findLast(bar => bar.lane === lane) ?? bars.at(-1)};
  }
  function showTip() {
    const {row, mark, bar} = drag || !pointer ? {} : find(pointer.x, pointer.y);
    show(tip, Boolean(row));
    if (!row) return;
    const what = mark ? [h('strong', {}, `Died: ${deathName(mark.death)}`), mark.death.job && h('div', {}, `Job ${mark.death.job}`), h('div', {}, clock(mark.at, true))]
      : bar ? [h('strong', {}, bar.job), h('div', {}, [bar.attempt && `Attempt ${bar.attempt}, `, `${bar.outcome}, ${span((bar.to ?? now()) - bar.from)}`]), h('div', {}, clock(bar.from, true))]
        : [];
    become(tip, h('div', {}, what, h('div', {class: 'muted'}, row.worker)));
    tip.style.left = `${Math.min(pointer.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(pointer.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  canvas.addEventListener('wheel', event => {
    event.preventDefault();
    if (event.shiftKey) scroller.scrollTop += event.deltaY || event.deltaX;
    else move(length * 1.002 ** event.deltaY, timeAt(Math.max(event.offsetX, gutter(canvas.clientWidth))));
  }, {passive: false});
  canvas.addEventListener('pointerdown', event => {
    canvas.setPointerCapture(event.pointerId);
    drag = {x: event.clientX, y: event.clientY, end: visibleTime().to, top: scroller.scrollTop, far: false};
  });
  canvas.addEventListener('pointermove', event => {
    if (drag) {
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      drag.far ||= Math.abs(dx) + Math.abs(dy) > 4;
      if (drag.far) {
        scroller.scrollTop = drag.top - dy;
        place(drag.end - dx * length / (canvas.clientWidth - gutter(canvas.clientWidth)));
      }
    }
    pointer = {x: event.offsetX, y: event.offsetY, clientX: event.clientX, clientY: event.clientY};
    showTip();
  });
  canvas.addEventListener('pointerup', event => {
    const {bar} = drag && !drag.far ? find(event.offsetX, event.offsetY) : {};
    drag = null;
    if (bar) location.hash = link('job', bar.job);
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  canvas.addEventListener('pointerleave', () => {
    pointer = null;
    showTip();
  });
  canvas.addEventListener('keydown', event => {
    const keys = {
      '+': () => zoom(0.5), '-': () => zoom(2), Home: live, ArrowLeft: () => place(visibleTime().to - length / 10), ArrowRight: () => place(visibleTime().to + length / 10),
      ArrowUp: () => { scroller.scrollTop -= ROW; }, ArrowDown: () => { scroller.scrollTop += ROW; },
    };
    if (!Object.hasOwn(keys, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  scroller.addEventListener('scroll', later);

  return {
    title: target ? `Timeline of ${target}` : 'Timeline',
    node: h('div', {}, target && h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: link('group', target)}, target)), h('h1', {}, 'Timeline'),
      h('div', {class: 'filters'},
        h('span', {class: 'muted'}, 'Since this view was opened. Zoom with the wheel, drag to move, Shift and wheel for more workers.'),
        h('div', {class: 'actions'}, h('button', {type: 'button', onclick: () => zoom(0.5)}, 'Zoom in'), h('button', {type: 'button', onclick: () => zoom(2)}, 'Zoom out'),
          h('button', {type: 'button', onclick: live}, 'Now'))),
      note, h('section', {class: 'card'}, scroller), h('section', {class: 'card'}, counts.node), tip),
    onEvent: later,
    close: () => abort.abort(),
    tick: later,
  };
}
