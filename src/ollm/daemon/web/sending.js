// What a person sends: a message, a slash command, or a shell command; and the replies.
import { get, isDevice, post, request } from "./api.js";
import { listCommands, readCommand } from "./completion.js";
import { Composer } from "./composer-box.js";
import { h, iconButton, showCleanHtml } from "./dom.js";
import { openSession } from "./open-session.js";
import { say } from "./toast.js";

const SENDING = matchMedia("(pointer: coarse)").matches ? ["Enter", "new line; the arrow sends (queued while the model works)"] : ["Enter, Shift-Enter", "send (queued while the model works), new line"];
const KEYS = [
  SENDING,
  ["/ in the box", "list the commands; Tab or the arrows choose"],
  ["@", "attach a file or an image of the folder"],
  ["!command", "run a shell command; its output goes with your next message"],
  ["#note", "remember a note for this folder"],
  ["?", "show these keys"],
  ["//", "a message that starts with a slash"],
  ["Esc", "stop the model; queued messages come back to the box"],
  ["/ elsewhere", "search the sessions"],
];

/** @param {any} page The session's page. @param {import("./composer-box.js").Typed} message */
export async function sendTyped(page, message) {
  const { text } = message;
  if (text.startsWith("!") && text.length > 1) return runShell(page, text.slice(1).trim());
  const command = readCommand(text);
  if (command) return runCommand(page, text, command);
  const attachments = await Composer.upload(page.sessionId, message.files);
  await sendMessage(page.sessionId, text.replace(/^\/\//, "/"), attachments);
}

/** @param {string} sessionId @param {string} text @param {string[]} [attachments] */
async function sendMessage(sessionId, text, attachments = []) {
  await request("POST", `/sessions/${sessionId}/messages`, { text, attachments, mentions: true }, { prefer: "respond-async" });
}

/** @param {any} page @param {string} command */
async function runShell(page, command) {
  page.showWorking();
  try {
    await post(`/sessions/${page.sessionId}/shell`, { command });
    await showOutputs(page);
  } finally {
    page.endTurn();
  }
}

/** Show the outputs of shell commands that wait for the next message, and attach them to it. @param {any} page */
export async function showOutputs(page) {
  const outputs = /** @type {any[]} */ (await get(`/sessions/${page.sessionId}/shell`));
  for (const { attachment: id, command, ok, output } of outputs) {
    if (page.outputs.has(id)) continue;
    page.outputs.add(id);
    page.composer.giveBack({ text: "", files: [{ name: `$ ${command}`, id }] });
    showReply(page, `!${command}`, ok, h("pre", { class: "output", tabIndex: 0 }, output));
  }
}

/** @param {any} page @param {string} text As it was typed. @param {string} command */
async function runCommand(page, text, command) {
  const [name, ...rest] = command.slice(1).split(" ");
  if (["", "help"].includes(name) && ["", "keys"].includes(rest.join(""))) return showHelp(page, text, !rest.length);
  if (name === "rewind" && !rest.join("")) return page.showPanel("snapshot");
  const reply = await post(`/sessions/${page.sessionId}/commands`, { name, arguments: rest.join(" ") });
  if (reply.followUp === "send") await sendMessage(page.sessionId, reply.argument);
  else page.composer.sendNext();
  if (reply.followUp === "exit") location.hash = "#/";
  if (reply.followUp === "open-session") {
    location.hash = `#/session/${reply.argument}`;
    dispatchEvent(new Event("ollm-sessions-changed")); // it may be a new one
  }
  if (["new-session", "open-folder"].includes(reply.followUp)) {
    const opened = await openSession(reply.followUp === "open-folder" ? reply.argument : page.workspace);
    if (opened) location.hash = `#/session/${opened.sessionId}`;
  }
  if (name === "copy") return navigator.clipboard.writeText(reply.text).then(() => say("Copied the last answer."));
  if (!reply.text) return;
  const shown = h("div", { class: "text" });
  showCleanHtml(shown, (await post("/web/render", { text: reply.text })).html);
  showReply(page, text, reply.ok, shown);
}

/** @param {any} page @param {string} typed @param {boolean} all Commands too, not the keys alone. */
async function showHelp(page, typed, all) {
  const rows = (/** @type {string[][]} */ lines) => h("table", { class: "rows" }, h("tbody", null, ...lines.map(([name, about]) => h("tr", null, h("td", null, h("code", null, name)), h("td", null, about)))));
  const commands = all ? await listCommands(page.workspace) : [];
  showReply(page, typed, true, h("div", null, rows(isDevice() ? KEYS.filter(([key]) => key !== "!command") : KEYS), rows(commands.map((one) => [`/${one.name} ${one.usage}`, one.help]))));
}

/** @param {any} page @param {string} typed @param {boolean} ok @param {HTMLElement} shown */
function showReply(page, typed, ok, shown) {
  const card = h("div", { class: ok ? "reply" : "reply bad" }, h("p", { class: "meta" }, h("code", null, typed)), shown);
  card.append(iconButton("close", "Dismiss", () => card.remove()));
  page.notices?.append(card);
  page.list?.toEnd();
}
