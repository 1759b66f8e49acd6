// A session that is in the team archive only: whose it is, and getting it here. Fires `pulled` when it is.
import { fill, h } from "./dom.js";
import { openSession } from "./open-session.js";
import { attempt } from "./toast.js";

class PullCard extends HTMLElement {
  constructor() {
    super();
    /** @type {any} */ this.summary = null;
  }

  connectedCallback() {
    const place = this.summary.archive;
    this.className = "card pull";
    this.folder = h("input", { type: "text", value: this.summary.workspace ?? "", spellcheck: false });
    this.button = h("button", { type: "button", class: "primary", onclick: () => void this.pull() }, "Get it");
    fill(
      this,
      h("p", null, `This session is in the team archive: ${place.owner} on ${place.host}${place.inUse ? `, in use on ${place.inUse}` : ""}.`),
      h("label", { class: "field" }, "Folder to work in on this machine", this.folder),
      h("div", { class: "buttons" }, this.button),
    );
  }

  async pull() {
    if (!this.button) return;
    this.button.disabled = true;
    const done = await attempt(() => openSession(this.folder?.value.trim() ?? "", this.summary.sessionId));
    this.button.disabled = false;
    if (!done) return;
    dispatchEvent(new Event("ollm-sessions-changed"));
    this.dispatchEvent(new Event("pulled"));
  }
}
customElements.define("ollm-pull-card", PullCard);
