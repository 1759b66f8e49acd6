// The settings in force, with the origin of each that is set. They are changed in the config file.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { Page } from "./page.js";

class SettingsPage extends Page {
  title_ = "Settings";
  lead = "What is in force, and where it comes from. Change one with ollm config set KEY VALUE.";

  async load() {
    const found = await get(`/settings${this.folderQuery}`);
    if (!this.body) return;
    const only = h("input", { type: "checkbox", onchange: () => draw() });
    const words = h("input", { type: "search", placeholder: "Filter settings", "aria-label": "Filter settings", oninput: () => draw() });
    const list = h("div");
    const draw = () => fill(list, ...makeSections(found, words.value.toLowerCase(), only.checked));
    fill(this.body, ...found.problems.map((/** @type {string} */ text) => h("p", { class: "notice error" }, text)), h("div", { class: "line" }, words, h("label", { class: "check" }, only, " Only changed settings")), list);
    draw();
  }
}
customElements.define("ollm-settings", SettingsPage);

/** @param {any} found @param {string} words @param {boolean} only */
function makeSections(found, words, only) {
  const sections = Object.entries(found.settings).map(([section, value]) => {
    const rows = flatten(section, value).filter(([key]) => key.toLowerCase().includes(words) && (!only || origin(found.sources, key))).map(([key, one]) => makeRow(key, one, origin(found.sources, key)));
    return rows.length ? h("section", null, h("h2", null, section), h("table", { class: "rows settings" }, h("thead", null, h("tr", null, h("th", null, "Setting"), h("th", null, "Value"), h("th", null, "From"))), h("tbody", null, ...rows))) : null;
  });
  return sections.some(Boolean) ? sections : [h("p", { class: "meta" }, "No matching settings.")];
}

/** @param {string} path @param {any} value @returns {[string, any][]} */
function flatten(path, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value) || !Object.keys(value).length) return [[path, value]];
  return Object.entries(value).flatMap(([name, inner]) => flatten(`${path}.${name}`, inner));
}

/** @param {Record<string, string>} sources @param {string} key */
function origin(sources, key) {
  return sources[key] ?? Object.entries(sources).find(([name]) => key.startsWith(`${name}.`))?.[1] ?? "";
}

/** A name that may break where its words begin. @param {string} key */
function breakWords(key) {
  return key.split(/(?<=\.)|(?=[A-Z])/).flatMap((word, index) => (index ? [h("wbr"), word] : [word]));
}

/** @param {string} key @param {any} value @param {string} from */
function makeRow(key, value, from) {
  return h("tr", null, h("td", null, h("code", null, ...breakWords(key))), h("td", null, typeof value === "string" ? value : JSON.stringify(value)), h("td", { class: "meta" }, from || "default"));
}
