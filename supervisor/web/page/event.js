// SPDX-License-Identifier: MIT
// Events as they happen, newest first.

import {h, sync, setText, show} from './element.js';
import {clock, moment, words, link} from './format.js';

const SHOWN = 300;
/** In one turn of the browser, so that a flood leaves it time for everything else. */
const DRAW_MS = 200;

function toneOf(type) {
  if (/died|failed|dead|lost|cannot|stalled|safe-mode$|full/.test(type)) return 'bad';
  if (/failing|spawn|stopped|not-recycled|paused|draining/.test(type)) return 'warn';
  if (/ready|recovered|mended|resumed|open|started/.test(type)) return 'good';
  return 'quiet';
}

function textOf(event) {
  if (event.message) return event.message;
  if (event.death) return event.death.detail;
  return event.job_state ?? '';
}

/** A text in which the event's worker and job are links. */
function linked(text, event) {
  const names = [[event.job, 'job'], [event.worker, 'worker']].filter(([name]) => name && text.includes(name));
  if (names.length === 0) return [text];
  const [name, view] = names[0];
  const at = text.indexOf(name);
  const rest = {worker: view === 'job' ? event.worker : null};
  return [...linked(text.slice(0, at), rest), h('a', {class: view === 'job' ? 'id' : '', href: link(view, name)}, name), ...linked(text.slice(at + name.length), rest)];
}

function eventItem(event) {
  const text = textOf(event);
  const target = event.worker ?? event.cell ?? event.group;
  const view = event.worker ? 'worker' : 'group';
  return h('li', {}, h('time', {title: moment(event.at)}, clock(event.at, true)), h('span', {class: 'chip', 'data-tone': toneOf(event.type)}, words(event.type)),
    target && !text.includes(target) && h('a', {href: link(view, target)}, target), h('span', {class: 'grow'}, linked(text, event)));
}

export function eventsView(app) {
  const list = h('ol', {class: 'events', 'aria-label': 'Events, newest first'});
  const note = h('p', {class: 'muted'});
  const filter = h('input', {type: 'search', placeholder: 'Filter', 'aria-label': 'Filter events', maxlength: 64});
  const pause = h('button', {type: 'button', 'aria-pressed': 'false'}, 'Pause');
  const empty = h('p', {class: 'empty', hidden: true}, 'No events yet.');
  let paused = false;
  let timer = null;

  function matches(event) {
    const text = filter.value.trim().toLowerCase();
    return !text || [event.type, words(event.type), event.worker, event.group, event.cell, event.job, textOf(event)].some(part => part?.toLowerCase().includes(text));
  }
  function draw() {
    timer = null;
    const events = app.events.filter(matches).slice(-SHOWN).reverse();
    sync(list, events, event => `${event.id} ${event.at}`, eventItem, () => {});
    show(empty, events.length === 0);
    setText(note, app.events.length > SHOWN ? `The last ${SHOWN}.` : '');
  }
  function later() {
    if (!paused && timer === null) timer = setTimeout(draw, DRAW_MS);
  }
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    setText(pause, paused ? 'Continue' : 'Pause');
    later();
  });
  filter.addEventListener('input', draw);
  draw();
  return {
    title: 'Events',
    node: h('div', {}, h('h1', {}, 'Events'), h('div', {class: 'filters'}, filter, pause), note, h('section', {class: 'card'}, list, empty)),
    onEvent: later,
    tick() {},
  };
}
