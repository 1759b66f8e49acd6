// A question of the policy: what would be done, why it asks, and the answers there are.
import { post, RequestError } from "./api.js";
import { fill, h, showCleanHtml } from "./dom.js";
import { attempt } from "./toast.js";

const VERDICTS = /** @type {Record<string, string>} */ ({ allow: "✓", ask: "?", deny: "✕" });
const ALL_EDITS = "all file edits this session";
const EDIT_TOOLS = new Set(["edit_file", "write_file"]);

/** The ways to say yes, grouped by the rule they add: its words, the rule, and each answer with what is sent. @param {any} details @returns {[string, string, [string, any][]][]} */
function listAnswers(details) {
  /** @type {[string, any][]} */ const plain = [["Yes, once", {}]];
  if (EDIT_TOOLS.has(details.tool) && !details.locked) plain.push(["Yes, and all file edits this session", { text: ALL_EDITS }]);
  if (details.locked || !details.grant) return [["", "", plain]];
  const grant = /** @type {[string, any][]} */ ([["This session", { scope: "session" }], ["Always in this folder", { scope: "always" }], ["Always in every folder", { scope: "everywhere" }]]);
  const prefix = /** @type {[string, any][]} */ ([["Always in this folder", { scope: "always", prefix: true }]]);
  const begins = details.prefix ? [/** @type {any} */ (["Yes, and all that begins with", details.prefix.replace(/^shell:/, ""), prefix])] : [];
  return [["Yes, and add the rule", details.grant, grant], ...begins, ["", "", plain]];
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
    this.reason = h("input", { type: "text", placeholder: "Reason (optional)", "aria-label": "Reason for no" });
    const diff = h("div", { class: "change" }, h("pre", { class: "diff" }, details.diff));
    const reply = details.diff ? await post("/web/render", { text: details.diff, diff: true }).catch(() => null) : null;
    if (reply) showCleanHtml(diff, reply.html); // before the buttons are there: nothing may move under a finger
    fill(
      this,
      h("p", { class: "what" }, h("span", { class: `risk ${details.risk}` }, `${details.risk} risk`), h("strong", null, details.description)),
      details.command ? h("pre", { class: "command", tabIndex: 0 }, details.command) : null,
      details.parts?.length > 1 ? h("ul", { class: "parts" }, ...sortParts(details.parts).map((/** @type {any} */ part) => h("li", { class: part.decision }, h("span", { class: "verdict", title: part.decision }, VERDICTS[part.decision] ?? ""), h("code", null, part.command), h("span", { class: "why" }, part.reason)))) : null,
      details.diff ? diff : null,
      details.typed ? h("div", { class: "refuse" }, this.typed) : null,
      h("p", { class: "meta" }, `Why it asks: ${details.reason}`, details.rule?.file ? ` (${details.rule.file}:${details.rule.line})` : ""),
      ...this.makeAnswers(details),
      h("div", { class: "refuse" }, this.reason, h("button", { type: "button", onclick: () => void this.answer({ approved: false, reason: this.reason?.value ?? "" }) }, "No")),
    );
  }

  /** @param {any} details */
  makeAnswers(details) {
    if (details.typed) return [h("div", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: () => this.answerTyped() }, "Send"))];
    return listAnswers(details).map(([words, rule, answers]) =>
      h("div", { class: "buttons" }, rule ? h("p", { class: "rule" }, words, " ", h("code", { tabIndex: 0 }, rule)) : null, ...answers.map(([label, said]) => h("button", { type: "button", ...(rule ? { "aria-label": `${label}: ${rule}` } : {}), class: rule || said.text ? "" : "primary", onclick: () => void this.answer({ approved: true, ...said }) }, label))),
    );
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
        if (!(error instanceof RequestError) || error.status !== 409) throw error;
      }
      this.dispatchEvent(new Event("answered", { bubbles: true }));
    });
  }
}
customElements.define("ollm-confirmation", ConfirmationCard);

/** What asks comes last, beside the buttons. @param {any[]} parts */
function sortParts(parts) {
  return [...parts.filter((part) => part.decision === "allow"), ...parts.filter((part) => part.decision !== "allow")];
}
