// A question of the policy: what would be done and three answers. Wider grants, and a usual reason, are behind "Always …".
import { isDevice, post, readRights, RequestError } from "./api.js";
import { fill, h, showCleanHtml } from "./dom.js";
import { attempt } from "./toast.js";

const VERDICTS = /** @type {Record<string, string>} */ ({ allow: "✓", ask: "?", deny: "✕" });
const ALL_EDITS = "all file edits this session";
const SETTLE_MS = 700;
const EDIT_TOOLS = new Set(["edit_file", "write_file"]);

/** The wider ways to say yes, grouped by the rule they add: its words, the rule, and each answer with what is sent. @param {any} details @returns {[string, string, [string, any][]][]} */
function listGrants(details) {
  if (details.locked || details.typed || readRights().noGrants) return [];
  /** @type {any[]} */ const edits = EDIT_TOOLS.has(details.tool) && !isDevice() ? [["", "", [["All file edits this session", { text: ALL_EDITS }]]]] : [];
  if (!details.grant) return edits;
  const grant = /** @type {[string, any][]} */ ([["This session", { scope: "session" }], ["Always in this folder", { scope: "always" }], ["Always in every folder", { scope: "everywhere" }]]);
  const prefix = /** @type {[string, any][]} */ ([["Always in this folder", { scope: "always", prefix: true }]]);
  const begins = details.prefix ? [/** @type {any} */ (["All that begins with", details.prefix.replace(/^shell:/, ""), prefix])] : [];
  return [["The rule", details.grant, grant], ...begins, ...edits];
}

export class ConfirmationCard extends HTMLElement {
  constructor() {
    super();
    this.sessionId = "";
    /** @type {any} */ this.question = null;
  }

  async connectedCallback() {
    const details = this.question.details;
    this.className = `question ${details.risk}`;
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", `Question: ${details.description}`);
    this.typed = h("input", { type: "text", "aria-label": "Your answer", onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && !event.isComposing && this.answerTyped() });
    this.reason = h("input", { type: "text", placeholder: "because … (optional)", "aria-label": "Reason for no" });
    const reason = h("p", { class: "meta" }, `Asked because ${details.reason}`, details.rule?.file ? ` (${details.rule.file}:${details.rule.line})` : "");
    const isUnusual = details.risk === "high" || details.locked || ["configured", "sandbox"].includes(details.rule?.layer);
    const grants = listGrants(details);
    const diff = h("div", { class: "change" }, h("pre", { class: "diff" }, details.diff));
    const reply = details.diff ? await post("/web/render", { text: details.diff, diff: true }).catch(() => null) : null;
    if (reply) showCleanHtml(diff, reply.html); // before the buttons are there: nothing may move under a finger
    fill(
      this,
      h("p", { class: "what" }, details.risk === "high" ? h("span", { class: "risk high" }, "high risk") : null, h("strong", null, details.description)),
      details.command ? h("pre", { class: "command", tabIndex: 0 }, details.command) : null,
      details.parts?.length > 1 ? h("ul", { class: "parts" }, ...sortParts(details.parts).map((/** @type {any} */ part) => h("li", { class: part.decision }, h("span", { class: "verdict", title: part.decision }, VERDICTS[part.decision] ?? ""), h("code", null, part.command), h("span", { class: "why" }, part.reason)))) : null,
      details.diff ? diff : null,
      details.typed ? h("div", { class: "refuse" }, this.typed) : null,
      isUnusual || !grants.length ? reason : null,
      readRights().readOnly ? h("p", { class: "meta" }, "This device may only read.") : h(
        "div",
        { class: "buttons answers" },
        h("button", { type: "button", class: "primary", onclick: () => (details.typed ? this.answerTyped() : void this.answer({ approved: true })) }, details.typed ? "Send" : "Yes"),
        grants.length ? makeWider([isUnusual ? null : reason, ...grants.map((one) => this.makeGrant(one))]) : null,
        h("div", { class: "refuse" }, this.reason, h("button", { type: "button", onclick: () => void this.answer({ approved: false, reason: this.reason?.value ?? "" }) }, "No")),
      ),
    );
  }

  /** @param {[string, string, [string, any][]]} grant */
  makeGrant([words, rule, answers]) {
    return h("div", { class: "buttons" }, rule ? h("p", { class: "rule" }, words, " ", h("code", { tabIndex: 0 }, rule)) : null, ...answers.map(([label, said]) => h("button", { type: "button", ...(rule ? { "aria-label": `${label}: ${rule}` } : {}), onclick: () => void this.answer({ approved: true, ...said }) }, label)));
  }

  answerTyped() {
    void this.answer({ approved: true, text: this.typed?.value ?? "" });
  }

  /** @param {any} said */
  async answer(said) {
    await attempt(async () => {
      try {
        if (said.text === ALL_EDITS) await post(`/sessions/${this.sessionId}/commands`, { name: "approval", arguments: "accept-edits" });
        await post(`/sessions/${this.sessionId}/confirmations/${this.question.correlationId}`, said);
      } catch (error) {
        if (error instanceof RequestError && error.status === 0) throw new Error("The daemon does not answer; your answer was not taken.");
        if (!(error instanceof RequestError) || error.status !== 409) throw error;
      }
      this.dispatchEvent(new Event("answered", { bubbles: true }));
    });
  }
}
customElements.define("ollm-confirmation", ConfirmationCard);

/** Wider answers open above the row of buttons, which keeps its place, and take nothing while a second tap may follow the first. @param {(HTMLElement | null)[]} answers */
function makeWider(answers) {
  const wider = h("div", { class: "wider" }, answers);
  let timer = 0;
  const open = () => {
    wider.inert = true;
    clearTimeout(timer);
    timer = setTimeout(() => (wider.inert = false), SETTLE_MS);
  };
  return [h("details", null, h("summary", { onclick: open }, "Always …")), wider];
}

/** What asks comes last, beside the buttons. @param {any[]} parts */
function sortParts(parts) {
  return [...parts.filter((part) => part.decision === "allow"), ...parts.filter((part) => part.decision !== "allow")];
}
