// The settings in force, with the origin of each that is set, and changing one in the user's own file.
import { get, post, readRights } from "./api.js";
import { fill, h, iconButton, showCleanHtml } from "./dom.js";
import { Page } from "./page.js";
import { ask, attempt, say } from "./toast.js";

class SettingsPage extends Page {
  title_ = "Settings";
  lead = `What is in force, and where it comes from.${readRights().readOnly ? "" : " The pencil changes one in your own file."}`;

  async load() {
    const found = await get(`/settings${this.folderQuery}`);
    if (!this.body) return;
    const only = h("input", { type: "checkbox", onchange: () => draw() });
    const words = h("input", { type: "search", placeholder: "Filter settings", "aria-label": "Filter settings", oninput: () => draw() });
    const list = h("div");
    const draw = () => fill(list, ...makeSections(found, words.value.toLowerCase(), only.checked));
    fill(this.body, ...found.problems.map((/** @type {string} */ text) => h("p", { class: "notice error" }, text)), h("div", { class: "line" }, words, h("label", { class: "check" }, only, " Only changed settings")), list);
    draw();
    list.addEventListener("click", (event) => {
      const key = /** @type {HTMLElement} */ (event.target).closest("button")?.getAttribute("data-key");
      if (key) void attempt(() => this.change(key));
    });
  }

  /** Ask for a value, show the change, and make it once that is confirmed. @param {string} key */
  async change(key) {
    const value = h("input", { type: "text", "aria-label": "Value", spellcheck: false, autocapitalize: "off" });
    const choice = await ask(key, [h("label", { class: "field" }, "New value, as for ollm config set", value)], [["set", "Show the change"], ["unset", "Use the default"], ["", "Cancel"]]);
    if (!choice) return;
    const wanted = { key, value: choice === "set" ? value.value : null };
    const { diff } = await post("/settings", { ...wanted, dryRun: true });
    if (!diff) return say("That is its value already.");
    const shown = h("div", { class: "change" });
    showCleanHtml(shown, (await post("/web/render", { text: `@@ -1 +1 @@\n${diff}`, diff: true })).html);
    if ((await ask("Change this setting?", [shown], [["yes", "Change"], ["", "Cancel"]])) !== "yes") return;
    await post("/settings", wanted);
    say(`Changed ${key}.`);
    await this.load();
  }
}
customElements.define("ollm-settings", SettingsPage);

/** @param {any} found @param {string} words @param {boolean} only */
function makeSections(found, words, only) {
  const sections = Object.entries(found.settings).map(([section, value]) => {
    const rows = flatten(section, value).filter(([key]) => key.toLowerCase().includes(words) && (!only || origin(found.sources, key))).map(([key, one]) => makeRow(key, one, origin(found.sources, key), !readRights().readOnly && new RegExp(found.changeable).test(key)));
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

/** @param {string} key @param {any} value @param {string} from @param {boolean} changeable */
function makeRow(key, value, from, changeable) {
  return h("tr", null, h("td", null, h("code", null, ...breakWords(key))), h("td", null, typeof value === "string" ? value : JSON.stringify(value), changeable ? iconButton("pencil", `Change ${key}`, () => {}, { "data-key": key }) : null), h("td", { class: "meta" }, from || "default"));
}
