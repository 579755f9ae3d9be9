// SPDX-License-Identifier: MIT
// Talks to troupe-web.

import {words} from './format.js';

/** What went wrong, as a sentence. status: of HTTP; 0 without an answer. */
export class Failure extends Error {
  constructor(message, status, name = '') {
    super(message);
    this.status = status;
    this.name = name;
  }
}

/** "io.troupe.Jobs.NoSuchJob" and its parameters as a sentence. */
function sentence(body) {
  if (body.reason) return body.reason;
  const name = words((body.error ?? 'error').split('.').at(-1).replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase());
  const details = Object.entries(body.parameters ?? {}).map(([key, value]) => `${words(key)}: ${value}`);
  return details.length ? `${name} (${details.join(', ')})` : name;
}

const LIMIT_MS = 12000;

export class Client {
  constructor() {
    this.token = sessionStorage.getItem('token') ?? '';
  }

  setToken(token) {
    this.token = token;
    if (token) sessionStorage.setItem('token', token);
    else sessionStorage.removeItem('token');
  }

  headers(more = {}) {
    return this.token ? {Authorization: `Bearer ${this.token}`, ...more} : more;
  }

  async request(path, options) {
    let response;
    try {
      response = await fetch(path, {credentials: 'omit', cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(LIMIT_MS), ...options});
    } catch {
      throw new Failure('troupe-web does not answer', 0);
    }
    let body = {};
    try {
      body = await response.json();
    } catch { /* the status says it */ }
    if (!response.ok) throw new Failure(sentence(body), response.status, (body.error ?? '').split('.').at(-1));
    return body;
  }

  get(path, parameters = {}) {
    const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== ''));
    const text = query.toString();
    return this.request(`/api/${path}${text ? `?${text}` : ''}`, {headers: this.headers()});
  }

  post(path, parameters) {
    return this.request(`/api/${path}`, {method: 'POST', headers: this.headers({'Content-Type': 'application/json'}), body: JSON.stringify(parameters)});
  }

  /** Calls on(type, data) for each event, until the signal; connects again by itself. An EventSource could not send the token. */
  async listen(on, path = '/api/events', signal = null) {
    let pause = 500;
    while (!signal?.aborted) {
      try {
        const response = await fetch(path, {credentials: 'omit', cache: 'no-store', headers: this.headers(), signal});
        if (response.ok) {
          pause = 500;
          await this.read(response.body.getReader(), on);
        }
      } catch { /* connects again */ }
      if (signal?.aborted) return;
      on('closed', {});
      await new Promise(resolve => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, 8000);
    }
  }

  /**
   * Calls on(type, data) for each thing that a job emits, until its end; connects again and continues. Does nothing
   * without permission.
   */
  async follow(id, on, signal) {
    let last = '';
    let over = false;
    const note = (type, data, at) => {
      last = at ?? last;
      over ||= type === 'end';
      on(type, data);
    };
    for (let pause = 500; !over && !signal.aborted; pause = Math.min(pause * 2, 8000)) {
      try {
        const response = await fetch(`/api/job-stream?${new URLSearchParams({id})}`,
                                     {credentials: 'omit', cache: 'no-store', signal, headers: this.headers(last ? {'Last-Event-ID': last} : {})});
        if (!response.ok && response.status !== 503) return;
        if (response.ok) await this.read(response.body.getReader(), note);
      } catch { /* connects again */ }
      if (!over) await new Promise(resolve => setTimeout(resolve, pause));
    }
  }

  async read(reader, on) {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      text += decoder.decode(value, {stream: true});
      const pieces = text.split('\n\n');
      text = pieces.pop();
      for (const piece of pieces) {
        const lines = piece.split('\n');
        const type = lines.find(line => line.startsWith('event: '))?.slice(7);
        const data = lines.find(line => line.startsWith('data: '))?.slice(6);
        const id = lines.find(line => line.startsWith('id: '))?.slice(4);
        if (type && data) on(type, JSON.parse(data), id);
      }
    }
  }
}
