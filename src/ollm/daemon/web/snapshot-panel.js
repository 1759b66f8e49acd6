// Going back: snapshots of the context, and rewinding the talk and the files with a preview.
import { get, post, request } from "./api.js";
import { fill, formatAge, formatCount, h, iconButton, showCleanHtml } from "./dom.js";
import { ask, attempt, say } from "./toast.js";

const MAX_STRETCHES = 20;

class SnapshotPanel extends HTMLElement {
  constructor() {
    super();
    /** @type {any} */ this.page = null;
    this.number = 0; // message to go back to
  }

  connectedCallback() {
    this.className = "panel";
    this.setAttribute("role", "complementary");
    this.setAttribute("aria-label", "Snapshots and rewind");
    this.tabIndex = 0;
    this.list = h("ul", { class: "snapshots" });
    this.scope = h("select", { "aria-label": "What to rewind", hidden: true, onchange: () => void this.rewind(true) }, h("option", { value: "both" }, "Conversation and files"), h("option", { value: "talk" }, "Conversation only"), h("option", { value: "files" }, "Files only"));
    this.stretches = h("ul", { class: "stretches" });
    this.preview = h("div", { class: "text preview" });
    fill(
      this,
      h("div", { class: "head" }, h("h2", null, "Go back"), iconButton("close", "Close", () => this.page.closePanel())),
      h("h3", null, "Rewind"),
      h("p", { class: "meta" }, "Choose the clock beside one of your messages, or a turn that changed files. Nothing is removed from the history."),
      this.stretches,
      h("div", { class: "rewind" }, this.scope),
      this.preview,
      h("h3", null, "Snapshots"),
      h("button", { type: "button", onclick: () => void this.take() }, "Take a snapshot now"),
      this.list,
    );
    void this.load();
    void this.rewind(true);
  }

  get place() {
    return `/sessions/${this.page.sessionId}`;
  }

  async load() {
    await this.loadStretches();
    const found = (await attempt(() => get(`${this.place}/snapshots`))) ?? [];
    if (!this.list) return;
    fill(this.list, ...found.map((/** @type {any} */ one) => this.makeItem(one)));
    if (!found.length) fill(this.list, h("li", { class: "meta" }, "No snapshots yet."));
  }

  /** The messages that led to changed files, newest first; each is a button that previews. */
  async loadStretches() {
    const found = (await get(`${this.place}/checkpoints`).catch(() => [])).filter((/** @type {any} */ one) => one.kind === "turn" && one.changed);
    const buttons = found.slice(-MAX_STRETCHES).reverse().map((/** @type {any} */ one) => {
      const files = one.changed === 1 ? "1 file" : `${formatCount(one.changed)} files`;
      return h("li", null, h("button", { type: "button", onclick: () => this.choose(one.messageId) }, `Before #${one.messageId} ${this.page.list?.readTyped(one.messageId).slice(0, 60) ?? ""}`, h("span", { class: "meta" }, ` ${files} changed, ${formatAge(one.startedAt)}`)));
    });
    if (this.stretches) fill(this.stretches, ...buttons);
  }

  /** @param {number} number */
  choose(number) {
    this.number = number;
    void this.rewind(true);
  }

  /** @param {any} one */
  makeItem(one) {
    return h(
      "li",
      { class: "card" },
      h("p", null, h("strong", null, formatAge(one.timestamp)), h("span", { class: "meta" }, ` ${formatCount(one.tokenCount)} tokens, ${one.trigger}`)),
      h("p", { class: "meta summary" }, one.summary),
      h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => void this.restore(one) }, "Restore"), h("button", { type: "button", onclick: () => void this.remove_(one) }, "Delete")),
    );
  }

  async take() {
    if (await attempt(() => post(`${this.place}/snapshots`))) say("Snapshot taken.");
    await this.load();
  }

  /** @param {any} one */
  async restore(one) {
    const words = [h("p", null, `The context goes back to ${formatAge(one.timestamp)} (${formatCount(one.tokenCount)} tokens). The history keeps everything that came after.`), h("p", { class: "meta" }, one.summary)];
    if ((await ask("Restore this snapshot?", words, [["yes", "Restore"], ["", "Cancel"]])) !== "yes") return;
    if (await attempt(() => post(`/snapshots/${one.id}/restore`))) say("Context restored.");
    await this.load();
  }

  /** @param {any} one */
  async remove_(one) {
    if ((await ask("Delete this snapshot?", [h("p", { class: "meta" }, one.summary)], [["yes", "Delete"], ["", "Cancel"]])) !== "yes") return;
    await attempt(() => request("DELETE", `/snapshots/${one.id}`));
    await this.load();
  }

  /** First what it would do, then, when that is wanted, that. @param {boolean} dryRun */
  async rewind(dryRun) {
    const { number } = this;
    if (!number || !this.preview || !this.scope) return;
    this.scope.hidden = false;
    const reply = await attempt(() => post(`${this.place}/checkpoints/${number}/restore`, { what: this.scope?.value, dryRun, diff: dryRun }));
    if (!reply) return fill(this.preview);
    const shown = h("div", { class: "transcript" });
    showCleanHtml(shown, (await post("/web/render", { text: reply.text.replace(/To confirm: .*/, "") })).html);
    fill(this.preview, shown, dryRun ? h("button", { type: "button", class: "primary", onclick: () => void this.rewind(false) }, `Rewind to before message ${number}`) : null);
    if (dryRun) return;
    if (this.scope.value !== "files") this.page.composer.giveBack({ text: this.page.list.readTyped(number), files: [] });
    void this.page.reload();
    await this.load();
  }
}
customElements.define("ollm-snapshot-panel", SnapshotPanel);
