// Requests to the daemon: the cookie goes by itself, the page's token with every one of them.

const TOKEN_KEY = "ollm-page-token";
const DEVICE_KEY = "ollm-device"; // set on a paired device
const VERSION = import.meta.url.split("/").at(-2); // of the files this page is made of
const LONGEST_SILENCE_MS = 40_000;

/** What went wrong, in the daemon's words. */
export class RequestError extends Error {
  /** @param {number} status @param {string} message @param {string} action */
  constructor(status, message, action) {
    super(action ? `${message} ${action}` : message);
    this.status = status;
    this.detail = message;
  }
}

/** Whether this page was logged in, or its device paired, at some time. */
export function hasToken() {
  return localStorage.getItem(TOKEN_KEY) !== null || isDevice();
}

export function forgetToken() {
  localStorage.removeItem(TOKEN_KEY);
  localStorage.removeItem(DEVICE_KEY);
}

/** Whether this can be the id of a session. @param {string} text */
export function isSessionId(text) {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** Whether this is a paired device, and not the machine itself. */
export const isDevice = () => localStorage.getItem(DEVICE_KEY) !== null;

/** What a paired device may not do. @returns {{readOnly?: boolean, noGrants?: boolean}} */
export const readRights = () => JSON.parse(localStorage.getItem(DEVICE_KEY) ?? "{}");

/** Whether the machine is reached by its public name: only paired devices may come in. */
export const isPublic = !["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);

/** Trade a code for the key of this device. @param {string} code */
export async function pair(code) {
  localStorage.setItem(DEVICE_KEY, JSON.stringify(await request("POST", "/web/pair", { code })));
}

/** Renew the key of this device, and read what it may do. False without a key. */
export async function renew() {
  const rights = await request("GET", "/web/device").catch((error) => (error.status === 401 ? null : readRights()));
  if (rights) localStorage.setItem(DEVICE_KEY, JSON.stringify(rights));
  return !!rights;
}

/** Trade the ticket in the address for a login. @param {string} ticket */
export async function logIn(ticket) {
  const reply = await request("POST", "/web/login", { ticket });
  localStorage.setItem(TOKEN_KEY, reply.token);
}

/** @param {Record<string, string>} more */
function makeHeaders(more) {
  return { "x-ollm-page": localStorage.getItem(TOKEN_KEY) ?? "", ...more };
}

/**
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>}
 */
export async function request(method, path, body, headers = {}) {
  const response = await send(method, path, body, headers);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** Delete a session while the page is being left. @param {string} sessionId */
export function eraseOnLeave(sessionId) {
  void fetch(`/sessions/${sessionId}?erase=true`, { method: "DELETE", headers: makeHeaders({}), keepalive: true });
}

/** @param {string} path */
export const get = (path) => request("GET", path);

/** @param {string} path @param {any} [body] */
export const post = (path, body) => request("POST", path, body);

/** A page of a list, how long the whole is, and how many of all sessions wait for an answer. @param {string} path @returns {Promise<{items: any[], total: number, waiting: number}>} */
export async function getList(path) {
  const response = await send("GET", path);
  return { items: await response.json(), total: Number(response.headers.get("x-total-count") ?? 0), waiting: Number(response.headers.get("x-waiting-count") ?? 0) };
}

/** @param {string} method @param {string} path @param {any} [body] @param {Record<string, string>} [headers] @param {AbortSignal} [signal] */
async function send(method, path, body, headers = {}, signal) {
  /** @type {Record<string, string>} */
  const json = body === undefined ? {} : { "content-type": "application/json" };
  const content = body === undefined ? undefined : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { method, body: content, headers: makeHeaders({ ...json, ...headers }), signal, cache: "no-store" });
  } catch (error) {
    throw makeAway();
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (!problem.detail && response.status >= 500) throw makeAway(); // a proxy answers for a daemon that is away
  if (response.status === 401 && !/^.web.(login|pair|device)$/.test(path)) globalThis.dispatchEvent(new Event("ollm-logged-out"));
  throw new RequestError(response.status, problem.detail || response.statusText || `The daemon refused this (${response.status}).`, problem.action);
}

const makeAway = () => new RequestError(0, "The daemon does not answer.", "Start it with `ollm web`; this page goes on by itself.");

/** Events of a session, as the daemon sends them. @typedef {{type: string, sessionId: string, seq: number, [more: string]: any}} SessionEvent */

/**
 * One stream of the events of all sessions, opened again whenever it breaks.
 * Fires `event` with the event, `reset` when all that is known must be read anew, `state` when it breaks or is back, and
 * `updated` when the daemon has other pages than this one.
 */
export class Feed extends EventTarget {
  constructor() {
    super();
    this.state = "connecting";
    this.known = "";
    this.failures = 0;
  }

  async start() {
    for (;;) {
      try {
        await this.read();
      } catch (error) {
        if (error instanceof RequestError && error.status === 401) return;
      }
      this.change("lost");
      this.failures += 1;
      const seconds = Math.min(0.3 * 2 ** Math.min(this.failures, 5), 5);
      await new Promise((done) => setTimeout(done, seconds * 1000));
    }
  }

  async read() {
    const stop = new AbortController();
    let timer = setTimeout(() => stop.abort(), LONGEST_SILENCE_MS);
    const response = await send("GET", "/events", undefined, this.known ? { "last-event-id": this.known } : {}, stop.signal);
    this.failures = 0;
    this.change("open");
    if (response.headers.get("x-ollm-pages") !== VERSION) this.dispatchEvent(new Event("updated"));
    const reader = /** @type {ReadableStream<any>} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      clearTimeout(timer);
      if (done) return;
      timer = setTimeout(() => stop.abort(), LONGEST_SILENCE_MS);
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) this.take(block);
    }
  }

  /** @param {string} block */
  take(block) {
    const fields = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]));
    if (fields.id) this.known = fields.id;
    if (fields.event === "reset") this.dispatchEvent(new Event("reset"));
    else if (fields.data) this.dispatchEvent(new CustomEvent("event", { detail: JSON.parse(fields.data) }));
  }

  /** @param {string} state */
  change(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

export const feed = new Feed();
