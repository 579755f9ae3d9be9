// SPDX-License-Identifier: MIT
// Builds and updates elements. Values become text or attributes only, never markup.

import {tone, visible} from './format.js';

const SVG = 'http://www.w3.org/2000/svg';

/** Attributes that are shown to people. */
const SEEN = new Set(['title', 'aria-label', 'data-label']);

function apply(node, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : SEEN.has(name) ? visible(value) : String(value));
  }
}

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : visible(child));
  }
  return node;
}

/** h('p', {class: 'x', onclick: f}, 'text', node): null and false are left out. */
export function h(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  apply(node, properties);
  return fill(node, children);
}

export function svg(tag, properties = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  apply(node, properties);
  return fill(node, children);
}

/** Each of these touches the document only if something has changed. */
export function setText(node, text) {
  text = visible(text ?? '');
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? '' : String(value));
}

export function show(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

/**
 * Makes the children of a node those of the items: existing ones are updated in place, so that focus,
 * selection and opened details stay. create(item) returns a node; update(node, item) fills it.
 */
export function sync(parent, items, key, create, update) {
  const known = parent.known ??= new Map();
  const wanted = new Set();
  let place = parent.firstChild;
  for (const item of items) {
    const id = key(item);
    if (wanted.has(id)) continue;
    wanted.add(id);
    let node = known.get(id);
    if (!node) known.set(id, node = create(item));
    update(node, item);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  for (const [id, node] of known)
    if (!wanted.has(id)) {
      node.remove();
      known.delete(id);
    }
}

/**
 * Makes the children of a node like these, without listeners: elements of the same kind stay and are changed, so that
 * they keep focus and selection.
 */
export function become(node, ...children) {
  const wanted = [...fill(document.createDocumentFragment(), children).childNodes];
  for (const [i, child] of wanted.entries()) {
    const old = node.childNodes[i];
    if (!old) node.append(child);
    else if (old.isEqualNode(child)) continue;
    else if (old.nodeName !== child.nodeName) old.replaceWith(child);
    else if (child.nodeType === Node.TEXT_NODE) old.data = child.data;
    else {
      for (const name of old.getAttributeNames()) if (!child.hasAttribute(name)) old.removeAttribute(name);
      for (const name of child.getAttributeNames()) setAttribute(old, name, child.getAttribute(name));
      become(old, ...child.childNodes);
    }
  }
  while (node.childNodes.length > wanted.length) node.lastChild.remove();
}

/** A table with a heading for each column; narrow screens show its rows as cards. */
export function table(caption, columns) {
  const body = h('tbody', {role: 'rowgroup'});
  const heads = columns.map(column =>
    h('th', {scope: 'col', role: 'columnheader', class: column.class}, column.title));
  return {
    body,
    node: h('table', {role: 'table'}, h('caption', {class: 'hidden'}, caption),
            h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, heads)), body),
  };
}

/** A row of such a table, with a cell for each column. */
export function row(columns, properties = {}) {
  return h('tr', {role: 'row', ...properties}, columns.map(column =>
    h('td', {role: 'cell', class: column.class, 'data-label': column.title})));
}

/** Names and values; those that are null are left out. */
export function facts(...pairs) {
  return h('dl', {class: 'facts'}, pairs.filter(pair => pair && pair[1] !== null && pair[1] !== undefined && pair[1] !== '')
    .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

/** A state with a mark in its colour. */
export function stateMark(state) {
  const node = h('span', {class: 'state'}, h('i', {'aria-hidden': 'true'}), h('span'));
  setState(node, state);
  return node;
}

export function setState(node, state) {
  setAttribute(node, 'data-tone', tone(state));
  setText(node.lastChild, state);
}

/**
 * A list that comes in pages, newest first: load(cursor) returns {items, next}. refresh() reads the first page
 * again, unless the user has asked for more.
 */
export function pagedList({load, key, create, update, empty, list = h('ul', {class: 'list'})}) {
  const nothing = h('p', {class: 'empty', hidden: true}, empty);
  const button = h('button', {type: 'button', hidden: true}, 'Show more');
  let items = [];
  let next = null;
  let deep = false;

  function draw() {
    sync(list, items, key, create, update ?? (() => {}));
    show(nothing, items.length === 0);
    show(button, next !== null && next !== undefined);
  }
  button.addEventListener('click', async () => {
    deep = true;
    const page = await load(next);
    items = items.concat(page.items);
    next = page.next;
    draw();
  });
  return {
    node: h('div', {}, list, nothing, h('div', {class: 'more'}, button)),
    async refresh(force = false) {
      if (deep && !force) return;
      const page = await load(null);
      deep = false;
      items = page.items;
      next = page.next;
      draw();
    },
  };
}
