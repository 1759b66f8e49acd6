// The tools a conversation has: what each does, how risky it is, what it takes.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { Page } from "./page.js";

class ToolsPage extends Page {
  title_ = "Tools";
  lead = "What the model can call. The policy decides whether you are asked first.";

  async load() {
    const found = await get(`/tools${this.folderQuery}`);
    if (this.body) fill(this.body, ...found.map(makeTool));
  }
}
customElements.define("ollm-tools", ToolsPage);

/** @param {any} tool */
function makeTool(tool) {
  const required = new Set(tool.parameters?.required ?? []);
  const rows = Object.entries(tool.parameters?.properties ?? {}).map(([name, about]) => {
    const one = /** @type {any} */ (about);
    return h("tr", null, h("td", null, h("code", null, name), required.has(name) ? h("span", { class: "meta" }, " required") : null), h("td", null, typeof one?.description === "string" ? one.description : ""));
  });
  return h(
    "details",
    { class: "card" },
    h("summary", null, h("code", null, tool.name), h("span", { class: "grow meta" }, tool.description.split("\n")[0]), h("span", { class: `risk ${tool.risk}` }, tool.readsOnly ? "reads only" : `${tool.risk} risk`)),
    h("p", null, tool.description),
    rows.length ? h("table", { class: "rows" }, h("thead", null, h("tr", null, h("th", null, "Parameter"), h("th", null, "Meaning"))), h("tbody", null, ...rows)) : h("p", { class: "meta" }, "Takes nothing."),
  );
}
