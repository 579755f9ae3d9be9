// SPDX-License-Identifier: MIT
// Limits of jobs, and how much of them is taken.

import {h, become, sync, setText, show, table, row} from './element.js';
import {number, span, link} from './format.js';

const COLUMNS = [
  {title: 'Limit', class: 'name'}, {title: 'Of'}, {title: 'Running'}, {title: 'Rate'}, {title: 'Ready'}, {title: 'Waiting', class: 'number'},
  {title: 'Held for', class: 'number'},
];

const OF = {limit: 'groups', group: 'the group', key: 'a key', undescribed: 'no file'};

const perKey = per => per === 'key' ? ' per key' : '';

/** "3 of 4" with a gauge; without a level the number alone. */
function level(value, max, more = '') {
  if (max === undefined) return value ? number(value) : '';
  if (value === undefined) return `${number(max)}${more}`;
  return [h('meter', {min: 0, max, value: Math.min(value, max)}), ` ${number(value)} of ${number(max)}${more}`];
}

function name(limit) {
  const group = limit.kind === 'group' || limit.kind === 'key' ? limit.name.split('/')[0] : null;
  return [group ? h('a', {class: 'strong', href: link('group', group)}, limit.name) : h('span', {class: 'strong'}, limit.name),
    limit.set && h('span', {class: 'muted small'}, ' set at run time')];
}

function update(node, limit) {
  const [title, of, running, rate, ready, waiting, held] = node.children;
  become(title, name(limit));
  setText(of, OF[limit.kind]);
  become(running, level(limit.taken, limit.running, perKey(limit.running_per)));
  setText(rate, limit.rate ? `${number(limit.rate)} in ${span(limit.period_usec)}${perKey(limit.rate_per)}` : '');
  become(ready, limit.rate ? level(limit.ready, limit.burst) : '');
  setText(waiting, number(limit.waiting));
  setText(held, limit.held_usec > 0 ? span(limit.held_usec) : '');
}

export function limitsTable(caption) {
  const limits = table(caption, COLUMNS);
  return {node: limits.node, update: items => sync(limits.body, items, limit => `${limit.kind} ${limit.name}`, () => row(COLUMNS), update)};
}

export function limitsView(app) {
  const limits = limitsTable('Limits');
  const empty = h('p', {class: 'empty', hidden: true}, 'There are no limits: see [Limits] in troupe.group(5), and troupe.limit(5).');
  return {
    title: 'Limits',
    node: h('div', {}, h('h1', {}, 'Limits'), h('section', {class: 'card'}, limits.node, empty)),
    async tick() {
      const reply = await app.client.get('limits');
      const items = reply.limits ?? [];
      limits.update(items);
      show(empty, items.length === 0);
    },
  };
}
