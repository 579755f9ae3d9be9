// SPDX-License-Identifier: MIT
// The jobs that a job waits for, and those that these wait for.

import {h, sync, setState, setText, show, stateMark} from './element.js';
import {link} from './format.js';

const CONDITIONS = {success: 'must succeed', failure: 'must fail', end: 'must end'};

/** An item of the tree: its own parents are read when it is opened. */
function branch(app, parent) {
  const state = stateMark('');
  const list = h('ul', {class: 'tree'});
  const note = h('p', {class: 'muted', hidden: true}, 'It waits for no other job.');
  const details = h('details', {}, h('summary', {}, state, h('a', {class: 'id strong', href: link('job', parent.id)}, parent.id),
    h('span', {class: 'muted grow'}, CONDITIONS[parent.condition] ?? '')), note, list);
  details.addEventListener('toggle', async () => {
    if (!details.open) return;
    const parents = await app.client.get('job', {id: parent.id}).then(reply => reply.job.after ?? [], () => []);
    draw(app, list, parents);
    show(note, parents.length === 0);
  });
  const node = h('li', {}, details);
  node.state = state;
  return node;
}

function draw(app, list, parents) {
  sync(list, parents, parent => parent.id, parent => branch(app, parent), (node, parent) => setState(node.state, parent.state ?? 'unknown'));
}

/** A section that is hidden until update() gets a job with parents. */
export function parentsTree(app) {
  const list = h('ul', {class: 'tree'});
  const title = h('h2');
  const node = h('section', {class: 'card pad', hidden: true}, title, list);
  return {
    node,
    update(job) {
      show(node, Boolean(job.after?.length));
      setText(title, job.waits_for ? 'Waits for' : 'Has waited for');
      draw(app, list, job.after ?? []);
    },
  };
}
