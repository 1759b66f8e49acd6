// What a person sends: a message, or a slash command and its reply.
import { post, request } from "./api.js";
import { h, iconButton, showCleanHtml } from "./dom.js";
import { openSession } from "./open-session.js";

/** @param {string} sessionId @param {string} text @param {string[]} attachments */
export async function sendMessage(sessionId, text, attachments) {
  await request("POST", `/sessions/${sessionId}/messages`, { text, attachments }, { prefer: "respond-async" });
}

/** @param {any} page The session's page. @param {string} text */
export async function runCommand(page, text) {
  const [name, ...rest] = text.slice(1).split(" ");
  const reply = await post(`/sessions/${page.sessionId}/commands`, { name: name || "help", arguments: rest.join(" ") });
  if (reply.followUp === "send") await sendMessage(page.sessionId, reply.argument, []);
  if (reply.followUp === "exit") location.hash = "#/";
  if (reply.followUp === "open-session") location.hash = `#/session/${reply.argument}`;
  if (reply.followUp === "new-session") {
    const opened = await openSession(page.workspace);
    if (opened) location.hash = `#/session/${opened.sessionId}`;
  }
  if (reply.text) await showReply(page, text, reply);
  return true;
}

/** @param {any} page @param {string} command @param {any} reply */
async function showReply(page, command, reply) {
  const shown = h("div", { class: "text" });
  showCleanHtml(shown, (await post("/web/render", { text: reply.text })).html);
  const card = h("div", { class: reply.ok ? "reply" : "reply bad" }, h("p", { class: "meta" }, h("code", null, command)), shown);
  card.append(iconButton("close", "Dismiss", () => card.remove()));
  page.notices?.append(card);
  page.list?.toEnd();
}
