// SPDX-License-Identifier: MIT
// Jobs: lists of them, and the life of one as a timeline.

import {h, become, sync, svg, setText, setState, show, stateMark, table, row, facts} from './element.js';
import {parentsTree} from './tree.js';
import {stackCard} from './stack.js';
import {number, span, since, cause, payload, link, clock, moment, ago} from './format.js';

const LIVE = ['queued', 'running', 'backoff', 'delayed', 'pending'];
const COLUMNS = [
  {title: 'Job', class: 'name'}, {title: 'State'}, {title: 'Group'}, {title: 'Worker'}, {title: 'Attempt', class: 'number'}, {title: 'Accepted', class: 'number'},
  {title: 'Took', class: 'number'},
];

/** How long from acceptance to the end, or until now. */
const age = job => span((job.ended_at ?? Date.now() * 1000) - job.created_at);

function jobsTable() {
  const jobs = table('Jobs', COLUMNS);
  const create = job => {
    const node = row(COLUMNS);
    node.state = stateMark(job.state);
    node.children[0].append(h('a', {class: 'id strong', href: link('job', job.id)}, job.id));
    node.children[1].append(node.state);
    const owner = job.key && job.group ? `${job.group} · ${job.key}` : job.group;
    node.children[2].append(h('a', {href: link('group', job.group)}, owner));
    return node;
  };
  const update = (node, job) => {
    setState(node.state, job.state);
    setText(node.children[3], job.worker ?? '');
    setText(node.children[4], job.attempt ? `${job.attempt} of ${job.max_attempts}` : '');
    setText(node.children[5], ago(job.created_at));
    setText(node.children[6], job.ended_at ? age(job) : '');
  };
  return {node: jobs.node, update: items => sync(jobs.body, items, job => job.id, create, update)};
}

export function jobsView(app, group = '') {
  const states = ['', ...LIVE, 'succeeded', 'rejected', 'cancelled', 'dead'];
  const state = h('select', {}, states.map(name => h('option', {value: name}, name || 'live')));
  const note = h('p', {class: 'muted'});
  const jobs = jobsTable();
  const empty = h('p', {class: 'empty', hidden: true}, 'There are no such jobs now.');
  const more = h('button', {type: 'button', hidden: true}, 'Show more');
  let cursor = null;
  let items = [];
  let deep = false;

  async function load(from) {
    const name = state.value;
    return app.client.get('jobs', {group, state: name, ended: name && !LIVE.includes(name) ? 'true' : null, cursor: from, limit: 100});
  }
  function take(page, before) {
    items = before.concat(page.jobs);
    cursor = page.next;
    jobs.update(items);
    show(empty, items.length === 0);
    show(more, cursor !== undefined && cursor !== null);
  }
  async function refresh() {
    deep = false;
    take(await load(null), []);
    setText(note, 'In no particular order. Ended jobs are listed as long as their results are kept (ResultTTLSec=).');
  }
  more.addEventListener('click', async () => {
    deep = true;
    take(await load(cursor), items);
  });
  state.addEventListener('change', refresh);
  return {
    title: 'Jobs',
    node: h('div', {}, group && h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: link('group', group)}, group)),
            h('h1', {}, 'Jobs'), h('div', {class: 'filters'}, h('label', {}, 'State', state)), note,
            h('section', {class: 'card'}, jobs.node, empty, h('div', {class: 'more'}, more))),
    async tick() {
      if (!deep) await refresh();
    },
  };
}

/** The steps that are known: {at, title, detail, tone}. */
function stepsOf(job) {
  const steps = [{at: job.created_at, title: 'Accepted', detail: `in ${job.group}${job.key ? `, key ${job.key}` : ''}, priority ${job.priority}`, tone: 'quiet'}];
  for (const attempt of job.attempts)
    steps.push({at: attempt.at, title: `Attempt ${attempt.number} failed`, tone: 'bad',
                detail: `on ${attempt.worker}: ${attempt.detail ?? cause(attempt.cause)}${attempt.top ? `, in ${attempt.top}` : ''}`});
  const started = job.started_at && !job.attempts.some(attempt => attempt.number === job.attempt);
  if (started) steps.push({at: job.started_at, title: `Attempt ${job.attempt} began`, detail: job.worker ? `on ${job.worker}` : '', tone: 'busy'});
  if (job.next_attempt_at && !job.ended_at)
    steps.push({at: job.next_attempt_at, title: job.state === 'delayed' ? 'Start time' : 'Next attempt', detail: '', tone: 'warn'});
  steps.sort((a, b) => a.at - b.at);
  // Last, although its last attempt was noted a moment later.
  if (job.ended_at) steps.push({at: job.ended_at, title: `Ended: ${job.state}`, detail: job.attempts.at(-1)?.detail === job.reason ? '' : job.reason, tone: job.state === 'succeeded' ? 'good' : job.state === 'cancelled' ? 'quiet' : 'bad'});
  return steps;
}

/** A bar from acceptance to end: what lies between two steps has the colour of the first. */
function lifeBar(steps, end) {
  const begin = steps[0].at;
  const total = Math.max(1, end - begin);
  const x = at => Math.min(1000, Math.max(0, (at - begin) / total * 1000));
  const node = svg('svg', {class: 'life', viewBox: '0 0 1000 12', preserveAspectRatio: 'none', 'aria-hidden': 'true'});
  steps.forEach((step, i) => {
    const next = steps[i + 1]?.at ?? end;
    const between = step.tone === 'busy' ? 'busy' : 'quiet';
    if (next > step.at) node.append(svg('rect', {x: x(step.at), y: 2, width: x(next) - x(step.at), height: 8, class: `tone-${between}`}));
  });
  for (const step of steps) node.append(svg('rect', {x: Math.min(996, Math.max(0, x(step.at) - 2)), y: 0, width: 4, height: 12, class: `tone-${step.tone}`}));
  return node;
}

const members = counts => `${number(counts.succeeded)} succeeded, ${number(counts.failed)} not, ${number(counts.live)} live${counts.open ? '; open' : ''}`;

const ITEMS_SHOWN = 500;

/** What a job emits, the latest last; not shown before there is something. */
function emitted(app, id) {
  const note = h('p', {class: 'muted', hidden: true});
  const list = h('ol', {class: 'events', 'aria-label': 'Emitted, latest last'});
  const node = h('section', {class: 'card pad', hidden: true}, h('h2', {}, 'Emitted'), note, list);
  const abort = new AbortController();
  app.client.follow(id, (type, data) => {
    if (type === 'dropped') setText(note, `${number(data)} older items were dropped.`);
    if (type === 'dropped') show(note, true);
    if (type !== 'item') return;
    show(node, true);
    list.append(h('li', {}, h('time', {title: moment(data.at)}, clock(data.at, true)), h('span', {class: 'grow'}, payload(data.data))));
    if (list.childElementCount > ITEMS_SHOWN) list.firstChild.remove();
  }, abort.signal);
  return {node, close: () => abort.abort()};
}

export function jobView(app, id) {
  const items = emitted(app, id);
  const parents = parentsTree(app);
  const state = stateMark('');
  const cancel = h('button', {type: 'button', class: 'danger', hidden: true, onclick: () => app.change('cancel', {id}, `Cancel the job ${id}?`)}, 'Cancel …');
  const stacks = stackCard(app, {job: id});
  const bar = h('div');
  const steps = h('ol', {class: 'steps'});
  const details = h('div');
  const contents = h('div');
  let ended = false;
  let drawn = '';

  function draw(job) {
    setState(state, job.state);
    show(stacks, job.state === 'running');
    show(cancel, app.mayChange && !job.ended_at && !job.cancel_requested);
    const list = stepsOf(job);
    become(bar, lifeBar(list, job.ended_at ?? Math.max(Date.now() * 1000, list.at(-1).at)));
    become(steps, ...list.map((step, i) => h('li', {'data-tone': step.tone},
      h('time', {datetime: new Date(step.at / 1000).toISOString(), title: moment(step.at)}, clock(step.at, true)), h('div', {}, h('strong', {}, step.title),
        step.detail && h('span', {class: 'muted'}, ` ${step.detail}`), step.at - list[Math.max(0, i - 1)].at >= 1000 && h('span', {class: 'small muted after'}, `${span(step.at - list[i - 1].at)} later`)))));
    become(details, facts(['Group', h('a', {href: link('group', job.group)}, job.group)], ['Key', job.key], ['Attempts', `${number(job.failed_attempts)} failed of ${job.max_attempts}`],
      ['Worker', job.worker && h('a', {href: link('worker', job.worker)}, job.worker)], [job.ended_at ? 'Took' : 'Age', age(job)],
      ['Running for', job.started_at && !job.ended_at ? since(job.started_at) : null], ['Code', job.code],
      ['Cancellation', job.cancel_requested && !job.ended_at ? 'requested' : null], ['Missing', job.missing],
      ['Batch', job.batch && h('a', {class: 'id', href: link('job', job.batch)}, job.batch)], ['Members', job.members && members(job.members)],
      ['Jobs that wait for it', job.children ? number(job.children) : null]));
  }

  async function drawContents(job) {
    let lines = [];
    if (!job.restricted) lines = await app.client.get('log', {job: id}).then(reply => reply.lines, () => []);
    become(contents,
      job.restricted ? h('p', {class: 'muted'}, 'Results, reasons and output are only for users who may read contents (ReadGroup=).') : '',
      job.result ? h('section', {class: 'card pad'}, h('h2', {}, 'Result'), h('pre', {tabindex: '0', 'aria-label': 'Result'}, payload(job.result) || '(empty)')) : '',
      job.published ? h('section', {class: 'card pad'}, h('h2', {}, 'State page'), h('pre', {tabindex: '0', 'aria-label': 'State page'}, payload(job.published))) : '',
      lines.length ? h('section', {class: 'card pad'}, h('h2', {}, 'Output'), h('pre', {tabindex: '0', 'aria-label': 'Output'}, lines.join('\n'))) : '');
  }

  return {
    title: id,
    node: h('div', {}, h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: '#/jobs'}, 'Jobs')),
            h('div', {class: 'headline'}, h('h1', {class: 'id'}, id), state, h('div', {class: 'actions'}, cancel)),
            h('section', {class: 'card pad'}, h('h2', {}, 'Life'), bar, steps), h('section', {class: 'card pad', 'aria-label': 'Numbers'}, details), parents.node, stacks, items.node, contents),
    close: items.close,
    async tick() {
      if (ended) return;
      const {job} = await app.client.get('job', {id});
      const version = JSON.stringify(job);
      draw(job);
      parents.update(job);
      if (version !== drawn) await drawContents(job);
      drawn = version;
      ended = Boolean(job.ended_at);
    },
  };
}
