// A list above the text field: `/` completes commands, `@` files of the folder.
import { get } from "./api.js";
import { fill, h } from "./dom.js";

const TYPING_MS = 80;
const COMMAND = /^\/([^\s/]*)$/;
const FILE = /(?:^|[\s(])@"?([^\s@"]*)$/;

/** @typedef {{value: string, about: string, more?: boolean}} Choice Text for the field; `more`: typing goes on behind it. */

/** @type {Map<string, Promise<any[]>>} */ const known = new Map();

/** The slash commands of a folder. @param {string} workspace @returns {Promise<any[]>} */
export function listCommands(workspace) {
  const asked = known.get(workspace) ?? get(`/commands?${new URLSearchParams({ workspace })}`);
  known.set(workspace, asked);
  asked.catch(() => known.delete(workspace));
  return asked;
}

/** The slash command that a typed text is or stands for; empty if it is a message. @param {string} text */
export function readCommand(text) {
  const [, note] = /^#[ \t]*(\p{L}.*)$/u.exec(text) ?? [];
  if (note) return `/memory note ${note}`;
  return text === "?" ? "/help keys" : /^\/(?!\/)/.test(text) ? text : "";
}

export class Completion {
  /** @param {HTMLTextAreaElement} field @param {() => string} findWorkspace */
  constructor(field, findWorkspace) {
    this.field = field;
    this.findWorkspace = findWorkspace;
    this.timer = 0;
    this.chosen = -1;
    /** @type {Choice[]} */ this.choices = [];
    this.list = h("ul", { class: "completion", id: "completion", role: "listbox", "aria-label": "Completions", hidden: true });
    field.setAttribute("aria-controls", "completion");
    field.addEventListener("input", () => this.later());
    field.addEventListener("blur", () => setTimeout(() => this.show([]), 200)); // a tap on a line comes first
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.look(), TYPING_MS);
  }

  get before() {
    return this.field.value.slice(0, this.field.selectionStart);
  }

  async look() {
    const text = this.before;
    const found = await this.find(text).catch(() => []);
    if (text === this.before) this.show(found.filter((choice) => choice.value.trimEnd() !== this.typed));
  }

  /** @param {string} text @returns {Promise<Choice[]>} */
  async find(text) {
    const [, command] = COMMAND.exec(text) ?? [];
    const [, file] = FILE.exec(text) ?? [];
    this.typed = command !== undefined ? `/${command}` : `@${file ?? ""}`;
    if (command !== undefined) {
      const all = await listCommands(this.findWorkspace());
      return all.filter((one) => one.name.startsWith(command)).map((one) => ({ value: `/${one.name} `, about: one.help }));
    }
    if (file === undefined || !this.findWorkspace()) return [];
    const paths = await get(`/files?${new URLSearchParams({ workspace: this.findWorkspace(), q: file })}`);
    return paths.map((/** @type {string} */ path) => ({ value: `@${/\s/.test(path) ? `"${path}"` : path}${path.endsWith("/") ? "" : " "}`, about: "", more: path.endsWith("/") }));
  }

  /** @param {Choice[]} choices */
  show(choices) {
    this.choices = choices;
    this.chosen = -1;
    this.list.hidden = !choices.length;
    fill(this.list, ...choices.map((one, index) => h("li", { role: "option", id: `completion-${index}`, onmousedown: (/** @type {Event} */ event) => (event.preventDefault(), this.take(index)) }, h("code", null, one.value.trimEnd()), h("span", { class: "meta" }, one.about))));
    this.choose(-1);
  }

  /** @param {number} index */
  choose(index) {
    this.chosen = index;
    [...this.list.children].forEach((line, place) => line.setAttribute("aria-selected", String(place === index)));
    this.list.children[index]?.scrollIntoView({ block: "nearest" });
    if (index < 0) this.field.removeAttribute("aria-activedescendant");
    else this.field.setAttribute("aria-activedescendant", `completion-${index}`);
  }

  /** @param {number} index */
  take(index) {
    const { value, more } = this.choices[index];
    const before = this.before;
    const start = before.length - (/[/@]"?[^\s@"]*$/.exec(before)?.[0].length ?? 0);
    this.field.setRangeText(value, COMMAND.test(before) ? 0 : start, before.length, "end");
    this.show([]);
    if (more) this.later();
  }

  /** Whether the key was for the list: arrows choose, Tab takes the first, Enter what is chosen, Esc closes. @param {KeyboardEvent} event */
  handleKey(event) {
    const count = this.choices.length;
    if (!count || event.isComposing) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") this.choose((this.chosen + (event.key === "ArrowDown" ? 1 : count) + (this.chosen < 0 && event.key === "ArrowUp" ? 1 : 0)) % count);
    else if (event.key === "Tab" && !event.shiftKey) this.take(Math.max(0, this.chosen));
    else if (event.key === "Enter" && this.chosen >= 0) this.take(this.chosen);
    else if (event.key === "Escape") this.show([]);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }
}
