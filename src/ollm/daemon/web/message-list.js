// What was said, of any length: a window of messages in the page, and blank space where the others are.
import { get } from "./api.js";
import { baseName, fill, formatMany, h, iconButton, showCleanHtml } from "./dom.js";
import { getFirstPage } from "./first-page.js";

const PAGE = 40;
const KEPT = 160;
const NEAR_PX = 1200;
const GUESSED_PX = 140;
const LONG_LINES = 25;
const LONG_CHARS = 3000;

export class MessageList extends HTMLElement {
  constructor() {
    super();
    this.sessionId = "";
    this.first = 1; // numbers of the window that is in the page: first … last
    this.last = 0;
    this.total = 0;
    this.scrolled = 0; // how far, when it last moved
    this.busy = false;
    this.opened = false;
    this.height = GUESSED_PX; // of a message, as measured
    /** @type {HTMLElement | undefined} */ this.about = undefined; // facts about the session, with the count of messages
    /** @type {any} */ this.line = null;
    /** @type {Set<string>} */ this.waiting = new Set(); // calls a question is about
    this.above = h("div", { class: "space" });
    this.below = h("div", { class: "space" });
    this.items = h("div", { class: "transcript" });
    this.tail = h("div", { class: "tail transcript" });
  }

  connectedCallback() {
    if (this.children.length) return this.keepScroll();
    this.className = "messages";
    this.tabIndex = 0;
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", "Conversation");
    fill(this, h("div", { class: "column" }, this.above, this.items, this.below, this.tail));
    this.addEventListener("scroll", () => this.onScroll(), { passive: true });
    const follow = new ResizeObserver(() => this.pinned && this.toEnd());
    for (const part of [this.items, this.tail, this]) follow.observe(part);
  }

  /** It was put elsewhere, which winds it back. */
  keepScroll() {
    if (this.pinned) this.toEnd();
    else this.scrollTop = this.scrolled;
  }

  /** Whether the end is in sight, and should stay there. */
  pinned = true;

  /** How large all was when it was last brought to the end. */
  sizeAtEnd = "";

  get atEnd() {
    return this.scrollHeight - this.scrollTop - this.clientHeight < 80;
  }

  toEnd() {
    this.scrollTop = this.scrollHeight;
    this.sizeAtEnd = this.size;
  }

  get size() {
    return `${this.scrollHeight} ${this.clientHeight}`;
  }

  /** The newest messages, or those around a number. @param {number} number */
  async open(number = 0) {
    const page = await (number ? get(`/sessions/${this.sessionId}/transcript?limit=${PAGE}&before=${number + PAGE / 2}`) : getFirstPage(this.sessionId));
    const end = number ? (await get(`/sessions/${this.sessionId}/transcript?limit=1`)).last : page.last;
    fill(this.items);
    this.opened = true;
    this.total = end;
    this.last = page.messages.at(-1)?.number ?? 0;
    this.first = page.messages[0]?.number ?? 1;
    this.items.append(...page.messages.map(this.makeItem, this));
    this.measure();
    this.pinned = !number;
    if (number) this.point(number);
    else this.toEnd();
    requestAnimationFrame(() => this.onScroll());
  }

  /** Bring what came since message `after` up to date. @param {number} after */
  async refresh(after) {
    if (this.last < this.total) return; // the end is not in the page
    const page = await get(`/sessions/${this.sessionId}/transcript?limit=200&after=${after}`);
    for (const message of page.messages) {
      if (message.number < this.first) continue; // older ones come when one scrolls there
      const item = this.makeItem(message);
      const there = this.items.querySelector(`[data-number="${message.number}"]`);
      if (!there) this.items.append(item);
      else if (there.innerHTML !== item.innerHTML) {
        keepFolds(there, item);
        there.replaceWith(item);
      }
    }
    this.total = Math.max(this.total, page.last);
    this.last = this.total;
    this.describe();
    if (this.pinned) this.toEnd();
  }

  /** Show the folder, the model and the number of messages. @param {HTMLElement | undefined} [about] @param {any} [line] */
  describe(about, line) {
    this.about = about ?? this.about;
    this.line = line ?? this.line;
    const { workspace, model, messageCount } = this.line ?? {};
    if (this.about && this.line) fill(this.about, [baseName(workspace), model, formatMany(Math.max(messageCount, this.total), "message")].filter(Boolean).join(" · "));
  }

  /** These calls wait for an answer, and say so. @param {string[]} calls */
  setWaiting(calls) {
    this.waiting = new Set(calls);
    this.markWaiting(this.items);
  }

  /** @param {Element} within */
  markWaiting(within) {
    for (const call of within.querySelectorAll("details.call.running")) {
      const outcome = call.querySelector(".outcome");
      if (outcome) outcome.textContent = this.waiting.has(call.getAttribute("data-call") ?? "") ? "waiting for you" : "running";
    }
  }

  /** @param {{number: number, html: string}} message */
  makeItem(message) {
    const item = h("div", { "data-number": message.number, class: "item" });
    if (message.html) showCleanHtml(item, message.html);
    foldLong(item.querySelector("section.user > .said"));
    item.querySelector("section.user > h2")?.append(iconButton("history", `Rewind to before message ${message.number}`, () => this.dispatchEvent(new CustomEvent("rewind", { detail: message.number })), { class: "icon-button rewind-here" }));
    this.markWaiting(item);
    return item;
  }

  onScroll() {
    this.scrolled = this.scrollTop;
    if (this.pinned && this.size !== this.sizeAtEnd) this.toEnd(); // it grew meanwhile: nobody went away from the end
    this.pinned = this.atEnd && this.last >= this.total;
    this.dispatchEvent(new Event("moved"));
    if (this.busy) return;
    const top = this.items.offsetTop - this.scrollTop;
    const bottom = top + this.items.offsetHeight - this.clientHeight;
    const missing = (top > this.clientHeight && this.first > 1) || (bottom < -this.clientHeight && this.last < this.total);
    if (missing) void this.work(() => this.open(this.guess()));
    else if (top > -NEAR_PX && this.first > 1) void this.work(() => this.older());
    else if (bottom < NEAR_PX && this.last < this.total) void this.work(() => this.newer());
  }

  /** The number of the message that should be in sight, by the height of those that were. */
  guess() {
    return Math.min(this.total, Math.max(1, Math.round(this.scrollTop / this.height)));
  }

  /** @param {() => Promise<void>} step */
  async work(step) {
    this.busy = true;
    try {
      await step();
    } catch {
      await new Promise((done) => setTimeout(done, 1000));
    }
    this.busy = false;
    requestAnimationFrame(() => this.onScroll());
  }

  async older() {
    const page = await get(`/sessions/${this.sessionId}/transcript?limit=${PAGE}&before=${this.first}`);
    this.keepPlace(() => {
      this.items.prepend(...page.messages.map(this.makeItem, this));
      this.first = page.messages[0]?.number ?? 1;
      this.trim("last");
    });
  }

  async newer() {
    const page = await get(`/sessions/${this.sessionId}/transcript?limit=${PAGE}&before=${this.last + PAGE + 1}&after=${this.last}`);
    this.keepPlace(() => {
      this.items.append(...page.messages.map(this.makeItem, this));
      this.last = Math.max(page.messages.at(-1)?.number ?? 0, Math.min(this.last + PAGE, this.total));
      this.trim("first");
    });
  }

  /** @param {"first" | "last"} side */
  trim(side) {
    while (this.items.children.length > KEPT) {
      if (side === "first") this.items.firstElementChild?.remove();
      else this.items.lastElementChild?.remove();
    }
    this.first = Number(/** @type {HTMLElement} */ (this.items.firstElementChild)?.dataset.number ?? this.first);
    if (side === "last") this.last = Number(/** @type {HTMLElement} */ (this.items.lastElementChild)?.dataset.number ?? this.last);
    this.measure();
  }

  /** Change the page without moving what is being read. @param {() => void} change */
  keepPlace(change) {
    const seen = /** @type {HTMLElement | undefined} */ ([...this.items.children].find((item) => /** @type {HTMLElement} */ (item).getBoundingClientRect().bottom > this.getBoundingClientRect().top));
    const before = seen?.getBoundingClientRect().top ?? 0;
    change();
    if (seen?.isConnected) this.scrollTop += seen.getBoundingClientRect().top - before;
  }

  measure() {
    const count = this.last - this.first + 1;
    if (count > 0 && this.items.offsetHeight) this.height = Math.max(20, this.items.offsetHeight / count);
    this.above.style.height = `${Math.round((this.first - 1) * this.height)}px`;
    this.below.style.height = `${Math.round(Math.max(0, this.total - this.last) * this.height)}px`;
  }

  /** @param {number} number */
  async jumpTo(number) {
    const wanted = Math.min(Math.max(1, number), this.total);
    if (!this.items.querySelector(`[data-number="${wanted}"]`)) await this.work(() => this.open(wanted));
    else this.point(wanted);
  }

  /** What a person typed, without what is attached. @param {number} number */
  readTyped(number) {
    return this.items.querySelector(`[data-number="${number}"] section.user .said`)?.textContent ?? "";
  }

  /** @param {number} number */
  point(number) {
    const items = /** @type {HTMLElement[]} */ ([...this.items.children]).filter((item) => item.firstElementChild);
    const found = items.findLast((item) => Number(item.dataset.number) <= number) ?? items[0];
    if (!found) return;
    this.pinned = false;
    this.scrollTop += found.getBoundingClientRect().top - this.getBoundingClientRect().top - 24;
    found.classList.add("pointed");
    setTimeout(() => found.classList.remove("pointed"), 1800);
  }
}
customElements.define("ollm-messages", MessageList);

/** Fold a long text of a person behind its first line. @param {Element | null} said */
function foldLong(said) {
  const text = said?.textContent ?? "";
  const lines = text.split("\n").length;
  if (!said || (lines <= LONG_LINES && text.length <= LONG_CHARS)) return;
  const fold = h("details", { class: "long" });
  said.replaceWith(fold);
  fold.append(h("summary", null, h("b", null, text.trimStart().split("\n")[0].slice(0, 120)), h("span", { class: "meta" }, lines > 1 ? formatMany(lines, "line") : formatMany(text.length, "character"))), said);
}

/** What was unfolded, or folded, stays so, and so does what a running tool printed. @param {Element} before @param {Element} after */
function keepFolds(before, after) {
  const known = [...before.querySelectorAll("details")];
  [...after.querySelectorAll("details")].forEach((one, index) => {
    const same = known[index];
    if (!same) return;
    const goesOn = same.className === one.className;
    if (goesOn) one.open = same.open;
    else if (same.open && !same.dataset.live) one.open = true; // unfolded by hand
    if (!goesOn || !same.dataset.live) return;
    one.dataset.live = same.dataset.live;
    const printed = same.querySelector("pre.live");
    if (printed) one.append(printed);
  });
}

/** @type {{list: MessageList, opened: Promise<boolean>} | null} */ let early = null;

/** Keep the list that the first view shows for the page of its session. @param {MessageList} list @param {Promise<boolean>} opened */
export function keepEarlyList(list, opened) {
  early = { list, opened };
}

/** Take the list that is on the screen already, and whether it could be opened; once. @param {string} sessionId */
export function takeEarlyList(sessionId) {
  const found = early?.list.sessionId === sessionId ? early : null;
  early = null;
  return found;
}
