// SPDX-License-Identifier: MIT
// Schedules, and what became of their slots.

import {h, become, sync, setText, setState, show, stateMark, table, row, facts} from './element.js';
import {number, link, moment, ago} from './format.js';

const COLUMNS = [
  {title: 'Schedule', class: 'name'}, {title: 'State'}, {title: 'Group'}, {title: 'Next'}, {title: 'Last'}, {title: 'Fired', class: 'number'},
  {title: 'Left out', class: 'number'}, {title: 'Live', class: 'number'},
];

/** Slots that created no job, by outcome. */
const LEFT_OUT = ['skipped', 'missed', 'paused', 'refused'];
const leftOut = schedule => LEFT_OUT.reduce((n, outcome) => n + schedule[outcome], 0);
const TONES = {fired: 'good', skipped: 'warn', missed: 'warn', paused: 'quiet', refused: 'bad'};

const chip = outcome => h('span', {class: 'chip', 'data-tone': TONES[outcome] ?? 'quiet'}, outcome);

export function schedulesView(app) {
  const schedules = table('Schedules', COLUMNS);
  const empty = h('p', {class: 'empty', hidden: true}, 'There are no schedules: files NAME.schedule make them, see troupe.schedule(5).');
  const create = schedule => {
    const node = row(COLUMNS);
    node.state = stateMark(schedule.state);
    node.children[0].append(h('a', {class: 'strong', href: link('schedule', schedule.name), title: schedule.description ?? ''}, schedule.name));
    node.children[1].append(node.state);
    node.children[2].append(h('a', {href: link('group', schedule.group)}, schedule.group));
    return node;
  };
  const update = (node, schedule) => {
    const {last} = schedule;
    setState(node.state, schedule.state);
    setText(node.children[3], schedule.next_at ? moment(schedule.next_at) : schedule.waiting ? 'after its job' : '');
    become(node.children[4], last ? [chip(last.outcome), ` ${ago(last.slot)}`] : '');
    setText(node.children[5], number(schedule.fired));
    setText(node.children[6], number(leftOut(schedule)));
    setText(node.children[7], number(schedule.live));
  };
  return {
    title: 'Schedules',
    node: h('div', {}, h('h1', {}, 'Schedules'), h('section', {class: 'card'}, schedules.node, empty)),
    async tick() {
      const items = await all(app);
      sync(schedules.body, items, schedule => schedule.name, create, update);
      show(empty, items.length === 0);
    },
  };
}

async function all(app) {
  let items = [];
  for (let cursor = null; items.length < 2000;) {
    const page = await app.client.get('schedules', {cursor, limit: 200});
    items = items.concat(page.schedules);
    if (page.next === undefined) break;
    cursor = page.next;
  }
  return items;
}

function slots(title, items, empty, rest) {
  return h('section', {class: 'card pad'}, h('h2', {}, title), items.length === 0 && h('p', {class: 'muted'}, empty),
    h('ol', {class: 'steps'}, items.map(slot => h('li', {'data-tone': TONES[slot.outcome] ?? 'quiet'},
      h('time', {datetime: new Date(slot.slot / 1000).toISOString()}, moment(slot.slot)), h('div', {}, rest(slot))))));
}

const decided = slot => [chip(slot.outcome), ' ', slot.outcome === 'fired' ? h('a', {class: 'id', href: link('job', slot.id)}, slot.id) : '',
  slot.cause && h('span', {class: 'muted'}, ` ${slot.cause}`)];
const coming = slot => [h('span', {class: 'id'}, slot.id), slot.due_at !== slot.slot && h('span', {class: 'muted'}, ` begins ${moment(slot.due_at)}`),
  slot.skip && h('span', {class: 'muted'}, ' will be skipped')];

export function scheduleView(app, name) {
  const state = stateMark('');
  const change = (verb, question = null) => app.change(verb, {name}, question);
  const run = async () => {
    const reply = await change('run-schedule', `Create the job of ${name} now?`);
    if (reply) location.hash = link('job', reply.id);
  };
  const pause = h('button', {type: 'button', hidden: true, onclick: () => change('pause-schedule')}, 'Pause');
  const resume = h('button', {type: 'button', hidden: true, onclick: () => change('resume-schedule')}, 'Resume');
  const now = h('button', {type: 'button', hidden: true, onclick: run}, 'Run now …');
  const about = h('p', {class: 'muted'});
  const numbers = h('div');
  const body = h('div');
  return {
    title: name,
    node: h('div', {}, h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: '#/schedules'}, 'Schedules')),
            h('div', {class: 'headline'}, h('h1', {}, name), state, h('div', {class: 'actions'}, pause, resume, now)), about,
            h('section', {class: 'card pad', 'aria-label': 'Numbers'}, numbers), body),
    async tick() {
      const reply = await app.client.get('schedule', {name});
      const {schedule} = reply;
      const held = schedule.state === 'paused' || schedule.state === 'failed';
      setState(state, schedule.state);
      setText(about, schedule.description ?? '');
      show(pause, app.mayChange && !held);
      show(resume, app.mayChange && held);
      show(now, app.mayChange);
      become(numbers, facts(['Cannot fire', schedule.obstacle], ['Group', h('a', {href: link('group', schedule.group)}, schedule.group)], ['Times', schedule.times.join(', ')],
        ['Live jobs', number(schedule.live)], ['Failures in a row', schedule.failures ? number(schedule.failures) : null],
        ['Paused', schedule.paused_at ? ago(schedule.paused_at) : null], ['Fired', number(schedule.fired)],
        ...LEFT_OUT.map(outcome => [outcome[0].toUpperCase() + outcome.slice(1), schedule[outcome] ? number(schedule[outcome]) : null])));
      become(body, slots('Last slots', reply.decided, 'No slot has come yet.', decided), slots('Next slots', reply.coming, 'No slot is to come.', coming));
    },
  };
}
