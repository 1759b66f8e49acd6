// Building elements without text that could become markup; the one door for HTML that the server cleaned.

/** Our mark, beside the modules. */
export const ICON_URL = new URL("icon.svg", import.meta.url).href;

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element with properties and children. `on…` adds a listener, `class`, `data-…`, `aria-…` and `role` are attributes.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  setProperties(element, properties ?? {});
  element.append(...flatten(children));
  return element;
}

const SPOKEN = new Set(["title", "aria-label", "alt", "placeholder"]); // read by people, as text is

/** @param {Element} element @param {Record<string, any>} properties */
function setProperties(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    const shown = SPOKEN.has(name) ? showControls(String(value)) : value;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "role" && name !== "list" && name !== "form") {
      /** @type {any} */ (element)[name] = shown;
    } else element.setAttribute(name === "className" ? "class" : name, shown === true ? "" : String(shown));
  }
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function flatten(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : showControls(String(child))));
}

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** A text with what steers a screen or turns the direction of writing written out. @param {string} text */
export function showControls(text) {
  return text.replace(CONTROLS, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Put these in the place of all that is inside. @param {Element} element @param {...(Child | Child[])} children */
export function fill(element, ...children) {
  element.replaceChildren(...flatten(children));
}

/** Fetch the modules that a template of the page names. @param {string} id */
export function fetchModules(id) {
  const named = document.getElementById(id);
  if (named instanceof HTMLTemplateElement) document.head.append(named.content);
}

const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("ollm", {
  createHTML: (/** @type {string} */ html) => html,
  createScriptURL: (/** @type {string} */ address) => address,
});

/** The address of a script of ours. @param {string} address */
export const makeScriptUrl = (address) => (policy ? policy.createScriptURL(address) : address);

let title = "ollm";
let waiting = 0;

/** Name what is shown, after the number of sessions that wait for an answer. @param {string} [text] @param {number} [count] */
export function setTitle(text = title, count = waiting) {
  title = text;
  waiting = count;
  document.title = count ? `(${count}) ${text}` : text;
}

/** Show HTML that the daemon rendered and cleaned; nothing else is ever shown this way. @param {Element} element @param {string} html */
export function showCleanHtml(element, html) {
  element.innerHTML = policy ? policy.createHTML(html) : html;
  for (const time of element.querySelectorAll("time[datetime]")) {
    const stamp = time.getAttribute("datetime") ?? "";
    time.textContent = formatAge(stamp);
    time.setAttribute("title", formatMoment(stamp));
  }
  for (const link of element.querySelectorAll("a[href]")) {
    if (link.getAttribute("href")?.startsWith("#")) link.removeAttribute("href");
    else link.setAttribute("target", "_blank");
  }
  for (const block of element.querySelectorAll("pre")) block.tabIndex = block.closest("details.call") ? 0 : -1;
}

const PATHS = /** @type {Record<string, string>} */ ({
  back: "M15 5l-7 7 7 7",
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  clip: "M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.3a3 3 0 0 1 4.3 4.3l-7.8 7.7a1.5 1.5 0 0 1-2.1-2.1L14 7.6",
  close: "M6 6l12 12M18 6L6 18",
  chart: "M4 20V10M10 20V4M16 20v-7M21 20H3",
  history: "M4 12a8 8 0 1 0 3-6.2L4 8M4 4v4h4M12 8v4l3 2",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  archive: "M4 7h16v3H4zM6 10v9h12v-9M10 14h4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  tool: "M14 6a4 4 0 0 0-5.3 5.2L4 16l3 4 5-4.600A4 4 0 0 0 18 10l-3 2-2-2z",
  shield: "M12 3l7 3v6c0 4.500-3 7.500-7 9-4-1.500-7-4.500-7-9V6z",
  chip: "M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4",
  gear: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 3v3M12 18v3M4.200 7.500l2.600 1.500M17.200 15l2.600 1.500M4.200 16.500L6.800 15M17.200 9l2.600-1.500",
  down: "M12 5v14M6 13l6 6 6-6",
  pencil: "M4 20l4-1L19 8l-3-3L5 16z",
  exit: "M10 5H5v14h5M14 8l4 4-4 4M18 12H9",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4",
  chat: "M5 5h14v11H10l-5 4z",
});

/** One of our own drawings. @param {string} name */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("class", "icon");
  drawing.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", PATHS[name] ?? "");
  drawing.append(path);
  return drawing;
}

/** A button with a drawing and a name for those who cannot see it. @param {string} name @param {string} label @param {(event: Event) => void} onclick @param {Record<string, any>} [more] */
export function iconButton(name, label, onclick, more) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...more }, icon(name));
}

const UNITS = /** @type {[number, string][]} */ ([
  [60, "s"],
  [60, "min"],
  [24, "h"],
  [7, "d"],
  [5, "wk"],
]);

/** How long ago, for people: `3 min ago`. @param {string | number} stamp */
export function formatAge(stamp) {
  let count = Math.max(0, (Date.now() - new Date(stamp).getTime()) / 1000);
  if (!Number.isFinite(count)) return "";
  if (count < 45) return "just now";
  for (const [size, unit] of UNITS) {
    if (count < size) return `${Math.round(count)} ${unit} ago`;
    count /= size;
  }
  return formatDay(new Date(stamp));
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `2 Jan 2026`. By hand: the browser's own formats take longer to load than a page. @param {Date} date */
const formatDay = (date) => `${date.getDate()} ${MONTHS[date.getMonth()]} ${date.getFullYear()}`;

/** `2 Jan 2026, 03:04:05`, in the time of this place. @param {string | number} stamp */
export function formatMoment(stamp) {
  const date = new Date(stamp);
  if (Number.isNaN(date.getTime())) return "";
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0"));
  return `${formatDay(date)}, ${clock.join(":")}`;
}

/** `1 file`, `2 files`. @param {number} count @param {string} word */
export function formatMany(count, word) {
  return `${formatCount(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** @param {number} count */
export function formatCount(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** The last part of a path, for a worktree after the name of its repository. @param {string | null} path */
export function baseName(path) {
  const worktree = /([^/]+)\.worktrees\/([^/]+)\/*$/.exec(path ?? "");
  if (worktree) return `${worktree[1]} ⎇ ${worktree[2]}`;
  return (path ?? "").replace(/\/+$/, "").split("/").pop() || path || "";
}
