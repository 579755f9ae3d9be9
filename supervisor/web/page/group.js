// SPDX-License-Identifier: MIT
// All groups, and one of them with its cells and workers.

import {h, become, sync, setText, setAttribute, setState, show, stateMark, table, row, facts} from './element.js';
import {number, rate, span, since, bytes, ago, plural, link} from './format.js';
import {line, workersBar} from './chart.js';
import {workersTable} from './worker.js';
import {limitsTable} from './limit.js';
import {placeItem} from './death.js';

const PAGE = 50;
const PLACES = 10;

/** The state as troupectl calls it. */
const stateOf = group => group.fault && group.state === 'failed' ? 'cannot start' : group.state;

/** Why a group is not well, in a sentence; null if it is. */
export function trouble(group) {
  if (group.fault) return group.fault;
  if (group.store_problem) return group.store_problem;
  switch (group.state) {
  case 'failing': return `${number(group.last_jobs_dead)} of the last ${plural(group.last_jobs, 'job')} are dead`;
  case 'failed': return 'its workers died too often';
  case 'degraded': return group.behind ? `the new program did not become ready${group.up > 0 ? '; the old one keeps running' : ''}` : 'some workers are not up';
  default: return null;
  }
}

/** Returns the groups with those in trouble first, each part in its order. */
export const troubleFirst = groups => [...groups.filter(group => trouble(group) !== null), ...groups.filter(group => trouble(group) === null)];

const COLUMNS = [
  {title: 'Group', class: 'name'}, {title: 'Jobs per second', class: 'wide'}, {title: 'Waiting', class: 'number'},
  {title: 'Workers', class: 'wide'}, {title: 'Duration (median, 99 %)', class: 'number'}, {title: 'Dead', class: 'number'},
  {title: 'Deaths', class: 'number'},
];

function createRow(group) {
  const node = row(COLUMNS);
  const parts = {
    state: stateMark(stateOf(group)), description: h('span', {class: 'muted description'}), chart: line(), rate: h('span', {class: 'figure'}),
    oldest: h('span', {class: 'muted small'}), waiting: h('span'), bar: workersBar(), workers: h('span', {class: 'muted small'}),
    p50: h('span'), p99: h('span', {class: 'muted'}), dead: h('span'), deaths: h('span'),
  };
  node.parts = parts;
  const cells = [...node.children];
  cells[0].append(h('div', {class: 'title'}, h('a', {class: 'strong', href: link('group', group.name)}, group.name), parts.state), parts.description);
  cells[1].append(h('div', {class: 'spark'}, parts.chart.node, parts.rate));
  cells[2].append(parts.waiting, parts.oldest);
  cells[3].append(parts.bar.node, parts.workers);
  cells[4].append(parts.p50, ' ', parts.p99);
  cells[5].append(parts.dead);
  cells[6].append(parts.deaths);
  return node;
}

function workersText(group) {
  const counts = group.workers_by_state ?? {};
  if (group.cells_total !== undefined) return `${plural(group.cells_total, 'cell')}, ${number(counts.busy ?? 0)} of ${number(group.workers_total)} busy`;
  const up = (counts.idle ?? 0) + (counts.busy ?? 0);
  const total = group.workers_total ?? 0;
  return group.type === 'service' ? `${number(up)} of ${number(total)} up` : `${number(counts.busy ?? 0)} of ${number(total)} busy`;
}

function updateRow(node, group, track) {
  const parts = node.parts;
  const service = group.type === 'service';
  setState(parts.state, stateOf(group));
  setText(parts.description, trouble(group) ?? group.description);
  setAttribute(parts.description, 'data-bad', trouble(group) !== null);
  parts.chart.update(service ? [] : track.rate.values);
  setText(parts.rate, service ? '' : rate(track.rate.last));
  setText(parts.waiting, service ? '' : number(group.queued + group.waiting));
  setText(parts.oldest, group.oldest_queued_at && group.queued > 0 ? since(group.oldest_queued_at) : '');
  parts.bar.update(group.workers_by_state);
  setText(parts.workers, workersText(group));
  for (const cell of [1, 2, 4, 5]) setAttribute(node.children[cell], 'data-none', service);
  setText(parts.p50, span(group.p50_usec));
  setText(parts.p99, span(group.p99_usec));
  setText(parts.dead, service ? '' : number(group.dead));
  setAttribute(parts.dead, 'data-bad', group.dead > 0);
  setText(parts.deaths, number(group.deaths));
  setAttribute(parts.deaths, 'data-bad', group.deaths > 0);
}

function tile(title) {
  const value = h('strong');
  const note = h('span', {class: 'muted small'});
  const chart = line('large');
  return {value, note, chart, node: h('div', {class: 'tile'}, h('h3', {}, title), value, note, chart.node)};
}

export function groupsView(app) {
  const tiles = {rate: tile('Jobs per second'), waiting: tile('Jobs waiting'), running: tile('Jobs running'), dead: tile('Dead per second')};
  const groups = table('Groups', COLUMNS);
  const empty = h('p', {class: 'empty', hidden: true}, 'There are no groups yet: see troupe.group(5).');
  return {
    title: 'Groups',
    node: h('div', {}, h('h1', {class: 'hidden'}, 'Groups'), h('section', {class: 'tiles', 'aria-label': 'All groups'}, Object.values(tiles).map(t => t.node)),
            h('section', {class: 'card', 'aria-label': 'Groups'}, groups.node, empty)),
    tick() {
      const all = app.history.all;
      const sum = name => app.groups.reduce((n, group) => n + (group[name] ?? 0), 0);
      setText(tiles.rate.value, rate(all.rate.last));
      setText(tiles.rate.note, `${number(sum('succeeded'))} succeeded so far`);
      tiles.rate.chart.update(all.rate.values);
      setText(tiles.waiting.value, number(sum('queued') + sum('waiting')));
      setText(tiles.waiting.note, sum('waiting') ? `${number(sum('waiting'))} of them for their time` : bytes(sum('queue_bytes')));
      tiles.waiting.chart.update(all.queue.values);
      setText(tiles.running.value, number(sum('running')));
      setText(tiles.running.note, plural(app.info.workers ?? 0, 'worker'));
      tiles.running.chart.update(all.busy.values);
      setText(tiles.dead.value, rate(all.dead.last));
      setText(tiles.dead.note, `${number(sum('dead'))} dead, ${number(sum('deaths'))} deaths of workers`);
      tiles.dead.chart.update(all.dead.values);
      setAttribute(tiles.dead.node, 'data-bad', (all.dead.last ?? 0) > 0);
      sync(groups.body, troubleFirst(app.groups), group => group.name, createRow, (node, group) => updateRow(node, group, app.history.of(group.name)));
      show(empty, app.known && app.groups.length === 0 && !app.info.config_problem);
    },
  };
}

const CELL_COLUMNS = [
  {title: 'Cell', class: 'name'}, {title: 'State'}, {title: 'Waiting', class: 'number'}, {title: 'Running', class: 'number'}, {title: 'Workers', class: 'wide'},
  {title: 'Duration (median, 99 %)', class: 'number'}, {title: 'Succeeded', class: 'number'}, {title: 'Dead', class: 'number'},
];

function cellsTable(group) {
  const cells = table(`Cells of ${group}`, CELL_COLUMNS);
  const create = cell => {
    const node = row(CELL_COLUMNS);
    const parts = node.parts = {state: stateMark(cell.state), bar: workersBar(), workers: h('span', {class: 'muted small'})};
    node.children[0].append(h('a', {class: 'strong', href: link('group', `${group}/${cell.key}`)}, cell.key));
    node.children[1].append(parts.state);
    node.children[4].append(parts.bar.node, parts.workers);
    return node;
  };
  const update = (node, cell) => {
    setState(node.parts.state, cell.state);
    setText(node.children[2], number(cell.queued + cell.waiting));
    setText(node.children[3], number(cell.running));
    node.parts.bar.update(cell.workers_by_state);
    setText(node.parts.workers, plural(cell.workers_total ?? 0, 'worker'));
    setText(node.children[5], [span(cell.p50_usec), span(cell.p99_usec)].filter(Boolean).join(' · '));
    setText(node.children[6], number(cell.succeeded));
    setText(node.children[7], number(cell.dead));
  };
  return {node: cells.node, update: items => sync(cells.body, items, cell => cell.key, create, update)};
}

/** Buttons for the pages of a list whose length is known. */
function pager(onChange) {
  const text = h('span', {class: 'muted'});
  let offset = 0;
  const move = by => { offset = Math.max(0, offset + by); onChange(); };
  const before = h('button', {type: 'button', onclick: () => move(-PAGE)}, 'Back');
  const after = h('button', {type: 'button', onclick: () => move(PAGE)}, 'Next');
  return {
    node: h('div', {class: 'pager', hidden: true}, before, text, after),
    get offset() { return offset; },
    update(total) {
      if (offset >= total) offset = Math.max(0, Math.floor((total - 1) / PAGE) * PAGE);
      show(this.node, total > PAGE);
      before.disabled = offset === 0;
      after.disabled = offset + PAGE >= total;
      setText(text, `${number(offset + 1)} to ${number(Math.min(total, offset + PAGE))} of ${number(total)}`);
    },
  };
}

function actions(app, name, isGroup, state, elastic) {
  const target = name;
  const change = (verb, question) => () => app.change(verb, {target}, question);
  const resize = () => app.ask({title: `Resize ${name}`, label: 'Workers', value: '', action: 'Resize', pattern: '[0-9]{1,4}'})
    .then(size => size && app.change('resize', {target, size: Number(size)}));
  const paused = state === 'paused';
  return h('div', {class: 'actions'},
    isGroup && h('button', {type: 'button', onclick: change(paused ? 'resume' : 'pause')}, paused ? 'Resume' : 'Pause'),
    isGroup && !elastic && h('button', {type: 'button', onclick: resize}, 'Resize …'),
    h('button', {type: 'button', onclick: change('reset')}, 'Reset'),
    h('button', {type: 'button', onclick: change('restart', `Restart all workers of ${name}? Each finishes its job first.`)}, 'Restart …'),
    h('button', {type: 'button', class: 'danger', onclick: change(state === 'stopped' ? 'start' : 'stop', state === 'stopped' ? null : `Stop ${name}?`)},
      state === 'stopped' ? 'Start' : 'Stop …'));
}

function groupFacts(group, cell) {
  const of = cell ?? group;
  return facts(
    of.size_max !== undefined && ['Size', `${number(of.size)} of ${of.size_min}..${of.size_max}`],
    of.wanted !== undefined && ['Workers wanted', number(of.wanted)], of.held && ['Held by', heldBy(of)],
    ['Succeeded', number(of.succeeded)], ['Rejected', number(of.rejected)], ['Cancelled', number(of.cancelled)], ['Dead', number(of.dead)],
    ['Retries', number(of.retries)], ['Refused', number(of.refused)], ['Deaths of workers', number(of.deaths)],
    ['In the queue', `${number(of.queued)} (${bytes(of.queue_bytes)})`], ['Oldest in the queue', of.oldest_queued_at && of.queued > 0 ? since(of.oldest_queued_at) : null],
    ['Waiting for a retry or start time', number(of.waiting)], ['Duration, median', span(of.p50_usec)], ['Duration, 99 %', span(of.p99_usec)],
    ['Work only, median', span(of.p50_work_usec)], ['Work only, 99 %', span(of.p99_work_usec)],
    !cell && ['Kept results', `${number(group.results)} (${bytes(group.results_bytes)})`],
    !cell && group.last_dead && ['Last dead job', h('a', {href: link('job', group.last_dead.job)}, `${group.last_dead.job}, ${ago(group.last_dead.at)}`)],
    !cell && group.no_effect && ['Limits without effect', group.no_effect],
    !cell && group.sandbox && ['Sandbox', group.sandbox]);
}

/** Why a pool whose size follows its work does not have as many workers as are wanted. */
function heldBy(of) {
  if (of.held === 'pressure') return `${{cpu: 'CPU', io: 'I/O'}[of.pressure] ?? of.pressure} pressure, ${span(of.pressure_usec)}/s`;
  if (of.held === 'share') return `its share of PoolMax=${of.pool_max}`;
  if (of.held === 'settling') return 'pressure that the last workers may cause';
  return of.held === 'starting' ? 'workers that are not up yet' : 'Size=';
}

/** One group, or one cell of it: "mail/acme". */
export function groupView(app, name) {
  const [groupName, key] = name.split('/');
  const state = stateMark('');
  const description = h('p', {class: 'muted'});
  const problem = h('p', {class: 'problem', hidden: true});
  const charts = key ? null : {rate: tile('Jobs per second'), waiting: tile('Jobs waiting'), running: tile('Jobs running'), workers: tile('Workers'), wait: tile('Longest wait')};
  const details = h('div');
  const buttons = h('div');
  const limits = limitsTable('Limits');
  const places = h('ul', {class: 'list'});
  const placesCard = h('section', {class: 'card', 'aria-label': 'Deaths by place', hidden: true}, h('div', {class: 'bar-title'}, h('h2', {}, 'Deaths by place')), places);
  const limitsCard = h('section', {class: 'card', 'aria-label': 'Limits', hidden: true}, limits.node);
  const list = h('div');
  const listTitle = h('h2');
  const pages = pager(() => view.tick());
  let shown = null;
  let described = '';

  function showList(kind, items, total) {
    if (!shown || shown.kind !== kind) {
      shown = kind === 'cells' ? cellsTable(groupName) : workersTable(app);
      shown.kind = kind;
      list.replaceChildren(shown.node);
    }
    setText(listTitle, kind === 'cells' ? 'Cells' : 'Workers');
    shown.update(items);
    pages.update(total);
  }

  function updateCharts(group) {
    const track = app.history.of(groupName);
    const elastic = group.wanted !== undefined; // its size follows the work, and it has no cells
    show(charts.workers.node, elastic);
    show(charts.wait.node, elastic);
    if (elastic) {
      setText(charts.workers.value, `${number(group.up)} up`);
      setText(charts.workers.note, `${number(group.wanted)} wanted (dashed)${group.held ? `, held by ${heldBy(group)}` : ''}`);
      charts.workers.chart.update(track.up.values, {other: track.wanted.values, marked: track.pressed.values});
      setText(charts.wait.value, span(track.wait.last ?? 0));
      charts.wait.chart.update(track.wait.values);
    }
    for (const [tileName, series, format] of [['rate', track.rate, rate], ['waiting', track.queue, number], ['running', track.busy, number]]) {
      setText(charts[tileName].value, format(series.last ?? 0));
      charts[tileName].chart.update(series.values);
    }
  }

  const view = {
    title: name,
    node: h('div', {},
      h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: '#/'}, 'Groups'), key && [' / ', h('a', {href: link('group', groupName)}, groupName)]),
      h('div', {class: 'headline'}, h('h1', {}, key ?? groupName), state, buttons), description, problem,
      charts && h('section', {class: 'tiles', 'aria-label': 'Charts'}, Object.values(charts).map(t => t.node)),
      h('section', {class: 'card pad', 'aria-label': 'Numbers'}, details), limitsCard, placesCard,
      h('p', {class: 'links'}, h('a', {href: `${link('jobs', name)}`}, 'Jobs'), ' · ', h('a', {href: link('timeline', groupName)}, 'Timeline'), ' · ', h('a', {href: link('dead-letters', name)}, 'Dead letters'), ' · ',
        h('a', {href: link('deaths', name)}, 'Deaths'), ' · ', h('a', {href: link('log', name)}, 'Output')),
      h('section', {class: 'card', 'aria-label': 'Workers and cells'}, h('div', {class: 'bar-title'}, listTitle, pages.node), list)),
    async tick() {
      const reply = await app.client.get('status', {target: name, offset: pages.offset, limit: PAGE});
      const group = reply.groups[0];
      const cell = key ? group.cells?.[0] : null;
      const of = cell ?? group;
      setState(state, of.state);
      setText(description, key ? `cell of ${groupName}` : group.description);
      setText(problem, key ? '' : trouble(group) ?? '');
      show(problem, !key && trouble(group) !== null);
      become(details, groupFacts(group, cell));
      if (charts) updateCharts(group);
      limits.update(group.limits ?? []);
      show(limitsCard, (group.limits ?? []).length > 0);
      const same = group.deaths > 0 ? (await app.client.get('death-places', {target: name})).places : [];
      become(places, same.slice(0, PLACES).map(placeItem));
      show(placesCard, same.length > 0);
      if (cell) showList('workers', cell.workers ?? [], cell.workers_total ?? 0);
      else if (group.cells) showList('cells', group.cells, group.cells_total ?? group.cells.length);
      else showList('workers', group.workers ?? [], group.workers_total ?? 0);
      const elastic = (of.size_max ?? group.size_max) !== undefined; // its size follows the work
      const wanted = `${app.mayChange} ${of.state} ${elastic}`;
      if (wanted !== described) {
        described = wanted;
        buttons.replaceChildren(...(app.mayChange ? [actions(app, name, true, of.state, elastic)] : []));
      }
    },
  };
  return view;
}
