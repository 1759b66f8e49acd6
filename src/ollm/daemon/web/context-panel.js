// A picture of the window: its parts, checkpoints, what was cut, what was reused, how quick it was.
import { get } from "./api.js";
import { fill, formatCount, h, iconButton } from "./dom.js";
import { attempt } from "./toast.js";

class ContextPanel extends HTMLElement {
  constructor() {
    super();
    /** @type {any} */ this.page = null;
  }

  connectedCallback() {
    this.className = "panel";
    this.setAttribute("role", "complementary");
    this.setAttribute("aria-label", "Context");
    this.tabIndex = 0;
    this.body = h("div", null, h("p", { class: "meta" }, "Measuring…"));
    fill(this, h("div", { class: "head" }, h("h2", null, "Context"), iconButton("close", "Close", () => this.page.closePanel())), this.body);
    void this.load();
  }

  async load() {
    const picture = await attempt(() => get(`/sessions/${this.page.sessionId}/context`));
    if (!picture || !this.body) return;
    const parts = picture.parts.filter((/** @type {any} */ part) => part.tokens > 0);
    fill(
      this.body,
      h("p", null, h("strong", null, formatCount(picture.used)), ` of ${formatCount(picture.limit)} tokens used. The window has ${formatCount(picture.window)}; compaction starts when messages exceed ${formatCount(picture.trigger)}.`),
      makeWindowBar(parts, picture.window),
      h("ul", { class: "legend" }, ...parts.map((/** @type {any} */ part, /** @type {number} */ index) => h("li", null, h("span", { class: `dot tint-${index % 8}` }), h("span", null, part.name), h("span", { class: "number" }, formatCount(part.tokens))))),
      picture.live ? null : h("p", { class: "meta" }, "This session is closed. Resuming it would send this."),
      ...this.makeCheckpoints(picture),
      h("h3", null, "Messages in the window"),
      this.makeMessages(picture.messages),
      h("h3", null, "Last turns"),
      makePlot("Prompt reused", picture.reuse.map((/** @type {any} */ one) => one.serverShare), (value) => `${Math.round(value * 100)} %`, 1),
      makePlot("Words a second (tokens)", picture.turns.map((/** @type {any} */ one) => one.tokensPerSecond), (value) => value.toFixed(value < 10 ? 1 : 0)),
      makePlot("Wait for the first word", picture.turns.map((/** @type {any} */ one) => one.firstWordSeconds), (value) => `${value.toFixed(1)} s`),
    );
  }

  /** @param {any} picture */
  makeCheckpoints(picture) {
    const cut = picture.recallableCount
      ? h("p", { class: "meta" }, `${formatCount(picture.recallableCount)} messages are no longer in the window (${picture.recallable}). The model can recall any of them by number; you can read them all here.`)
      : h("p", { class: "meta" }, "Every message is in the window.");
    const records = picture.checkpoints.map((/** @type {any} */ one) =>
      h("details", { class: "card" }, h("summary", null, h("strong", null, `Messages ${one.messages}`), h("span", { class: "meta" }, `${formatCount(one.tokens)} tokens, ${one.age}`)), h("pre", { tabIndex: 0 }, one.text)),
    );
    return [h("h3", null, "Checkpoints"), cut, ...records];
  }

  /** Each message as a bar; a click goes there. @param {any[]} messages */
  makeMessages(messages) {
    const most = Math.max(1, ...messages.map((one) => one.tokens));
    const rows = messages.map((one) => {
      const first = one.numbers[0];
      const bar = h("span", { class: "amount" });
      bar.style.width = `${Math.max(2, (100 * one.tokens) / most)}%`;
      const label = `${first ? `#${first} ` : ""}${one.role}, ${formatCount(one.tokens)} tokens`;
      return h("li", null, h("button", { type: "button", title: label, disabled: !first, onclick: () => void this.page.jumpTo(first) }, h("span", { class: "who" }, first ? `#${first}` : "–", " ", one.role), h("span", { class: "space" }, bar), h("span", { class: "number" }, formatCount(one.tokens))));
    });
    return h("ul", { class: "amounts" }, ...rows);
  }
}
customElements.define("ollm-context-panel", ContextPanel);

const SPACE = "http://www.w3.org/2000/svg";

/** @param {string} tag @param {Record<string, string | number>} attributes */
function draw(tag, attributes) {
  const shape = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, String(value));
  return shape;
}

/**
 * A row of bars over time, with what they say for those who cannot see them.
 * @param {string} title @param {(number | null)[]} values @param {(value: number) => string} format @param {number} [top]
 */
function makePlot(title, values, format, top) {
  const known = /** @type {number[]} */ (values.filter((value) => value !== null));
  if (!known.length) return h("div", { class: "plot" }, h("p", { class: "plot-name" }, title), h("p", { class: "meta" }, "Nothing measured yet."));
  const most = top ?? (Math.max(...known) || 1);
  const wide = 240;
  const step = Math.min(24, wide / values.length);
  const picture = draw("svg", { viewBox: `0 0 ${wide} 48`, preserveAspectRatio: "xMinYMax meet", class: "bars", role: "img", "aria-label": `${title}: ${known.map(format).join(", ")}` });
  picture.append(draw("line", { x1: 0, x2: wide, y1: 47.5, y2: 47.5, class: "axis" }));
  values.forEach((value, index) => {
    const tall = value === null ? 0 : Math.max(1.5, (46 * value) / most);
    picture.append(draw("rect", { x: index * step + 1, y: 47 - tall, width: Math.max(1, step - 2), height: tall, rx: 1.5 }));
  });
  return h("div", { class: "plot" }, h("p", { class: "plot-name" }, title, h("strong", null, format(known[known.length - 1]))), picture);
}

/**
 * The window as one bar, each part with its share; the rest is free.
 * @param {{name: string, tokens: number}[]} parts @param {number} window
 */
function makeWindowBar(parts, window) {
  const shown = parts.filter((part) => part.tokens > 0);
  const bar = h("div", { class: "window-bar", role: "img", "aria-label": shown.map((part) => `${part.name}: ${formatCount(part.tokens)} tokens`).join(", ") });
  shown.forEach((part, index) => {
    const piece = h("span", { class: `part tint-${index % 8}`, title: `${part.name}: ${formatCount(part.tokens)}` });
    piece.style.flexGrow = String(part.tokens);
    bar.append(piece);
  });
  const free = h("span", { class: "part free" });
  free.style.flexGrow = String(Math.max(0, window - shown.reduce((sum, part) => sum + part.tokens, 0)));
  bar.append(free);
  return bar;
}
