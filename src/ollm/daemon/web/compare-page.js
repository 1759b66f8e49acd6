// The newest comparison of models in each folder; a cell opens the session of its run.
import { get } from "./api.js";
import { fill, h, showCleanHtml } from "./dom.js";
import { Page } from "./page.js";

class ComparePage extends Page {
  title_ = "Compared";
  lead = "Models by tasks of your own. A cell opens the session of its run.";
  hasFolder = false;

  async load() {
    const found = await get("/comparisons");
    if (!this.body) return;
    fill(this.body, found.length ? null : h("p", { class: "meta" }, "No comparison yet. Run ", h("code", null, "ollm compare run --models A,B"), " in a terminal."));
    for (const one of found) {
      const part = h("div", null);
      showCleanHtml(part, one.html);
      for (const link of part.querySelectorAll("a[data-session]")) link.setAttribute("href", `#/session/${link.getAttribute("data-session")}`);
      this.body.append(part);
    }
  }
}
customElements.define("ollm-compare", ComparePage);
