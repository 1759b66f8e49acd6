// Small drawings: a bar of parts, a line over the last turns.
import { formatCount, h } from "./dom.js";

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
export function makePlot(title, values, format, top) {
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
export function makeWindowBar(parts, window) {
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
