// The frame: logging in, the list of sessions beside the page that the address names.
import { feed, forgetToken, hasToken, isPublic, isSessionId, logIn, pair, post, readRights, renew } from "./api.js";
import { isNotifying, startAway, toggleNotifications } from "./away.js";
import { makeBlank, makeMissingSession } from "./blank.js";
import { fetchModules, fill, h, icon, ICON_URL, setTitle } from "./dom.js";
import { loadPart } from "./toast.js";
import "./session-list.js";
import "./session-page.js";

const LATER_MS = 1500;
const PAGES = /** @type {Record<string, {label: string, icon: string, load: () => Promise<any>}>} */ ({
  tools: { label: "Tools", icon: "tool", load: () => import("./tools-page.js") },
  policy: { label: "Policy", icon: "shield", load: () => import("./policy-page.js") },
  models: { label: "Models", icon: "chip", load: () => import("./models-page.js") },
  compare: { label: "Compared", icon: "chart", load: () => import("./compare-page.js") },
  settings: { label: "Settings", icon: "gear", load: () => import("./settings-page.js") },
});

class App extends HTMLElement {
  async connectedCallback() {
    const given = new URLSearchParams(location.hash.slice(1));
    const [ticket, code] = [given.get("ticket"), given.get("pair")];
    addEventListener("ollm-logged-out", () => this.showLoggedOut());
    if (ticket || code) {
      history.replaceState(null, "", "/");
      try {
        await (ticket ? logIn(ticket) : pair(code ?? ""));
      } catch (error) {
        this.showLoggedOut(error instanceof Error ? error.message : "");
        return;
      }
    }
    if (isPublic ? !code && !(await renew()) : !hasToken()) return this.showLoggedOut();
    this.showFrame();
    void feed.start();
    startAway();
    setTimeout(() => fetchModules("later"), LATER_MS); // so that they are here when the daemon is away, or another
  }

  /** @param {string} [why] */
  showLoggedOut(why) {
    setTitle("ollm", 0);
    if (isPublic) forgetToken();
    const code = h("input", { type: "text", "aria-label": "Code", placeholder: "ABCD-EFGH", autocapitalize: "characters", autocomplete: "off", spellcheck: false, required: true });
    const send = (/** @type {Event} */ event) => (event.preventDefault(), (location.hash = `#pair=${encodeURIComponent(code.value)}`), location.reload());
    const form = h("form", { class: "buttons", onsubmit: send }, code, h("button", { class: "primary" }, "Pair"));
    const here = h("p", null, "Run ", h("code", null, "ollm web"), " in a terminal and open the link it makes. A link works once, for a minute.");
    const there = [h("p", null, "Run ", h("code", null, "ollm web --pair"), " on the machine and type the code. It works once, for a minute."), form];
    fill(
      this,
      h(
        "main",
        { class: "gate" },
        h("div", { class: "brand" }, h("img", { src: ICON_URL, alt: "" }), h("h1", null, "ollm")),
        h("p", null, why || (isPublic ? "This device is not paired." : "This page is not logged in.")),
        ...(isPublic ? there : [here]),
      ),
    );
  }

  showFrame() {
    this.classList.toggle("read-only", !!readRights().readOnly);
    this.banner = h("p", { class: "banner", role: "status", hidden: true }, "Connection to the daemon lost. Reconnecting…");
    this.main = h("main", { id: "main", tabIndex: -1 });
    fill(this, h("a", { class: "skip", href: "#main", onclick: (/** @type {Event} */ event) => (event.preventDefault(), this.main?.focus()) }, "Skip to the conversation"), this.banner, h("div", { class: "frame" }, this.makeSide(), this.main));
    feed.addEventListener("state", () => this.showState());
    feed.addEventListener("updated", () => this.showUpdated());
    addEventListener("hashchange", () => void this.route());
    addEventListener("keydown", (event) => this.handleKey(event));
    void this.route();
  }

  makeSide() {
    const links = Object.entries(PAGES).map(([name, page]) =>
      h("a", { href: `#/${name}`, "data-page": name }, icon(page.icon), page.label),
    );
    const words = () => [icon("bell"), isNotifying() ? "Notifying" : "Notify me"];
    const bell = h("button", { type: "button", onclick: async () => (await toggleNotifications(), fill(bell, ...words())) }, ...words());
    const out = h("button", { type: "button", onclick: () => void this.logOut() }, icon("exit"), "Log out");
    return h(
      "aside",
      { class: "side", "aria-label": "Sessions and pages" },
      document.createElement("ollm-session-list"),
      h("nav", { class: "pages", "aria-label": "Pages" }, ...links, bell, out),
    );
  }

  showState() {
    if (this.banner) this.banner.hidden = feed.state !== "lost";
  }

  /** The daemon is of another version than this page. */
  showUpdated() {
    if (this.querySelector(".banner.updated")) return;
    const reload = h("button", { type: "button", class: "quiet", onclick: () => location.reload() }, "Reload");
    this.banner?.after(h("p", { class: "banner updated", role: "status" }, "ollm was updated. This page is of the version before.", reload));
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      /** @type {HTMLInputElement | null} */ (this.querySelector("ollm-session-list input[type=search]"))?.focus();
    }
  }

  async logOut() {
    await post("/web/logout").catch(() => undefined);
    forgetToken();
    location.reload();
  }

  async route() {
    const [, name = "", id = "", , number = ""] = location.hash.slice(1).split("/");
    this.dataset.route = name || "home";
    for (const link of this.querySelectorAll("nav.pages a")) {
      link.toggleAttribute("aria-current", link.getAttribute("data-page") === name);
    }
    if (!this.main) return;
    if (name === "session" && isSessionId(id)) this.showSession(id, Number(number) || 0);
    else if (Object.hasOwn(PAGES, name)) await this.showPage(name);
    else this.showBlank(name);
  }

  /** @param {string} id @param {number} number */
  showSession(id, number) {
    const there = /** @type {any} */ (this.main?.firstElementChild);
    if (there?.localName === "ollm-session" && there.sessionId === id) {
      if (number) void there.jumpTo(number);
      return;
    }
    const page = /** @type {any} */ (document.createElement("ollm-session"));
    page.sessionId = id;
    page.startAt = number;
    if (this.main) fill(this.main, page);
  }

  /** @param {string} name */
  async showPage(name) {
    setTitle(`${PAGES[name].label} · ollm`);
    if (!(await loadPart(PAGES[name].load))) return;
    if (this.dataset.route === name && this.main) fill(this.main, document.createElement(`ollm-${name}`));
  }

  /** @param {string} name What the address asks for. */
  showBlank(name) {
    setTitle(name ? "Not found · ollm" : "ollm");
    const start = makeBlank("Pick a session, or start one", "Your conversations from every folder are here.");
    if (this.main) fill(this.main, name === "session" ? makeMissingSession() : name ? makeBlank("No such page", "The address names a page that is not there.", { back: true }) : start);
  }
}
customElements.define("ollm-app", App);
