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
}
