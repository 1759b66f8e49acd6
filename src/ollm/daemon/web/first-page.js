// The newest messages of the session that the address names, asked for while the other modules still load.
import { get, hasToken, isSessionId } from "./api.js";

const FIRST = 16; // messages of the first paint; the others follow at once

const [, named = ""] = /^#\/session\/([^/]+)$/.exec(location.hash) ?? [];

/** The session whose messages are asked for already, or nothing. */
export const earlySession = isSessionId(named) && hasToken() ? named : "";
/** @type {Promise<any> | null} */ let early = earlySession ? ask(earlySession) : null;
early?.catch(() => undefined); // told to whoever takes it

/** @param {string} sessionId */
function ask(sessionId) {
  return get(`/sessions/${sessionId}/transcript?limit=${FIRST}`);
}

/** The newest messages of a session. @param {string} sessionId @returns {Promise<any>} */
export function getFirstPage(sessionId) {
  const asked = sessionId === earlySession ? early : null;
  early = null;
  return asked ?? ask(sessionId);
}
