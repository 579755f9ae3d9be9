// SPDX-License-Identifier: MIT
// Workers: the table of a group's workers, one of them, and their output.

import {h, become, sync, setText, setState, show, stateMark, table, row, facts} from './element.js';
import {number, since, ago, cause, payload, link, moment, span} from './format.js';
import {stackCard} from './stack.js';

const COLUMNS = [
  {title: 'Worker', class: 'name'}, {title: 'State'}, {title: 'Since', class: 'number'}, {title: 'Job'}, {title: 'Jobs done', class: 'number'},
  {title: 'Restarts', class: 'number'}, {title: 'Last death'},
];

export const identity = worker => `${worker.name}:${worker.generation}:${worker.replacement ?? ''}`;

/** What a worker's template does, and how long starts take without and with it. */
function template(of) {
  const times = [of.exec_usec && `${span(of.exec_usec)} to start by exec`, of.fork_usec && `${span(of.fork_usec)} by fork`].filter(Boolean);
  return `${of.state}${of.pid ? `, process ${of.pid}` : ''}${of.reason ? `, as it ${of.reason}` : ''}${times.length ? `; ${times.join(', ')}` : ''}`;
}

export function workersTable() {
  const workers = table('Workers', COLUMNS);
  const create = worker => {
    const node = row(COLUMNS);
    const parts = node.parts = {
      state: stateMark(worker.state), note: h('span', {class: 'muted small'}), job: h('a', {class: 'id'}), status: h('span', {class: 'muted small'}),
    };
    node.children[0].append(h('a', {class: 'strong', href: link('worker', worker.name)}, worker.name.split('/').at(-1)), ' ', parts.note);
    node.children[1].append(parts.state);
    node.children[3].append(parts.job, parts.status);
    return node;
  };
  const update = (node, worker) => {
    const parts = node.parts;
    setState(parts.state, worker.state);
    setText(parts.note, worker.replacement ?? (worker.pid ? `process ${worker.pid}` : ''));
    setText(node.children[2], since(worker.job_since_at ?? worker.since_at));
    setText(parts.job, worker.job);
    show(parts.job, Boolean(worker.job));
    if (worker.job) parts.job.href = link('job', worker.job);
    setText(parts.status, worker.status);
    setText(node.children[4], number(worker.jobs_done));
    setText(node.children[5], number(worker.restarts));
    setText(node.children[6], worker.last_death ? `${cause(worker.last_death.cause)}, ${ago(worker.last_death.at)}` : '');
  };
  return {node: workers.node, update: items => sync(workers.body, items, identity, create, update)};
}

export function workerView(app, name) {
  const state = stateMark('');
  const details = h('div');
  const published = h('pre');
  const publishedCard = h('section', {class: 'card pad', hidden: true}, h('h2', {}, 'State page'), published);
  const output = h('pre', {tabindex: '0', 'aria-label': 'Output'});
  const outputNote = h('p', {class: 'muted'});
  const group = name.split('/').slice(0, -1).join('/');
  const restart = h('button', {type: 'button', hidden: true,
                               onclick: () => app.change('restart', {target: name}, `Restart ${name}? It finishes its job first.`)}, 'Restart …');

  async function showOutput() {
    try {
      const {lines} = await app.client.get('log', {target: name});
      setText(output, lines.join('\n'));
      setText(outputNote, lines.length ? '' : 'There is no output.');
    } catch (failure) {
      setText(output, '');
      setText(outputNote, failure.status === 403 ? 'Output is only for users who may read contents (ReadGroup=).' : failure.message);
    }
    show(output, output.textContent !== '');
  }

  return {
    title: name,
    node: h('div', {},
      h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: '#/'}, 'Groups'), ' / ', h('a', {href: link('group', group)}, group)),
      h('div', {class: 'headline'}, h('h1', {}, name), state, h('div', {class: 'actions'}, restart)),
      h('section', {class: 'card pad', 'aria-label': 'Numbers'}, details), publishedCard, stackCard(app, {target: name}),
      h('section', {class: 'card pad'}, h('h2', {}, 'Last output'), outputNote, output)),
    async tick() {
      const reply = await app.client.get('status', {target: name, limit: 200});
      const of = reply.groups[0].cells?.[0] ?? reply.groups[0];
      const worker = of.workers[0];
      setState(state, worker.state);
      become(details, facts(
        ['Process', worker.pid && `${worker.pid} (number ${worker.generation})`], ['In this state for', since(worker.since_at)],
        ['Job', worker.job && h('a', {class: 'id', href: link('job', worker.job)}, worker.job)], ['Busy with it for', since(worker.job_since_at)],
        ['Status', worker.status], ['Jobs done', number(worker.jobs_done)], ['Restarts', number(worker.restarts)], ['Recycled', number(worker.recycled)],
        ['Template', worker.template && template(worker.template)], ['Failures in a row', worker.failures], ['Starts again at', worker.restart_at && moment(worker.restart_at)],
        ['Last death', worker.last_death && `${worker.last_death.detail}${worker.last_death.top ? `, in ${worker.last_death.top}` : ''}, ${ago(worker.last_death.at)}`]));
      show(publishedCard, Boolean(worker.published));
      setText(published, worker.published ? payload(worker.published) : '');
      show(restart, app.mayChange);
      await showOutput();
    },
  };
}

/** What all workers of a group wrote last. */
export function logView(app, name) {
  const output = h('pre', {tabindex: '0', 'aria-label': 'Output'});
  const note = h('p', {class: 'muted'});
  return {
    title: `Output of ${name}`,
    node: h('div', {}, h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: link('group', name)}, name)),
            h('h1', {}, 'Last output'), h('section', {class: 'card pad'}, note, output)),
    async tick() {
      try {
        const {lines} = await app.client.get('log', {target: name});
        setText(output, lines.join('\n'));
        setText(note, lines.length ? '' : 'There is no output.');
      } catch (failure) {
        if (failure.status !== 403) throw failure;
        setText(note, 'Output is only for users who may read contents (ReadGroup=).');
      }
      show(output, output.textContent !== '');
    },
  };
}
