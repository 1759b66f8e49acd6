// The newest messages of the session that the address names, asked for while the other modules still load.
import { get, hasToken, isSessionId } from "./api.js";

const FIRST = 16; // messages of the first paint; the others follow at once
const LONGEST_WAIT_MS = 2000;
const PAINT_MS = 30;

const [, named = ""] = /^#\/session\/([^/]+)$/.exec(location.hash) ?? [];
/** @type {Promise<any> | null} */ let early = isSessionId(named) && hasToken() ? ask(named) : null;

/** @param {string} sessionId */
function ask(sessionId) {
  return get(`/sessions/${sessionId}/transcript?limit=${FIRST}`);
}

/** The newest messages of a session. @param {string} sessionId @returns {Promise<any>} */
export function getFirstPage(sessionId) {
  const asked = sessionId === named ? early : null;
  early = null;
  return asked ?? ask(sessionId);
}

/** @param {number} ms @returns {Promise<void>} */
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** When these messages are on the screen, or at once: what can come later does not keep them waiting. */
export const firstPaint = early ? Promise.race([early.then(() => pause(PAINT_MS), () => undefined), pause(LONGEST_WAIT_MS)]) : Promise.resolve();
