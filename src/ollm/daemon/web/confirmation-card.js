// A question of the policy: what would be done, why it asks, and the answers there are.
import { post, RequestError } from "./api.js";
import { fill, h } from "./dom.js";
import { attempt } from "./toast.js";

const VERDICTS = /** @type {Record<string, string>} */ ({ allow: "✓", ask: "?", deny: "✕" });

export class ConfirmationCard extends HTMLElement {
  constructor() {
    super();
    this.sessionId = "";
    /** @type {any} */ this.question = null;
  }

  connectedCallback() {
    const details = this.question.details;
    this.className = `question ${details.risk}`;
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", `Question: ${details.description}`);
    this.typed = h("input", { type: "text", "aria-label": "Your answer", onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && !event.isComposing && this.answerTyped() });
    this.reason = h("input", { type: "text", placeholder: "Reason (optional)", "aria-label": "Reason for no" });
    fill(
      this,
      h("p", { class: "what" }, h("span", { class: `risk ${details.risk}` }, `${details.risk} risk`), h("strong", null, details.description)),
      details.command ? h("pre", { class: "command", tabIndex: 0 }, details.command) : null,
      details.parts?.length > 1 ? h("ul", { class: "parts" }, ...sortParts(details.parts).map((/** @type {any} */ part) => h("li", { class: part.decision }, h("span", { class: "verdict", title: part.decision }, VERDICTS[part.decision] ?? ""), h("code", null, part.command), h("span", { class: "why" }, part.reason)))) : null,
      details.diff ? makeDiff(details.diff) : null,
      details.typed ? h("div", { class: "refuse" }, this.typed) : null,
      h("p", { class: "meta" }, details.reason, details.rule?.file ? ` (${details.rule.file}:${details.rule.line})` : ""),
      h("div", { class: "buttons" }, ...this.makeButtons(details)),
      h("div", { class: "refuse" }, this.reason, h("button", { type: "button", onclick: () => void this.answer({ approved: false, reason: this.reason?.value ?? "" }) }, "No")),
    );
  }

  /** @param {any} details */
  makeButtons(details) {
    if (details.typed) return [h("button", { type: "button", class: "primary", onclick: () => this.answerTyped() }, "Send")];
    const choices = [h("button", { type: "button", class: "primary", onclick: () => void this.answer({ approved: true }) }, "Yes, once")];
    if (details.grant && !details.locked) {
      choices.push(h("button", { type: "button", title: details.grant, onclick: () => void this.answer({ approved: true, scope: "session" }) }, "Yes, this session"));
      choices.push(h("button", { type: "button", title: details.grant, onclick: () => void this.answer({ approved: true, scope: "always" }) }, "Always here"));
    }
    if (details.prefix && !details.locked) {
      choices.push(h("button", { type: "button", onclick: () => void this.answer({ approved: true, scope: "session", prefix: true }) }, "All ", h("code", null, `${details.prefix} …`)));
    }
    return choices;
  }

  answerTyped() {
    void this.answer({ approved: true, text: this.typed?.value ?? "" });
  }

  /** @param {any} said */
  async answer(said) {
    await attempt(async () => {
      try {
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

/** @param {string} diff */
export function makeDiff(diff) {
  const kinds = /** @type {Record<string, string>} */ ({ "+": "add", "-": "del", "@": "hunk" });
  const lines = diff.replace(/\n$/, "").split("\n").map((line) => h("span", { class: /^(---|\+\+\+) /.test(line) ? "head" : kinds[line[0]] ?? "" }, `${line}\n`));
  return h("pre", { class: "diff", tabIndex: 0, "aria-label": "Changes" }, ...lines);
}
