// SPDX-License-Identifier: MIT
// The page: views by the part of the address behind "#", and the turn of each second.

import {Client} from './client.js';
import {become, h, setText, show} from './element.js';
import {number, plural, span, link} from './format.js';
import {History} from './history.js';
import {groupsView, groupView, trouble} from './group.js';
import {workerView, logView} from './worker.js';
import {jobsView, jobView} from './job.js';
import {deathsView} from './death.js';
import {lettersView} from './letter.js';
import {eventsView} from './event.js';
import {schedulesView, scheduleView} from './schedule.js';
import {endedView} from './ended.js';
import {limitsView} from './limit.js';
import {timelineView} from './timeline.js';

const EVENTS_KEPT = 1000;
const find = id => document.getElementById(id);

const VIEWS = {
  '': groupsView, group: groupView, worker: workerView, log: logView, jobs: jobsView, job: jobView, deaths: deathsView,
  'dead-letters': lettersView, events: eventsView, schedules: schedulesView, schedule: scheduleView, history: endedView, limits: limitsView,
  timeline: timelineView,
};
/** The entry of the navigation that a view belongs to. */
const ENTRIES = {'': 'groups', group: 'groups', worker: 'groups', log: 'groups', job: 'jobs', schedule: 'schedules'};

const app = {
  client: new Client(),
  history: new History(),
  groups: [],
  info: {},
  /** Whether the supervisor answers, and has sent its groups. */
  get known() {
    return Boolean(app.info.state) && !away;
  },
  session: {},
  events: [],
  get mayChange() {
    return Boolean(this.session.changes && this.session.token);
  },

  /** Says something in passing. */
  say(text) {
    said = {text, until: Date.now() + 6000};
    drawSummary();
  },

  /** Asks for a text, or with no label for a yes. Resolves to it; null if it is not given. */
  ask({title, label = null, value = '', action, type = 'text', pattern = null}) {
    const dialog = find('dialog');
    const input = label ? h('input', {type, value, pattern, required: true, autocomplete: 'off', maxlength: 256}) : null;
    const form = h('form', {method: 'dialog'}, h('h2', {id: 'dialog-title'}, title), input && h('label', {}, label, input),
      h('div', {class: 'actions'}, h('button', {type: 'button', onclick: () => dialog.close('')}, 'Cancel'), h('button', {class: 'primary', value: 'yes'}, action)));
    dialog.returnValue = '';
    dialog.replaceChildren(form);
    dialog.showModal();
    return new Promise(resolve => dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes' ? input?.value ?? true : null), {once: true}));
  },

  /** Changes something, after a question if there is one. Resolves to the reply; null without success. */
  async change(verb, parameters, question = null) {
    if (question && !await this.ask({title: question, action: 'Yes'})) return null;
    try {
      const reply = await this.client.post(verb, parameters);
      this.say('Done.');
      await turn();
      return reply;
    } catch (failure) {
      this.say(`Failed: ${failure.message}`);
      return null;
    }
  },
};

let view = null;
let said = null;
let away = null;

// ---- the summary

function drawSummary() {
  const bad = app.groups.filter(group => trouble(group) !== null);
  const held = Boolean(app.info.safe_mode || app.info.config_problem || app.info.kept_back);
  const links = bad.slice(0, 3).flatMap((group, i) => [i > 0 ? ', ' : '', h('a', {href: link('group', group.name)}, group.name)]);
  let text = `All is well: ${plural(app.groups.length, 'group')}, ${plural(app.info.workers ?? 0, 'worker')}.`;
  if (bad.length > 0) text = [`${bad.length === 1 ? 'One group needs' : `${number(bad.length)} groups need`} attention: `, links, bad.length > 3 ? ' …' : '', '.'];
  else if (app.info.safe_mode) text = 'All groups are paused.';
  else if (app.info.config_problem) text = 'No group is served.';
  else if (app.info.kept_back) text = `A schedule or an exchange cannot start: ${app.info.kept_back[0]}`;
  if (app.info.state && app.info.state !== 'running') text = `The supervisor is ${app.info.state}.`;
  if (!app.info.state) text = 'Loading …';
  if (said && Date.now() < said.until) text = said.text;
  const node = find('summary');
  node.dataset.tone = away ? 'quiet' : bad.length > 0 || held ? 'bad' : 'good';
  show(node, !away || Boolean(said && Date.now() < said.until));
  become(node, h('span', {}, text));
}

function drawBanner() {
  const banner = find('banner');
  let text = away;
  if (!text && app.info.config_problem) text = `No group is served: ${app.info.config_problem}`;
  else if (!text && app.info.safe_mode) text = 'Safe mode: the supervisor crashed three times within 30 seconds, so all groups are paused. A successful “troupectl reload” resumes them.';
  show(banner, Boolean(text));
  setText(banner, text ?? '');
  document.body.classList.toggle('away', Boolean(away));
}

function drawAbout() {
  const {info} = app;
  if (!info.version) return;
  setText(find('about'), [`trouped ${info.version}`, `up for ${span(Math.floor(Date.now() - info.started_at / 1000) * 1000)}`, plural(info.groups, 'group'), plural(info.workers, 'worker'),
    `longest turn of the last minute ${span(info.recent_turn_usec)}`, info.restarts ? `${plural(info.restarts, 'crash', 'crashes')} survived` : ''].filter(Boolean).join(' · '));
}

function drawToken() {
  const button = find('token');
  show(button, Boolean(app.session.changes) || app.session.needed === true);
  setText(button, app.session.token ? 'Lock changes' : app.session.needed ? 'Enter the token' : 'Unlock changes');
}

// ---- views

async function open() {
  let [name, ...rest] = location.hash.replace(/^#\/?/, '').split('/');
  let argument = '';
  try {
    argument = rest.map(decodeURIComponent).join('/');
  } catch { /* not one of our links */ }
  view?.close?.();
  const make = Object.hasOwn(VIEWS, name) ? VIEWS[name] : VIEWS[name = ''];
  view = make(app, argument);
  document.title = `${view.title} – Troupe`;
  for (const entry of document.querySelectorAll('nav [data-view]')) {
    if (entry.dataset.view === (ENTRIES[name] ?? name)) entry.setAttribute('aria-current', 'page');
    else entry.removeAttribute('aria-current');
  }
  find('content').replaceChildren(view.node);
  await turnView();
}

async function turnView() {
  const shown = view;
  if (shown.busy) return;
  shown.busy = true;
  try {
    await shown.tick();
    shown.failed?.remove();
  } catch (failure) {
    if (!(failure instanceof Error) || failure.status === undefined) throw failure;
    if (failure.status !== 503 && failure.status !== 0) {
      shown.failed ??= h('p', {class: 'problem'});
      setText(shown.failed, failure.message);
      if (shown === view && !shown.failed.isConnected) find('content').prepend(shown.failed);
    }
  } finally {
    shown.busy = false;
  }
}

// ---- the turn of each second

async function turnStatus() {
  try {
    const [status, info] = await Promise.all([app.client.get('status'), app.client.get('info')]);
    app.groups = status.groups;
    app.info = info;
    if (!app.history.at) app.history.begin(app.groups, await readHistory(), info.started_at, status.at);
    app.history.add(app.groups, status.at);
    if (away) await readSession();
    away = null;
  } catch (failure) {
    if (failure.status === 401) app.session = {...app.session, needed: true, token: false};
    away = failure.status === 401 ? 'This page needs the token of troupe-web.' : `${failure.message.replace(/[^.?!]$/, '$&.')} This page will continue when it is back.`;
  }
}

async function readHistory() {
  try {
    return (await app.client.get('history')).groups;
  } catch {
    return []; // too many groups for one reply: the charts begin now
  }
}

let turning = false;
async function turn() {
  if (turning) return;
  turning = true;
  try {
    await turnStatus();
    drawBanner();
    drawSummary();
    drawAbout();
    drawToken();
    if (!away) await turnView();
  } finally {
    turning = false;
  }
}

function everySecond() {
  // A page that is not visible sends no requests.
  if (document.visibilityState === 'visible') turn();
}

async function readSession() {
  try {
    app.session = await app.client.get('session');
  } catch (failure) {
    app.session = {needed: failure.status === 401};
  }
}

async function onToken() {
  const token = app.session.token ? '' : await app.ask({title: 'Token of troupe-web', label: 'Token', action: 'Unlock', type: 'password'});
  if (token === null) return;
  app.client.setToken(token.trim());
  await readSession();
  if (token && !app.session.token) {
    app.client.setToken('');
    app.say('That is not the token.');
    await readSession();
  }
  await open();
  await turn();
}

// ---- events

function onEvent(type, data) {
  if (type === 'event') {
    app.events.push(data);
    if (app.events.length > EVENTS_KEPT) app.events.shift();
    view?.onEvent?.();
  } else if (type === 'here') {
    app.events = [];
    loadEvents();
  }
}

/** What happened before, or while the connection was away. */
async function loadEvents() {
  try {
    let events = [];
    let cursor = null;
    for (let page = 0; page < 5; page++) {
      const reply = await app.client.get('past-events', {cursor, limit: 200});
      events = events.concat(reply.events);
      if (reply.next === undefined) break;
      cursor = reply.next;
    }
    const last = events.at(-1)?.id ?? 0;
    app.events = events.concat(app.events.filter(event => event.id > last));
    view?.onEvent?.();
  } catch { /* the banner says it */ }
}

// ---- keys and search

async function search(text) {
  if (!text) return;
  const [groupName] = text.split('/');
  if (text.includes('/') || app.groups.some(group => group.name === text)) {
    const last = text.split('/').at(-1);
    location.hash = link(text.includes('/') && /^\d+$/.test(last) ? 'worker' : 'group', text);
  } else {
    try {
      await app.client.get('job', {id: text});
      location.hash = link('job', text);
    } catch (failure) {
      const near = app.groups.find(group => group.name.startsWith(groupName));
      if (near) location.hash = link('group', near.name);
      else app.say(failure.status === 404 ? `There is no group “${text}”, and no job with that id is kept.` : failure.message);
    }
  }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === '/') {
    event.preventDefault();
    find('search-text').focus();
  }
}

window.addEventListener('hashchange', () => {
  open();
  // Immediately: later, the user may have moved the focus.
  find('content').focus({preventScroll: true});
  window.scrollTo(0, 0);
});
document.addEventListener('visibilitychange', everySecond);
document.addEventListener('keydown', onKey);
find('search').addEventListener('submit', event => {
  event.preventDefault();
  search(find('search-text').value.trim());
});
find('token').addEventListener('click', onToken);

await readSession();
await turnStatus();
drawBanner();
drawSummary();
drawAbout();
drawToken();
await open();
setInterval(everySecond, 1000);
app.client.listen(onEvent);
