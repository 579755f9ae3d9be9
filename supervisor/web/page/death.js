// SPDX-License-Identifier: MIT
// Deaths of workers.

import {h, show, facts, pagedList} from './element.js';
import {number, span, bytes, cause, payload, link, moment, ago} from './format.js';

const frame = ({function: name, offset, file, line, module}) =>
    `  ${name || `(no symbol at ${offset})`}${file ? `, ${file}:${line ?? ''}` : module ? `, ${module}` : ''}`;

/** All threads of a report, as text. */
export const threadsText = threads =>
    threads.map(({name, thread, state, frames}) => [`${name} (${thread})${state === 'crashed' ? ', crashed' : ''}:`, ...frames.map(frame)].join('\n')).join('\n');

/** How many deaths were the same. */
export function placeItem(place) {
  const how = place.signal ?? (place.exit_status !== undefined ? `status ${place.exit_status}` : cause(place.cause));
  const when = place.count === 1 ? moment(place.last_at) : `first ${moment(place.first_at)}, last ${moment(place.last_at)}`;
  return h('li', {}, h('span', {class: 'strong'}, `${number(place.count)} × ${how}`),
           h('span', {class: 'muted grow'}, place.top ? `in ${place.top}` : cause(place.cause)), h('span', {class: 'when'}, when));
}

/** A report, closed at first. */
export function deathItem(death) {
  const how = death.signal ?? (death.exit_status !== undefined ? `status ${death.exit_status}` : '');
  return h(
      'li', {},
      h('details', {},
        h('summary', {}, h('span', {class : 'when', title : moment(death.at)}, moment(death.at)),
          h('span', {class : 'strong'}, death.worker),
          h('span', {class : 'chip', 'data-tone' : death.cause === 'stop' ? 'quiet' : 'bad'},
            death.signal ?? cause(death.cause)),
          h('span', {class : 'muted grow'},
            `${death.command ? `${death.command}: ` : ''}${death.detail}${death.top ? `, in ${death.top}` : ''}`)),
        h('div', {class : 'inside'},
          facts(
              [
                  'Job',
                  death.job && h('a', {class : 'id', href : link('job', death.job)}, death.job)
              ],
              [ 'In', death.top ?? (death.stack_missing && `not known, as ${death.stack_missing}`) ],
              [ 'Attempt', death.attempt ], [ 'Ended with', how ], [ 'Command', death.command ],
              [ 'Process', death.pid ], [ 'Lived', span(death.uptime_usec) ],
              [ 'Processor', `${span(death.user_usec)} + ${span(death.system_usec)}` ],
              [ 'Peak memory', bytes(death.max_rss_bytes) ],
              [ 'Jobs done', number(death.jobs_done) ],
              [ 'Core dump', death.core_dumped ? 'yes' : null ]),
          death.restricted &&
              h('p', {class : 'muted'},
                'Output and state are only for users who may read contents (ReadGroup=).'),
          death.stderr &&
              [
                  h('h4', {}, 'Last output'),
                  h('pre', {tabindex : '0', 'aria-label' : 'Last output'}, death.stderr)
              ],
          death.stack?.length > 0 &&
              [
                  h('h4', {}, 'Stacks'),
                  h('pre', {tabindex : '0', 'aria-label' : 'Stacks'}, threadsText(death.stack))
              ],
          death.state &&
              [
                  h('h4', {}, 'Last state page'),
                  h('pre', {tabindex : '0', 'aria-label' : 'Last state page'}, payload(death.state))
              ],
          death.messages?.length > 0 && [
              h('h4', {}, 'Messages in hand'),
              h('ul', {},
                death.messages.map(
                    message => h('li', {},
                                 `${message.type || 'message'} from ${
                                     message.sender || 'no sender'}, ${ago(message.sent_at)}`)))
          ])));
}

/** The notice above a list whose contents troupe-web may not read. */
export const HIDDEN = 'Reasons and contents are hidden: troupe-web shows them once its user is a member of ReadGroup= in troupe.conf, '
  + 'see WHO SEES WHAT in troupe-web(8). “troupectl” shows them to root.';

export const deathKey = death => `${death.worker}:${death.generation}:${death.at}`;

export function deathsView(app, target = '') {
  const hidden = h('p', {class: 'muted', hidden: true}, HIDDEN);
  const list = pagedList({
    load: async cursor => {
      const {deaths, next} = await app.client.get('deaths', {target, cursor});
      show(hidden, deaths.some(death => death.restricted));
      return {items: deaths, next};
    },
    key: deathKey,
    create: deathItem,
    empty: 'No worker has died.',
  });
  return {
    title: target ? `Deaths of ${target}` : 'Deaths',
    node: h('div', {}, target && h('nav', {class: 'crumbs', 'aria-label': 'Path'}, h('a', {href: link('group', target)}, target)),
            h('h1', {}, 'Deaths'), hidden, h('section', {class: 'card'}, list.node)),
    tick: () => list.refresh(),
  };
}
