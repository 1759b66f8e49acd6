// For a page that nobody looks at: the service worker, and notifications when a turn ends or asks.
import { feed, isDevice } from "./api.js";
import { makeScriptUrl, showControls } from "./dom.js";
import { say } from "./toast.js";

const WANTED_KEY = "ollm-notify";
const ENDINGS = /** @type {Record<string, string>} */ ({ answered: "Finished.", cancelled: "Stopped." });

/** Whether this browser is to notify. */
export const isNotifying = () => localStorage.getItem(WANTED_KEY) !== null && globalThis.Notification?.permission === "granted";

/** Start what works while the page is in the background. */
export function startAway() {
  if (isDevice() || isNotifying()) void startWorker();
  feed.addEventListener("event", (event) => void notify(/** @type {CustomEvent} */ (event).detail));
}

/** @returns {Promise<any>} */
async function startWorker() {
  const workers = navigator.serviceWorker;
  if (!workers) return null;
  try {
    await workers.register(makeScriptUrl("/web/files/sw.js"), { scope: "/", updateViaCache: "none" });
  } catch {
    return null; // a certificate that the browser does not know
  }
  workers.onmessage = (event) => (location.hash = new URL(event.data, location.origin).hash);
  const ready = await workers.ready;
  const named = [...document.querySelectorAll("[href^='/web/files/'], [src^='/web/files/']")].map((one) => one.getAttribute("href") ?? one.getAttribute("src"));
  const folded = [...document.querySelectorAll("template")].flatMap((one) => [...one.content.querySelectorAll("[href]")].map((link) => link.getAttribute("href")));
  ready.active?.postMessage(["/", ...named, ...folded]);
  return ready;
}

/** Switch notifications on or off. @returns {Promise<boolean>} */
export async function toggleNotifications() {
  const on = isNotifying();
  if (on) localStorage.removeItem(WANTED_KEY);
  else if ((await globalThis.Notification?.requestPermission()) === "granted") {
    localStorage.setItem(WANTED_KEY, "1");
    await startWorker();
  } else say("The browser does not allow notifications for this page.", { bad: true });
  return isNotifying();
}

/** @param {import("./api.js").SessionEvent} event */
async function notify(event) {
  const asks = event.type === "confirmation-requested";
  if ((!asks && event.type !== "turn-finished") || !isNotifying() || document.visibilityState === "visible") return;
  const lines = /** @type {any} */ (document.querySelector("ollm-session-list"))?.lines ?? [];
  const title = lines.find((/** @type {any} */ line) => line.sessionId === event.sessionId)?.title || "ollm";
  const options = { body: asks ? `Asks about ${event.details.tool}.` : (ENDINGS[event.reason] ?? "Ended with a problem."), tag: event.sessionId, icon: "/web/files/icon-192.png", data: `/#/session/${event.sessionId}` };
  const ready = await navigator.serviceWorker?.getRegistration();
  if (ready) await ready.showNotification(showControls(title), options);
  else new Notification(showControls(title), options);
}
