// SPDX-License-Identifier: MIT
// Lines of the last two minutes.

import {svg, setAttribute} from './element.js';
import {LENGTH} from './history.js';

const HEIGHT = 100;

/** Fewer values than these leave room on the left. */
const ROOM = 40;

function points(values, maximum) {
  const step = 1000 / (Math.min(LENGTH, Math.max(ROOM, values.length)) - 1);
  const first = 1000 - (values.length - 1) * step;
  return values.map((value, i) => `${(first + i * step).toFixed(1)},${(HEIGHT - 4 - value / maximum * (HEIGHT - 10)).toFixed(1)}`);
}

/** A line with the area below it; update() draws it, from 0 to the largest value. other: values of a dashed line on the same scale; marked: where a bar above the line is. */
export function line(className = '') {
  const area = svg('path', {class: 'area'});
  const path = kind => svg('path', {class: kind, 'vector-effect': 'non-scaling-stroke'});
  const [stroke, dashes, marks] = [path('stroke'), path('stroke dashed'), path('stroke marks')];
  const node = svg('svg', {class: `chart ${className}`, viewBox: `0 0 1000 ${HEIGHT}`, preserveAspectRatio: 'none',
                           'aria-hidden': 'true', focusable: 'false'}, area, marks, dashes, stroke);
  return {
    node,
    update(values, {other = [], marked = []} = {}) {
      if (values.length < 2) {
        for (const part of [area, stroke, dashes, marks]) setAttribute(part, 'd', '');
        return;
      }
      const maximum = Math.max(1, ...values, ...other);
      const line = points(values, maximum);
      const top = points(marked.map(() => maximum), maximum);
      setAttribute(stroke, 'd', `M${line.join('L')}`);
      setAttribute(area, 'd', `M${line[0].split(',')[0]},${HEIGHT}L${line.join('L')}L1000,${HEIGHT}Z`);
      setAttribute(dashes, 'd', other.length > 1 ? `M${points(other, maximum).join('L')}` : '');
      setAttribute(marks, 'd', top.map((point, i) => i > 0 && marked[i] ? `M${top[i - 1]}L${point}` : '').join(''));
    },
  };
}

const ORDER = ['busy', 'idle', 'starting', 'backoff', 'stopping', 'killing', 'stopped', 'failed'];

/** A bar of how many workers are in each state. */
export function workersBar() {
  const node = svg('svg', {class: 'bar', viewBox: '0 0 1000 10', preserveAspectRatio: 'none', role: 'img'});
  const parts = new Map();
  for (const state of ORDER) {
    const part = svg('rect', {y: 0, height: 10, class: `state-${state}`});
    parts.set(state, part);
    node.append(part);
  }
  return {
    node,
    update(counts = {}) {
      const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
      let x = 0;
      for (const [state, part] of parts) {
        const width = total ? (counts[state] ?? 0) / total * 1000 : 0;
        setAttribute(part, 'x', x.toFixed(1));
        setAttribute(part, 'width', width.toFixed(1));
        x += width;
      }
      setAttribute(node, 'aria-label', ORDER.filter(state => counts[state]).map(state => `${counts[state]} ${state}`).join(', ') || 'no workers');
    },
  };
}
