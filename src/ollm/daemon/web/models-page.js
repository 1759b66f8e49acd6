// The models there are, and the card of each: what was learnt by talking to it.
import { get } from "./api.js";
import { fill, formatCount, formatMoment, h } from "./dom.js";
import { Page } from "./page.js";

const FACTS = /** @type {[string, string, (value: any) => string][]} */ ([
  ["callForm", "Calls tools as", (value) => (value === "unknown" ? "not known yet" : value)],
  ["window", "Context window", (value) => `${formatCount(value)} tokens`],
  ["servedWindow", "Window the server serves", (value) => `${formatCount(value)} tokens`],
  ["prefillPerSecond", "Reads", (value) => `${formatCount(Math.round(value))} tokens a second`],
  ["decodePerSecond", "Writes", (value) => `${value.toFixed(1)} tokens a second`],
  ["tokenFactor", "Tokens, against our estimate", (value) => `× ${value.toFixed(2)}`],
  ["maxTools", "Tools at once", (value) => String(value)],
  ["probed", "Tested", formatMoment],
]);

class ModelsPage extends Page {
  title_ = "Models";
  lead = "On this machine and on the servers that answer. Change the model in a session with /model.";
  hasFolder = false;

  async load() {
    const found = await get("/models");
    if (!this.body) return;
    const facts = new Map(found.facts.map((/** @type {any} */ one) => [one.key.split("|").slice(1).join("|"), one]));
    const servers = found.servers.flatMap((/** @type {any} */ server) => [
      h("h2", null, `${server.label} `, h("span", { class: "meta" }, server.baseUrl)),
      ...(server.models.length ? server.models.map((/** @type {any} */ model) => makeCard(model, facts.get(`${server.baseUrl}|${model.name}`))) : [h("p", { class: "meta" }, "Lists no models.")]),
    ]);
    fill(
      this.body,
      ...found.problems.map((/** @type {string} */ text) => h("p", { class: "notice warning" }, text)),
      ...servers,
      h("h2", null, "Model files"),
      ...(found.files.length ? found.files.map((/** @type {any} */ file) => makeCard(file, null)) : [h("p", { class: "meta" }, "None. Download one with ", h("code", null, "ollm models get NAME"), ".")]),
      h("h2", null, "To download"),
      ...found.catalogue.filter((/** @type {any} */ one) => !one.installed).map((/** @type {any} */ one) => h("div", { class: "card line" }, h("code", null, one.name), h("span", { class: "grow meta" }, one.about), h("span", { class: "meta" }, formatSize(one.size)))),
    );
  }
}
customElements.define("ollm-models", ModelsPage);

/** @param {any} model @param {any} facts */
function makeCard(model, facts) {
  const rows = FACTS.filter(([name]) => facts?.[name] !== null && facts?.[name] !== undefined).map(([name, label, format]) => h("tr", null, h("td", null, label), h("td", null, format(facts[name]))));
  return h("details", { class: "card" }, h("summary", null, h("strong", null, model.name), h("span", { class: "grow" }), h("span", { class: "meta" }, model.size ? formatSize(model.size) : "")), rows.length ? h("table", { class: "rows" }, h("tbody", null, ...rows)) : h("p", { class: "meta" }, model.path ?? "Nothing learnt yet: it is measured while you talk to it."));
}

/** @param {number | null} bytes */
function formatSize(bytes) {
  return bytes ? (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`) : "";
}
