// The first view: the newest messages of the session that the address names; everything else is loaded after them.
import { fetchModules, fill, h } from "./dom.js";
import { earlySession } from "./first-page.js";
import { keepEarlyList } from "./message-list.js";

/** @typedef {import("./message-list.js").MessageList} MessageList */

const LONGEST_WAIT_MS = 1000;
const LONGEST_PAINT_MS = 300; // a page that nobody sees is not painted

/** @param {number} ms @returns {Promise<void>} */
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** When the browser says that there is something to read on the screen. @returns {Promise<void>} */
const waitForPaint = () => new Promise((done) => new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").length && done()).observe({ type: "paint", buffered: true }));

/** The places of a session's page, with nothing but its messages. */
async function showMessages() {
  const list = /** @type {MessageList} */ (document.createElement("ollm-messages"));
  list.sessionId = earlySession;
  list.busy = true; // what is above these messages can wait
  const conversation = h("div", { class: "conversation" }, h("header", { class: "bar" }), list, h("div", { class: "foot" }));
  const app = document.querySelector("ollm-app");
  if (app) fill(app, h("div", { class: "frame" }, h("aside", { class: "side" }), h("main", { id: "main" }, conversation)));
  const opened = list.open().then(() => true, () => false);
  keepEarlyList(list, opened);
  if (await opened) await Promise.race([waitForPaint(), pause(LONGEST_PAINT_MS)]);
  list.busy = false;
  list.onScroll();
}

async function start() {
  if (earlySession) await Promise.race([showMessages(), pause(LONGEST_WAIT_MS)]);
  fetchModules("soon");
  await import("./app.js");
}
void start();
