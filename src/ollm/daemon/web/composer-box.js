// Where one types: text, files, what waits its turn, stop.
import { isDevice, post, readRights } from "./api.js";
import { Completion, readCommand } from "./completion.js";
import { fill, h, icon, iconButton } from "./dom.js";
import { attempt, say } from "./toast.js";

const PIECE_BYTES = 600_000;
const PROBED_BYTES = 8192;
const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** A file, or what the daemon keeps already. @typedef {File | {name: string, id: string}} Attached */
/** @typedef {{text: string, files: Attached[]}} Typed */

/** Fires `send` with {text, files}, and `stop`. */
export class Composer extends HTMLElement {
  constructor() {
    super();
    /** @type {Attached[]} */ this.files = [];
    /** @type {Typed[]} */ this.queue = [];
    this.workspace = "";
    this.sessionId = "";
    this.running = false;
  }

  connectedCallback() {
    if (this.children.length) return;
    this.hidden = !!readRights().readOnly;
    this.field = h("textarea", { rows: 1, placeholder: `Message, / command, @ file${isDevice() ? "" : ", ! shell"}`, "aria-label": "Message", oninput: () => this.grow(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.handleKey(event), onpaste: (/** @type {ClipboardEvent} */ event) => void this.addFiles(event.clipboardData?.files) });
    this.picker = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to attach", onchange: () => void this.addFiles(this.picker?.files) });
    this.waiting = h("ul", { class: "waiting", "aria-label": "Queued messages" });
    this.attached = h("ul", { class: "attached", "aria-label": "Attached files" });
    this.stop = iconButton("stop", "Stop", () => this.dispatchEvent(new Event("stop")), { class: "icon-button stop", hidden: true });
    this.button = iconButton("send", "Send", () => this.submit(), { class: "icon-button send" });
    this.completion = new Completion(this.field, () => this.workspace);
    fill(this, this.waiting, this.completion.list, h("div", { class: "box" }, this.attached, this.field, h("div", { class: "row" }, iconButton("clip", "Attach files", () => this.picker?.click()), this.picker, h("span", { class: "grow" }), this.stop, this.button)));
    this.field.value = sessionStorage.getItem(this.draftKey) ?? "";
    requestAnimationFrame(() => this.grow());
    this.addEventListener("dragover", (event) => event.preventDefault());
    this.addEventListener("drop", (event) => (event.preventDefault(), void this.addFiles(event.dataTransfer?.files)));
  }

  focus() {
    this.field?.focus({ preventScroll: true });
  }

  get draftKey() {
    return `ollm-draft-${this.sessionId}`;
  }

  /** Fit the field to its text, and keep what is not sent yet for a reload of the page. */
  grow() {
    if (!this.field) return;
    sessionStorage.setItem(this.draftKey, [...this.queue.map((one) => one.text), this.field.value].filter(Boolean).join("\n"));
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, 280)}px`;
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    if (this.completion?.handleKey(event)) return this.grow();
    const touch = matchMedia("(pointer: coarse)").matches;
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || (touch && !event.ctrlKey)) return;
    event.preventDefault();
    this.submit();
  }

  /** Texts and pictures; anything else would reach the model as noise. @param {FileList | null | undefined} files */
  async addFiles(files) {
    const added = [...(files ?? [])];
    if (!added.length) return;
    for (const file of added) {
      if (IMAGES.has(file.type) || (await isText(file))) this.files.push(file);
      else say(`${file.name} is neither text nor a picture (PNG, JPEG, GIF, WebP).`, { bad: true });
    }
    if (this.picker) this.picker.value = "";
    this.drawFiles();
  }

  drawFiles() {
    if (!this.attached) return;
    fill(this.attached, ...this.files.map((file, index) => h("li", null, file.name, iconButton("close", `Remove ${file.name}`, () => (this.files.splice(index, 1), this.drawFiles())))));
  }

  drawQueue() {
    this.grow();
    if (!this.waiting) return;
    fill(this.waiting, ...this.queue.map((one, index) => h("li", null, h("span", null, one.text), iconButton("close", "Remove from queue", () => (this.queue.splice(index, 1), this.drawQueue())))));
  }

  submit() {
    const text = this.field?.value.trim() ?? "";
    if (!text && this.files.length) say("Write what to do with the files.");
    if (!text || !this.field) return;
    const command = readCommand(text);
    const alone = command || /^!./.test(text); // files wait for the next message
    const message = { text, files: alone ? [] : this.files };
    if (!alone) this.files = [];
    this.field.value = "";
    this.grow();
    this.drawFiles();
    if (this.running && (!command || text.startsWith("#"))) {
      this.queue.push(message);
      this.drawQueue();
    } else this.dispatchEvent(new CustomEvent("send", { detail: message }));
  }

  /** What waits its turn goes back to the field, to be sent, changed or dropped. */
  takeBackQueue() {
    const waiting = this.queue.splice(0);
    this.drawQueue();
    if (this.field && waiting.length) this.field.value = [...waiting.map((one) => one.text), this.field.value].filter(Boolean).join("\n");
    for (const one of waiting) this.giveBack({ ...one, text: "" });
  }

  /** Give a message back that could not be sent. @param {Typed} message */
  giveBack(message) {
    if (this.field && !this.field.value) this.field.value = message.text;
    this.files = [...message.files, ...this.files];
    this.drawFiles();
    this.grow();
  }

  /** @param {boolean} running */
  setRunning(running) {
    const ended = this.running && !running;
    this.running = running;
    if (this.stop) this.stop.hidden = !running;
    this.button?.setAttribute("aria-label", running ? "Queue" : "Send");
    if (ended) this.sendNext();
  }

  /** Send the first message of the queue, unless the model works. */
  sendNext() {
    const next = this.running ? undefined : this.queue.shift();
    this.drawQueue();
    if (next) this.dispatchEvent(new CustomEvent("send", { detail: next }));
  }

  /** Upload files in pieces; their ids. @param {string} sessionId @param {Attached[]} files @returns {Promise<string[]>} */
  static async upload(sessionId, files) {
    /** @type {string[]} */ const ids = [];
    for (const file of files) {
      if (!(file instanceof File)) {
        ids.push(file.id);
        continue;
      }
      const bytes = new Uint8Array(await file.arrayBuffer());
      const mediaType = IMAGES.has(file.type) ? file.type : "text/plain";
      /** @type {string | null} */ let id = null;
      for (let start = 0; start < Math.max(bytes.length, 1); start += PIECE_BYTES) {
        const data = toBase64(bytes.subarray(start, start + PIECE_BYTES));
        id = (await post(`/sessions/${sessionId}/attachments`, { name: file.name.slice(-200), mediaType, data, ...(id ? { id } : {}) })).id;
      }
      if (id) ids.push(id);
    }
    return ids;
  }
}
customElements.define("ollm-composer", Composer);

/** Whether a file begins as text does. @param {File} file */
async function isText(file) {
  const start = new Uint8Array(await file.slice(0, PROBED_BYTES).arrayBuffer());
  if (start.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** @param {Uint8Array} bytes */
function toBase64(bytes) {
  let text = "";
  for (let start = 0; start < bytes.length; start += 0x8000) text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(text);
}
