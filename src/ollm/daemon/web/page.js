// What all pages but sessions share: a heading, a way back on small screens, and the folder they speak of.
import { feed, get } from "./api.js";
import { baseName, fill, h, icon } from "./dom.js";
import { attempt } from "./toast.js";

export class Page extends HTMLElement {
  title_ = "";
  lead = "";
  hasFolder = true;
  workspace = "";

  connectedCallback() {
    this.className = "page";
    this.body = h("div", { class: "page-body" }, h("p", { class: "meta" }, "Loading…"));
    const choice = h("select", { "aria-label": "Folder", hidden: !this.hasFolder, onchange: () => ((this.workspace = choice.value), void this.show()) }, h("option", { value: "" }, "All folders (global settings)"));
    fill(this, h("div", { class: "inner" }, h("a", { class: "icon-button page-back", href: "#/", "aria-label": "All sessions" }, icon("back")), h("h1", null, this.title_), h("p", { class: "lead" }, this.lead), this.hasFolder ? choice : null, this.body));
    this.onReset = () => void this.show();
    feed.addEventListener("reset", this.onReset);
    void this.start(choice);
  }

  disconnectedCallback() {
    feed.removeEventListener("reset", this.onReset ?? null);
  }

  /** @param {HTMLSelectElement} choice */
  async start(choice) {
    if (this.hasFolder) {
      for (const one of await get("/workspaces").catch(() => [])) choice.append(h("option", { value: one.workspacePath, title: one.workspacePath }, baseName(one.workspacePath)));
    }
    await this.show();
  }

  async show() {
    await attempt(() => this.load());
  }

  get folderQuery() {
    return this.workspace ? `?workspace=${encodeURIComponent(this.workspace)}` : "";
  }

  /** @returns {Promise<void>} */
  async load() {}
}
