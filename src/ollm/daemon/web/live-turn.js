// The turn under way: what the model is writing, what a tool prints, what the daemon says.
import { post } from "./api.js";
import { fill, h, showCleanHtml, showControls } from "./dom.js";

const SHORTEST_RENDER_MS = 120;
const KEPT_OUTPUT_CHARS = 8000;
const STAGES = /** @type {Record<string, string>} */ ({ queued: "Waiting for the server…", connecting: "Connecting to the model…", loading: "Loading the model…", reading: "Reading the prompt…", compacting: "Compacting older messages…" });

/** @param {any} event */
export function describeProgress(event) {
  const share = event.total && event.stage !== "queued" ? ` ${Math.round((100 * event.processed) / event.total)} %` : "";
  const left = event.secondsLeft ? `, ${Math.ceil(event.secondsLeft)} s left` : "";
  return `${STAGES[event.stage] ?? "Working…"}${share}${left}`;
}

export class LiveTurn extends HTMLElement {
  constructor() {
    super();
    this.text = "";
    this.thoughts = "";
    this.busy = false;
    this.written = h("div", { class: "text" });
    this.thinking = h("details", { class: "thinking", hidden: true }, h("summary", null, "Thinking"));
    this.thoughtText = h("div", { class: "text plain" });
    this.section = h("section", { class: "assistant", hidden: true }, h("h2", null, "Assistant"), this.thinking, this.written);
    this.state = h("p", { class: "working", hidden: true });
    this.thinking.append(this.thoughtText);
  }

  connectedCallback() {
    if (!this.children.length) this.append(this.section, this.state);
  }

  /** What is still being written is now in the archive. */
  clearText() {
    this.text = "";
    this.thoughts = "";
    fill(this.written);
    fill(this.thoughtText);
    this.section.hidden = true;
    this.thinking.hidden = true;
  }

  /** @param {string} text Empty when nothing is going on. */
  showState(text) {
    this.state.hidden = !text;
    if (this.state.textContent !== showControls(text)) fill(this.state, h("span", { class: "pulse", "aria-hidden": "true" }), text);
  }

  /** @param {string} text */
  addThought(text) {
    this.thoughts += text;
    this.thoughtText.textContent = showControls(this.thoughts);
    this.thinking.hidden = false;
    this.section.hidden = false;
  }

  /** @param {string} text */
  addText(text) {
    this.text += text;
    this.section.hidden = false;
    if (!this.busy) void this.render();
  }

  /** The daemon renders what is there; the more there is, the rarer. */
  async render() {
    this.busy = true;
    const started = performance.now();
    const text = this.text;
    const reply = await post("/web/render", { text }).catch(() => null);
    if (reply && this.text.startsWith(text) && text) showCleanHtml(this.written, reply.html);
    else if (!reply) this.written.textContent = showControls(this.text);
    const took = performance.now() - started;
    setTimeout(() => {
      this.busy = false;
      if (this.text && this.text !== text) void this.render();
    }, Math.max(SHORTEST_RENDER_MS, took * 3));
  }

  /** @param {Element} list @param {string} callId @param {string} text */
  static addOutput(list, callId, text) {
    const call = list.querySelector(`details[data-call="${CSS.escape(callId)}"]`);
    if (!call) return;
    let output = call.querySelector("pre.live");
    if (!output) {
      output = h("pre", { class: "output live", tabIndex: 0 });
      call.append(output);
      if (!call.hasAttribute("open")) call.setAttribute("data-live", "unfolded"); // it folds again when it is over
      call.setAttribute("open", "");
    }
    output.textContent = (output.textContent + showControls(text)).slice(-KEPT_OUTPUT_CHARS);
    output.scrollTop = output.scrollHeight;
  }
}
customElements.define("ollm-live-turn", LiveTurn);
