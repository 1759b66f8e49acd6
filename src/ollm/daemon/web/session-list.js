// The sessions of all workspaces: search as one types, filters, archive, rename, delete with undo.
import { eraseOnLeave, feed, get, getList, request } from "./api.js";
import { baseName, fill, formatAge, formatMany, h, icon, ICON_URL, iconButton, setTitle } from "./dom.js";
import { openSession } from "./open-session.js";
import { ask, attempt, say } from "./toast.js";

const PAGE = 60;
const TYPING_MS = 180;
const UNDO_MS = 7000;
const EMPTY = /** @type {Record<string, string>} */ ({ unarchived: "No sessions here. Start one with New.", chats: "No chats here. Start one with New.", active: "No session is open.", archived: "No archived sessions." });
const CHANGES = new Set(["session-created", "turn-started", "turn-finished", "confirmation-requested", "confirmation-resolved"]);

class SessionList extends HTMLElement {
  constructor() {
    super();
    /** @type {any[]} */ this.lines = [];
    /** @type {any[]} */ this.hits = [];
    this.total = 0;
    this.words = "";
    this.status = "unarchived";
    this.workspace = "";
    /** @type {Set<string>} */ this.hidden_ = new Set();
    this.timer = 0;
    this.asked = 0;
  }

  connectedCallback() {
    this.search = h("input", { type: "search", placeholder: "Search sessions", "aria-label": "Search sessions", oninput: () => this.later(TYPING_MS) });
    this.choice = h("select", { "aria-label": "Workspace", onchange: () => this.choose() }, h("option", { value: "" }, "All folders"));
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Status" }, ...this.makeChips());
    this.list = h("ul", { class: "sessions" });
    this.found = h("div", { class: "hits" });
    this.more = h("button", { type: "button", class: "quiet more", hidden: true, onclick: () => void this.load(this.lines.length + PAGE) }, "Show more");
    fill(
      this,
      h("div", { class: "list-head" },
        h("a", { class: "brand", href: "#/" }, h("img", { src: ICON_URL, alt: "" }), "ollm"),
        h("button", { type: "button", class: "primary small", onclick: () => void this.startNew() }, icon("plus"), "New"),
      ),
      h("div", { class: "search" }, icon("search"), this.search),
      h("div", { class: "filters" }, this.choice, this.chips),
      h("nav", { class: "scroll", "aria-label": "Sessions" }, this.found, this.list, this.more),
    );
    this.onEvent = (/** @type {any} */ event) => CHANGES.has(event.detail.type) && this.later(400);
    this.onReset = () => this.later(0);
    addEventListener("pagehide", () => this.hidden_.forEach(eraseOnLeave)); // whoever leaves undoes nothing
    feed.addEventListener("event", this.onEvent);
    feed.addEventListener("reset", this.onReset);
    addEventListener("focus", () => this.later(0));
    addEventListener("hashchange", () => this.markCurrent());
    addEventListener("ollm-sessions-changed", () => this.later(0));
    this.addEventListener("keydown", (event) => this.moveFocus(event));
    void Promise.all([this.load(PAGE), this.loadWorkspaces()]);
  }

  makeChips() {
    return [["unarchived", "All"], ["chats", "Chats"], ["active", "Open"], ["archived", "Archived"]].map(([value, text]) =>
      h("button", { type: "button", class: "chip", "aria-pressed": String(value === this.status), onclick: () => this.setStatus(value) }, text),
    );
  }

  /** @param {string} value */
  setStatus(value) {
    this.status = value;
    if (this.chips) fill(this.chips, ...this.makeChips());
    void this.load(PAGE);
  }

  choose() {
    this.workspace = this.choice?.value ?? "";
    void this.load(PAGE);
  }

  /** @param {number} ms */
  later(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.load(Math.max(PAGE, this.lines.length)), ms);
  }

  async loadWorkspaces() {
    const found = await get("/workspaces").catch(() => []);
    for (const one of found) this.choice?.append(h("option", { value: one.workspacePath, title: one.workspacePath }, baseName(one.workspacePath)));
  }

  /** @param {number} count */
  async load(count) {
    const asked = ++this.asked;
    this.words = this.search?.value.trim() ?? "";
    const query = new URLSearchParams({ limit: String(Math.min(count, 1000)), q: this.words, workspace: this.workspace, status: this.status });
    try {
      const [page, hits] = await Promise.all([getList(`/sessions?${query}`), this.words.length > 1 ? get(`/search?${new URLSearchParams({ q: this.words, limit: "20" })}`) : []]);
      if (asked !== this.asked) return;
      this.lines = page.items;
      setTitle(undefined, page.waiting);
      this.total = page.total;
      this.hits = hits;
      this.draw();
    } catch (error) {
      if (!this.lines.length && this.list) fill(this.list, h("li", { class: "empty" }, error instanceof Error ? error.message : ""));
    }
  }

  draw() {
    if (!this.list || !this.found || !this.more) return;
    const shown = this.lines.filter((line) => !this.hidden_.has(line.sessionId));
    const focused = findSessionId(document.activeElement);
    const place = this.findLinks().findIndex((link) => findSessionId(link) === focused);
    fill(this.list, ...this.group(shown));
    if (!shown.length && !this.hits.length) fill(this.list, h("li", { class: "empty" }, this.words ? "No matching sessions." : EMPTY[this.status]));
    fill(this.found, ...(this.hits.length ? [h("h2", null, "In messages"), h("ul", { class: "sessions" }, ...this.hits.map((hit) => this.makeHit(hit))), shown.length ? h("h2", null, "Sessions") : null] : []));
    this.more.hidden = this.lines.length >= this.total;
    this.markCurrent();
    if (focused) this.focusLine(focused, place);
  }

  findLinks() {
    return /** @type {HTMLElement[]} */ ([...(this.list?.querySelectorAll("li[data-id] a") ?? [])]);
  }

  /** Its line, or the one in its place now. @param {string} sessionId @param {number} place */
  focusLine(sessionId, place) {
    const links = this.findLinks();
    const same = links.find((link) => findSessionId(link) === sessionId);
    (same ?? links[Math.min(place, links.length - 1)] ?? this.search)?.focus();
  }

  /** Lines under the day they were last active, forks under their parents. @param {any[]} lines */
  group(lines) {
    /** @type {HTMLElement[]} */ const found = [];
    let last = "";
    for (const { line, depth, day } of arrangeForks(lines)) {
      if (day !== last && !this.words) found.push(h("li", { class: "day" }, day));
      last = day;
      found.push(this.makeLine(line, depth));
    }
    return found;
  }

  /** @param {any} line @param {number} depth Of a fork in the tree. */
  makeLine(line, depth) {
    const mark = line.questions ? h("span", { class: "mark ask" }, "waiting for you") : line.running ? h("span", { class: "mark run" }, "working") : null;
    const place = line.archive ? `archive: ${line.archive.owner} on ${line.archive.host}` : "";
    const fork = line.parent ? `fork at #${line.parent.messageId}` : "";
    const about = [fork, baseName(line.workspace), line.model, formatAge(line.lastActivity), place].filter(Boolean).join(" · ");
    return h(
      "li",
      { "data-id": line.sessionId, "data-depth": String(Math.min(depth, 3)) },
      h("a", { href: `#/session/${line.sessionId}` }, h("span", { class: "title" }, line.title || "Untitled session"), h("span", { class: "about" }, about), mark, line.damaged ? h("span", { class: "mark bad" }, "damaged") : null),
      iconButton("more", `Actions for ${line.title || "session"}`, () => void this.showActions(line)),
    );
  }

  /** @param {any} hit */
  makeHit(hit) {
    return h("li", { "data-id": `${hit.sessionId}#${hit.number}` }, h("a", { href: `#/session/${hit.sessionId}/m/${hit.number}` }, h("span", { class: "title" }, hit.title || "Untitled session"), h("span", { class: "about" }, `#${hit.number} ${hit.role}`), h("span", { class: "snippet" }, ...markWords(hit.snippet))));
  }

  markCurrent() {
    const id = location.hash.split("/")[2];
    for (const item of this.querySelectorAll("li[data-id]")) {
      const link = item.querySelector("a");
      if (item.getAttribute("data-id") === id) link?.setAttribute("aria-current", "page");
      else link?.removeAttribute("aria-current");
    }
  }

  /** Arrow keys go from line to line. @param {KeyboardEvent} event */
  moveFocus(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = /** @type {HTMLElement[]} */ ([...this.querySelectorAll(".scroll li a")]);
    const here = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (here < 0 && document.activeElement !== this.search) return;
    event.preventDefault();
    const next = here + (event.key === "ArrowDown" ? 1 : -1);
    (links[next] ?? (next < 0 ? this.search : links[here]))?.focus();
  }

  /** @param {any} line */
  async showActions(line) {
    const archived = line.status === "archived";
    const name = h("input", { type: "text", value: line.title, maxLength: 200, "aria-label": "Title" });
    const facts = h("p", { class: "meta" }, `${formatMany(line.messageCount, "message")} · ${line.workspace ?? ""}`);
    const choice = await ask(line.title || "Session", [h("label", { class: "field" }, "Title", name), facts], [["rename", "Save title"], ["archive", archived ? "Unarchive" : "Archive"], ["delete", "Delete"], ["", "Cancel"]]);
    if (choice === "rename" && name.value.trim()) await this.change(line, { title: name.value.trim() });
    if (choice === "archive") await this.change(line, { status: archived ? "closed" : "archived" });
    if (choice === "delete") this.remove_(line);
  }

  /** @param {any} line @param {any} body */
  async change(line, body) {
    await attempt(() => request("PATCH", `/sessions/${line.sessionId}`, body));
    this.later(0);
  }

  /** Deleted for good once there was time to take it back. @param {any} line */
  remove_(line) {
    this.hidden_.add(line.sessionId);
    this.draw();
    if (location.hash.includes(line.sessionId)) location.hash = "#/";
    const show = () => {
      this.hidden_.delete(line.sessionId);
      this.draw();
    };
    const undo = () => {
      show();
      this.focusLine(line.sessionId, 0);
    };
    const gone = async () => {
      await attempt(() => request("DELETE", `/sessions/${line.sessionId}?erase=true`));
      show();
      this.later(0);
    };
    say(`“${line.title || "Session"}” will be deleted.`, { action: "Undo", run: undo, gone: () => void gone(), ms: UNDO_MS });
  }

  async startNew() {
    const known = await get("/workspaces").catch(() => []);
    const id = "workspace-paths";
    const options = h("datalist", { id }, ...known.map((/** @type {any} */ one) => h("option", { value: one.workspacePath })));
    const path = h("input", { type: "text", list: id, value: known[0]?.workspacePath ?? "", "aria-label": "Folder", spellcheck: false });
    const choice = await ask("New session", [h("label", { class: "field" }, "Folder to work in", path), options], [["open", "Start"], ["", "Cancel"]]);
    if (choice !== "open") return;
    const opened = await attempt(() => openSession(path.value.trim()));
    if (!opened) return;
    location.hash = `#/session/${opened.sessionId}`;
    this.later(0);
  }
}
customElements.define("ollm-session-list", SessionList);

/** Forks under their parents; a family stands where its newest member stood. @param {any[]} lines */
function arrangeForks(lines) {
  const known = new Map(lines.map((line) => [line.sessionId, line]));
  /** @type {Map<string, {line: any, depth: number, day: string}>} */ const placed = new Map();
  /** @param {any} line @param {number} depth @param {string} day */
  const place = (line, depth, day) => {
    if (placed.has(line.sessionId)) return;
    placed.set(line.sessionId, { line, depth, day });
    for (const fork of lines) if (fork.parent?.sessionId === line.sessionId) place(fork, depth + 1, day);
  };
  for (const line of lines) {
    const seen = new Set();
    let oldest = line;
    while (known.has(oldest.parent?.sessionId) && !seen.has(oldest)) {
      seen.add(oldest);
      oldest = known.get(oldest.parent.sessionId);
    }
    place(oldest, 0, line.questions ? "Waiting for you" : nameDay(line.lastActivity));
  }
  return [...placed.values()];
}

/** The session whose line holds an element. @param {Element | null} element */
function findSessionId(element) {
  return element?.closest("li")?.getAttribute("data-id");
}

/** @param {string} stamp */
function nameDay(stamp) {
  const days = Math.floor(new Date().setHours(0, 0, 0, 0) / 864e5 - new Date(stamp).setHours(0, 0, 0, 0) / 864e5);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "This week";
  return days < 31 ? "This month" : "Earlier";
}

/** The words that were found are between « and ». @param {string} snippet */
function markWords(snippet) {
  return snippet.split(/«([^«»]*)»/).map((text, index) => (index % 2 ? h("mark", null, text) : text));
}
