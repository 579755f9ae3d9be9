// SPDX-License-Identifier: MIT
// Where a running worker or job is: its stacks now, and a flame graph of some seconds.

import {h, setText, show} from './element.js';
import {threadsText} from './death.js';
import {plural} from './format.js';

const PROFILE_USEC = 3e6;

/** Samples by function, from the thread on to what it waits in: {count, functions: Map}. */
function treeOf(stacks) {
  const root = {count: 0, functions: new Map()};
  for (const {thread, functions, waits, count} of stacks) {
    let box = root;
    root.count += count;
    for (const name of [thread, ...functions, ...waits ? ['[waits]'] : []]) {
      if (!box.functions.has(name)) box.functions.set(name, {count: 0, functions: new Map()});
      box = box.functions.get(name);
      box.count += count;
    }
  }
  return root;
}

/** A box as wide as its part of the box around it, with those that it has called below. */
function boxOf(name, box, outer, total) {
  const node = h('div', {class: 'frame'},
    h('span', {title: `${name} (${plural(box.count, 'sample')}, ${(100 * box.count / total).toFixed(1)} %)`, 'data-waits': name === '[waits]'}, name),
    h('div', {}, [...box.functions].map(([inner, below]) => boxOf(inner, below, box, total))));
  node.style.width = `${100 * box.count / outer.count}%`;
  return node;
}

/** The functions in which most samples are, for those who cannot see the graph. */
function summary(stacks, total) {
  const self = new Map();
  for (const {functions, thread, count} of stacks) self.set(functions.at(-1) ?? thread, (self.get(functions.at(-1) ?? thread) ?? 0) + count);
  const most = [...self].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([name, count]) => `${(100 * count / total).toFixed(1)} % in ${name}`);
  return `Flame graph of ${plural(total, 'sample')}: ${most.join(', ')}`;
}

/** parameters: {target}, a worker, or {job}. */
export function stackCard(app, parameters) {
  const note = h('p', {class: 'muted', role: 'status'});
  const text = h('pre', {tabindex: '0', 'aria-label': 'Stacks', hidden: true});
  const graph = h('div', {class: 'flame', role: 'img', hidden: true});

  async function look(button, path, more, draw) {
    for (const node of [text, graph]) show(node, false);
    button.disabled = true;
    setText(note, 'Looking …');
    try {
      const reply = await app.client.get(path, {...parameters, ...more});
      setText(note, reply.stack_missing ? `Not known, as ${reply.stack_missing}` : draw(reply));
    } catch (failure) {
      setText(note, failure.status === 403 ? 'Stacks are only for users who may read contents (ReadGroup=).' : failure.message);
    }
    button.disabled = false;
  }
  const stacks = event => look(event.target, 'stack', {}, ({top, stack}) => {
    setText(text, threadsText(stack ?? []));
    show(text, true);
    return top ? `In ${top}` : '';
  });
  const profile = event => look(event.target, 'profile', {for_usec: PROFILE_USEC}, ({stacks: found = []}) => {
    const root = treeOf(found);
    if (root.count === 0) return 'There was no sample.';
    graph.replaceChildren(boxOf('all', root, root, root.count));
    graph.setAttribute('aria-label', summary(found, root.count));
    show(graph, true);
    return plural(root.count, 'sample');
  });
  return h('section', {class: 'card pad'}, h('h2', {}, 'Where it is'),
    h('div', {class: 'actions'}, h('button', {type: 'button', onclick: stacks}, 'Stacks'), h('button', {type: 'button', onclick: profile}, 'Profile for 3 s')), note, text, graph);
}
