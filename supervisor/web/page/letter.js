// SPDX-License-Identifier: MIT
// Dead letters: list, send again, purge.

import {h, setText, show, facts, pagedList} from './element.js';
import {number, bytes, reason, payload, link, moment, ago, plural} from './format.js';
import {HIDDEN, deathItem} from './death.js';

const REASONS = ['job', 'error', 'crash', 'unhandled', 'no_match', 'gone', 'mailbox_full', 'dropped', 'late_reply', 'wrong_reply', 'unknown_death', 'loop', 'no_memory'];

/** Filled when it is opened. */
async function fillDetails(app, inside, id) {
  try {
    const {letter} = await app.client.get('dead-letter', {id});
    inside.replaceChildren(
      facts(['Job', letter.job && h('a', {class: 'id', href: link('job', letter.job)}, letter.job)], ['Type', letter.type], ['Key', letter.key],
        ['From', letter.sender], ['To', letter.recipient], ['Sent', letter.sent_at && moment(letter.sent_at)], ['Attempts', letter.attempts], ['Code', letter.code],
        ['Payload', bytes(letter.payload_bytes)], ['Workers that died handling it', letter.n_deaths || null]),
      letter.restricted ? h('p', {class: 'muted'}, 'Text and payload are only for users who may read contents (ReadGroup=).') : '',
      letter.text ? h('pre', {tabindex: '0', 'aria-label': 'Reason'}, letter.text) : '',
      letter.payload?.data ? h('div', {}, h('h4', {}, 'Payload'), h('pre', {tabindex: '0', 'aria-label': 'Payload'}, payload(letter.payload))) : '',
      letter.deaths?.length ? h('div', {}, h('h4', {}, 'Deaths'), h('ul', {class: 'list'}, letter.deaths.map(deathItem))) : '');
  } catch (failure) {
    inside.replaceChildren(h('p', {class: 'muted'}, failure.message));
  }
}

function letterItem(app, refresh) {
  const change = async (verb, letter, question) => {
    if (await app.change(verb, {id: letter.id}, question)) await refresh();
  };
  return letter => {
    const inside = h('div', {class: 'inside'});
    const buttons = h('div', {class: 'actions', hidden: !app.mayChange},
      h('button', {type: 'button', onclick: () => change('send-again', letter)}, 'Send again'),
      h('button', {type: 'button', class: 'danger', onclick: () => change('purge', letter, 'Permanently remove this dead letter?')}, 'Purge …'));
    const details = h('details', {},
      h('summary', {}, h('span', {class: 'when', title: ago(letter.at)}, moment(letter.at)), h('span', {class: 'strong'}, letter.recipient ?? 'no recipient'),
        h('span', {class: 'chip', 'data-tone': 'bad'}, reason(letter.reason)), h('span', {class: 'id'}, letter.job ?? letter.type),
        h('span', {class: 'muted grow'}, letter.text)),
      buttons, inside);
    details.addEventListener('toggle', () => details.open && fillDetails(app, inside, letter.id));
    return h('li', {}, details);
  };
}

function choice(label, options) {
  const select = h('select', {}, options.map(([value, text]) => h('option', {value}, text)));
  return {select, node: h('label', {}, label, select)};
}

export function lettersView(app, recipient = '') {
  const queue = choice('Queue', [['', 'all'], ['dead_letters', 'dead letters'], ['errors', 'errors']]);
  const why = choice('Reason', [['', 'all'], ...REASONS.map(name => [name, reason(name)])]);
  const counts = h('p', {class: 'muted'});
  const missing = h('p', {class: 'muted'});
  const hidden = h('p', {class: 'muted', hidden: true}, HIDDEN);
  const filter = () => ({queue: queue.select.value, reason: why.select.value, recipient});
  const given = () => Object.fromEntries(Object.entries(filter()).filter(([, value]) => value));
  const refresh = () => list.refresh(true);
  const list = pagedList({
    load: async cursor => {
      const reply = await app.client.get('dead-letters', {...filter(), cursor});
      const total = reply.counts.reduce((n, count) => n + count.count, 0);
      setText(counts, total ? `Since the start: ${reply.counts.filter(c => c.count).map(c => `${number(c.count)} ${reason(c.reason)}`).join(', ')}`
        + (reply.evicted ? `; ${number(reply.evicted)} had to make room` : '') : '');
      setText(missing, reply.store_problem ? `Those on disk are not shown: ${reply.store_problem}` : '');
      show(hidden, reply.letters.some(letter => letter.restricted));
      return {items: reply.letters, next: reply.next};
    },
    key: letter => letter.id,
    create: letterItem(app, refresh),
    empty: 'No dead letters here.',
  });
  const bulk = async (verb, question) => {
    const answer = await app.change(verb, given(), question);
    if (!answer) return;
    app.say(verb === 'purge' ? `${plural(answer.purged, 'dead letter')} purged` : `${number(answer.requeued)} sent again, ${number(answer.failed)} not`);
    await refresh();
  };
  const all = h('div', {class: 'actions', hidden: true},
    h('button', {type: 'button', onclick: () => bulk('send-again', 'Send all dead letters that match the filter again?')}, 'Send all again …'),
    h('button', {type: 'button', class: 'danger', onclick: () => bulk('purge', 'Permanently remove all dead letters that match the filter?')}, 'Purge all …'));
  for (const select of [queue.select, why.select]) select.addEventListener('change', refresh);
  return {
    title: 'Dead letters',
    node: h('div', {}, recipient && h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: link('group', recipient)}, recipient)),
            h('h1', {}, 'Dead letters'), h('div', {class: 'filters'}, queue.node, why.node, all), counts, missing, hidden, h('section', {class: 'card'}, list.node)),
    async tick() {
      show(all, app.mayChange && Object.keys(given()).length > 0);
      await list.refresh();
    },
  };
}
