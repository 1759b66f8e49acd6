// The service worker: the page's own files, so that it opens without the daemon, and what a notification opens.
const CACHE = "ollm-pages";
const worker = /** @type {any} */ (self);

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));

/** The page from the daemon, else as it was last time; its files as they are, since their address holds the version. */
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== "GET" || origin !== location.origin) return;
  if (pathname === "/") event.respondWith(fetchPage(event.request));
  else if (pathname.startsWith("/web/files/")) event.respondWith(fetchFile(event.request));
});

/** @param {Request} request */
async function fetchPage(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put("/", response.clone());
    if (response.status < 500) return response;
    return (await cache.match("/")) ?? response; // a proxy answers for a daemon that is away
  } catch (error) {
    return (await cache.match("/")) ?? Promise.reject(error);
  }
}

/** @param {Request} request */
async function fetchFile(request) {
  const cache = await caches.open(CACHE);
  const known = await cache.match(request);
  if (known) return known;
  const response = await fetch(request);
  if (response.ok) await cache.put(request, response.clone());
  return response;
}

worker.addEventListener("message", (/** @type {any} */ event) => event.waitUntil(keep(event.data)));

/** Keep these files for a time without a network, and no others. @param {string[]} addresses */
async function keep(addresses) {
  const cache = await caches.open(CACHE);
  const wanted = new Set(addresses.map((one) => new URL(one, location.origin).href));
  for (const known of await cache.keys()) if (!wanted.has(known.url)) await cache.delete(known);
  for (const one of wanted) if (!(await cache.match(one))) await cache.add(one).catch(() => undefined);
}

worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(openPage(event.notification.data));
});

/** @param {string} address */
async function openPage(address) {
  const [page] = await worker.clients.matchAll({ type: "window" });
  if (!page) return worker.clients.openWindow(address);
  await page.focus();
  page.postMessage(address);
}
