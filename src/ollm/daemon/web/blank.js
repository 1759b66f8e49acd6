// What is shown where there is nothing to show: what that means, and the way on.
import { h, ICON_URL } from "./dom.js";

/** @param {string} title @param {string} words @param {{back?: boolean}} [more] */
export function makeBlank(title, words, more = {}) {
  return h(
    "div",
    { class: "blank" },
    h("img", { src: ICON_URL, alt: "" }),
    h("h1", null, title),
    h("p", null, words),
    more.back ? h("p", null, h("a", { href: "#/" }, "All sessions")) : null,
  );
}

export const makeMissingSession = () => makeBlank("No such session", "It was deleted, or the address is not complete.", { back: true });
