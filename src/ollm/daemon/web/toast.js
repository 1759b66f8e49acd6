// Short messages at the edge of the screen: errors, and what can be undone.
import { fill, h } from "./dom.js";

const SHOWN_MS = 6000;

class Toasts extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "status");
    this.setAttribute("aria-live", "polite");
    this.className = "toasts";
  }

  /** @param {string} text @param {{bad?: boolean, action?: string, run?: () => void, ms?: number, gone?: () => void}} more */
  show(text, more) {
    const toast = h("div", { class: more.bad ? "toast bad" : "toast" }, h("span", null, text));
    let timer = 0;
    let over = false; // to remove what has the focus takes the focus away, which is told before it is gone
    const wait = () => {
      clearTimeout(timer);
      if (!over) timer = setTimeout(() => (end(), more.gone?.()), more.ms ?? SHOWN_MS);
    };
    const end = () => {
      over = true;
      clearTimeout(timer);
      toast.remove();
    };
    for (const name of ["mouseenter", "focusin"]) toast.addEventListener(name, () => clearTimeout(timer)); // who reads it has time
    for (const name of ["mouseleave", "focusout"]) toast.addEventListener(name, () => wait());
    wait();
    if (more.action) {
      toast.append(
        h("button", { type: "button", onclick: () => (end(), more.run?.()) }, more.action),
      );
    }
    this.append(toast);
    if (this.children.length > 4) this.firstElementChild?.remove();
  }
}
customElements.define("ollm-toasts", Toasts);

/** @returns {Toasts} */
function find() {
  const found = document.querySelector("ollm-toasts");
  if (found) return /** @type {Toasts} */ (found);
  const made = document.createElement("ollm-toasts");
  document.body.append(made);
  return /** @type {Toasts} */ (made);
}

/** @param {string} text @param {{bad?: boolean, action?: string, run?: () => void, ms?: number, gone?: () => void}} [more] */
export function say(text, more = {}) {
  find().show(text, more);
}

/** Run something and say what went wrong. @template T @param {() => Promise<T>} work @returns {Promise<T | undefined>} */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), { bad: true });
    return undefined;
  }
}

/** Load a part of the page, and say so where it cannot be had. @param {() => Promise<any>} load @returns {Promise<boolean>} */
export async function loadPart(load) {
  try {
    await load();
    return true;
  } catch {
    say("This part of the page could not be loaded. Reload the page.", { bad: true });
    return false;
  }
}

/** A question in the middle of the screen; what was chosen. @param {string} title @param {(Node | string)[]} content @param {[string, string][]} choices @returns {Promise<string>} */
export function ask(title, content, choices) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-label": title });
    const buttons = choices.map(([value, text], index) =>
      h("button", { type: "button", class: index === 0 ? "primary" : "", onclick: () => (finish(value)) }, text),
    );
    /** @param {string} value */
    const finish = (value) => {
      dialog.close(); // gives the focus back
      dialog.remove();
      resolve(value);
    };
    dialog.addEventListener("cancel", () => finish(""));
    dialog.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || !(event.target instanceof HTMLInputElement)) return;
      event.preventDefault(); // or it would also press what has the focus afterwards
      finish(choices[0][0]);
    });
    fill(dialog, h("h2", null, title), ...content, h("div", { class: "buttons" }, ...buttons));
    document.body.append(dialog);
    dialog.showModal();
  });
}
