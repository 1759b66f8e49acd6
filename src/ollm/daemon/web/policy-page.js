// The policy: try it on a call, try other rules on every recorded call, read the rules and grants.
import { get, post } from "./api.js";
import { fill, formatCount, formatMany, h } from "./dom.js";
import { Page } from "./page.js";
import { attempt } from "./toast.js";

const SAMPLE = `policy:
  rules:
    - tool: shell
      action: deny
      conditions: [{param: command, operator: program, value: rm}]
`;

class PolicyPage extends Page {
  title_ = "Policy";
  lead = "What runs by itself, what asks you first, and what never runs.";

  async load() {
    const policy = await get(`/policy${this.folderQuery}`);
    if (!this.body) return;
    const rows = policy.rules.map((/** @type {any} */ rule) => h("tr", null, h("td", null, h("span", { class: `action ${rule.action}` }, rule.action)), h("td", null, h("code", null, rule.text.replace(`${rule.action} `, ""))), h("td", null, rule.file ? `${rule.file}:${rule.line}` : rule.layer)));
    fill(
      this.body,
      h("h2", null, "Try a call"),
      this.makeCheck(),
      h("h2", null, "Try other rules"),
      this.makeBacktest(),
      h("h2", null, "Rules"),
      h("p", { class: "meta" }, `Approval level: ${policy.approval}. ${this.workspace ? `This folder is ${policy.trusted ? "" : "not "}trusted.` : ""}`),
      h("div", { class: "wide", tabIndex: 0, role: "region", "aria-label": "Rules" }, h("table", { class: "rows" }, h("thead", null, h("tr", null, h("th", null, "Action"), h("th", null, "Rule"), h("th", null, "From"))), h("tbody", null, ...rows))),
      h("h2", null, "Grants"),
      policy.grants.length ? h("ul", { class: "grants" }, ...policy.grants.map((/** @type {any} */ one) => h("li", { class: "line" }, h("code", null, one.grant), h("span", { class: "meta grow" }, one.workspace ? `in ${one.workspace}` : "in every folder"), h("button", { type: "button", onclick: () => void this.revoke(one) }, "Revoke")))) : h("p", { class: "meta" }, "No grants. Answers such as “Always in this folder” add them."),
    );
  }

  /** @param {any} one */
  async revoke(one) {
    await attempt(() => post("/policy/revoke", { number: one.number, grant: one.grant }));
    await this.show();
  }

  makeCheck() {
    const line = h("input", { type: "text", "aria-label": "Shell command", placeholder: "A shell command, such as git push -f", onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && void check() });
    const result = h("div", { role: "status" });
    const check = async () => {
      const verdict = await post("/policy/check", { tool: "shell", params: { command: line.value }, workspacePath: this.workspace }).catch((error) => fill(result, h("p", { class: "notice error" }, error.message)));
      if (!verdict) return;
      fill(result, h("p", null, h("span", { class: `action ${verdict.decision}` }, verdict.decision), ` ${verdict.reason}`), verdict.rule ? h("p", { class: "meta" }, `${verdict.rule.layer}: ${verdict.rule.text}`) : null, h("ul", { class: "parts" }, ...verdict.parts.map((/** @type {any} */ part) => h("li", null, h("span", { class: `action ${part.decision}` }, part.decision), " ", h("code", null, part.command), h("span", { class: "meta" }, ` ${part.reason}`)))));
    };
    return h("div", { class: "card" }, h("div", { class: "line" }, line, h("button", { type: "button", class: "primary", onclick: () => void check() }, "Check")), result);
  }

  makeBacktest() {
    const rules = h("textarea", { class: "plain mono", rows: 5, "aria-label": "Rules in YAML", value: SAMPLE });
    const result = h("div", { role: "status" });
    const run = async () => {
      if (!rules.value.trim()) return fill(result, h("p", { class: "notice error" }, "Write a rule first, as in a config file."));
      fill(result, h("p", { class: "meta" }, "Reading every session…"));
      const found = await post("/policy/backtest", { rules: rules.value, workspacePath: this.workspace }).catch((error) => fill(result, h("p", { class: "notice error" }, error.message)));
      if (!found) return;
      const count = (/** @type {string} */ name) => h("tr", null, h("td", null, h("span", { class: `action ${name}` }, name)), h("td", { class: "number" }, formatCount(found.today[name])), h("td", { class: "number" }, formatCount(found[name])));
      const changed = found.changes.map((/** @type {any} */ one) => h("li", null, h("span", { class: `action ${one.now}` }, one.now), " → ", h("span", { class: `action ${one.then}` }, one.then), " ", h("code", null, `${one.tool} ${one.what}`)));
      fill(result, ...found.problems.map((/** @type {string} */ text) => h("p", { class: "notice warning" }, text)), h("p", null, `${formatMany(found.calls, "recorded call")}.`), h("table", { class: "rows" }, h("thead", null, h("tr", null, h("th", null, "Decision"), h("th", { class: "number" }, "Today"), h("th", { class: "number" }, "With these rules"))), h("tbody", null, count("allow"), count("ask"), count("deny"))), changed.length ? h("ul", { class: "parts" }, ...changed) : h("p", { class: "meta" }, "Nothing would be judged differently."));
    };
    return h("div", { class: "card" }, rules, h("div", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: () => void run() }, "Test on all recorded calls")), result);
  }
}
customElements.define("ollm-policy", PolicyPage);
