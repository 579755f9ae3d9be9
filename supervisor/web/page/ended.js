// SPDX-License-Identifier: MIT
// The history of ended jobs: a search, and what ended on which day.

import {h, become, sync, svg, setText, setState, show, stateMark, table, row} from './element.js';
import {number, plural, span, link, moment, ago, tone, cause} from './format.js';
import {HIDDEN} from './death.js';

const COLUMNS = [
  {title: 'Job', class: 'name'}, {title: 'State'}, {title: 'Group'}, {title: 'Ended', class: 'number'}, {title: 'Took', class: 'number'},
  {title: 'Failed', class: 'number'}, {title: 'Why'},
];
const STATES = ['', 'succeeded', 'rejected', 'cancelled', 'dead'];
/** A pause in typing, after which it is searched. */
const PAUSE_MS = 250;
/** Between two readings of the newest, unless the user has asked for more. */
const REFRESH_MS = 5000;
/** A page of a long search may be empty. */
const PAGES_MAX = 20;
const DAYS_MAX = 60;

/** Midnight of the day, local, in milliseconds. */
const dayOf = usec => new Date(usec / 1000).setHours(0, 0, 0, 0);

/** A bar for each day from the first to the last of these jobs, in parts by how they ended. */
function daysChart(jobs) {
  const days = new Map();
  for (const job of jobs) {
    const day = days.get(dayOf(job.ended_at)) ?? {};
    days.set(dayOf(job.ended_at), {...day, [tone(job.state)]: (day[tone(job.state)] ?? 0) + 1});
  }
  const first = Math.min(...days.keys());
  const n = Math.min(DAYS_MAX, Math.round((Math.max(...days.keys()) - first) / 86400000) + 1);
  const total = day => Object.values(day).reduce((sum, count) => sum + count, 0);
  const most = Math.max(1, ...[...days.values()].map(total));
  const node = svg('svg', {class: 'days', viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img',
                           'aria-label': [...days].map(([at, day]) => `${moment(at * 1000).slice(0, 10)}: ${total(day)}`).join(', ')});
  for (const [at, day] of days) {
    const x = Math.round((at - first) / 86400000);
    let y = 100;
    for (const [name, count] of Object.entries(day)) {
      y -= count / most * 96;
      if (x < n) node.append(svg('rect', {x: x * 1000 / n + 1, y, width: Math.max(2, 1000 / n - 2), height: count / most * 96, class: `tone-${name}`}));
    }
  }
  return node;
}

function jobsTable() {
  const jobs = table('Ended jobs', COLUMNS);
  const create = job => {
    const node = row(COLUMNS);
    node.children[0].append(h('a', {class: 'id strong', href: link('job', job.id)}, job.id));
    node.children[1].append(stateMark(job.state));
    node.children[2].append(h('a', {href: link('group', job.group)}, job.key ? `${job.group} · ${job.key}` : job.group));
    setText(node.children[4], span(job.ended_at - job.created_at));
    setText(node.children[5], job.failed_attempts ? number(job.failed_attempts) : '');
    setText(node.children[6], job.reason ?? (job.last_failure ? cause(job.last_failure) : ''));
    return node;
  };
  const update = (node, job) => setText(node.children[3], ago(job.ended_at));
  return {node: jobs.node, update: items => sync(jobs.body, items, job => `${job.id} ${job.ended_at}`, create, update)};
}

const choice = (label, options) => {
  const select = h('select', {}, options.map(([value, text]) => h('option', {value}, text)));
  return {select, node: h('label', {}, label, select)};
};

/** A date and a time, local; usec() is null without one. */
function date(label) {
  const input = h('input', {type: 'datetime-local'});
  return {input, node: h('label', {}, label, input), usec: () => input.value ? new Date(input.value).getTime() * 1000 : null};
}

export function endedView(app, group = '') {
  const text = h('input', {type: 'search', placeholder: 'Words of id, key, reason or tag …', 'aria-label': 'Search', maxlength: 200});
  const state = choice('State', STATES.map(name => [name, name || 'all']));
  const from = date('Ended from');
  const to = date('to');
  const note = h('p', {class: 'muted', role: 'status'});
  const hidden = h('p', {class: 'muted', hidden: true}, HIDDEN);
  const chart = h('section', {class: 'card pad', hidden: true, 'aria-label': 'Ended jobs by day'});
  const jobs = jobsTable();
  const more = h('button', {type: 'button', hidden: true}, 'Show more');
  let items = [];
  let cursor = null;
  let asked = 0;
  let timer = null;
  let drawn = 0;
  let deep = false;

  function draw() {
    jobs.update(items);
    show(hidden, items.some(job => job.restricted));
    show(more, cursor !== null);
    show(chart, items.length > 0);
    if (items.length > 0) become(chart, daysChart(items));
    setText(note, `${plural(items.length, 'job')}${cursor !== null ? ', newest first; there may be more' : ''}. Groups with History= keep their ended jobs.`);
  }
  /** Reads one page after `before`; a later search overtakes it. */
  async function load(start, before) {
    const mine = ++asked;
    let found = [];
    let next = start;
    for (let page = 0; page < PAGES_MAX && found.length === 0 && next !== undefined; page++) {
      const reply = await app.client.get('ended-jobs', {group, text: text.value.trim(), state: state.select.value,
                                                             since_at: from.usec(), until_at: to.usec(), cursor: next, limit: 100});
      if (mine !== asked) return;
      found = reply.jobs;
      next = reply.next;
    }
    items = before.concat(found);
    cursor = next ?? null;
    draw();
  }
  async function search() {
    timer = null;
    deep = false;
    drawn = Date.now();
    try {
      await load(null, []);
    } catch (failure) {
      items = [];
      cursor = null;
      draw();
      setText(note, failure.message);
    }
  }
  text.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE_MS);
  });
  for (const input of [state.select, from.input, to.input]) input.addEventListener('change', search);
  more.addEventListener('click', () => {
    deep = true;
    load(cursor, items);
  });
  return {
    title: 'History',
    node: h('div', {}, group && h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: link('group', group)}, group)),
            h('h1', {}, 'History'), h('div', {class: 'filters'}, text, state.node, from.node, to.node), note, hidden, chart,
            h('section', {class: 'card'}, jobs.node, h('div', {class: 'more'}, more))),
    close: () => clearTimeout(timer),
    async tick() {
      if (!deep && timer === null && Date.now() - drawn >= REFRESH_MS) await search();
    },
  };
}
