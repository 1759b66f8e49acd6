// Opening a session in the daemon: what that would stop is asked about first.
import { get, post, RequestError } from "./api.js";
import { h } from "./dom.js";
import { ask } from "./toast.js";

/**
 * Start a session in a folder, or resume the one that is named; null when the person would rather not.
 * @param {string} workspacePath @param {string} [sessionId] @returns {Promise<{sessionId: string} | null>}
 */
export async function openSession(workspacePath, sessionId) {
  const query = new URLSearchParams({ workspace: workspacePath, status: "active", limit: "100" });
  const open = /** @type {any[]} */ (await get(`/sessions?${query}`));
  const working = open.filter((line) => line.running && line.sessionId !== sessionId);
  const asks = working.length > 0 && (await get(`/settings?${new URLSearchParams({ workspace: workspacePath })}`)).settings.workspace.sessions === "one";
  const titles = working.map((line) => `“${line.title || "Untitled session"}”`).join(", ");
  const words = h("p", null, `At work in this folder: ${titles}. Opened beside, they go on.`);
  const chosen = asks ? await ask("Open beside?", [words], [["beside", "Open beside"], ["force", "Stop them first"], ["", "Cancel"]]) : "open";
  if (!chosen) return null;
  const body = { workspacePath, ...(sessionId ? { sessionId } : {}), ...(chosen === "open" ? {} : { [chosen]: true }) };
  return post("/sessions", body).catch((error) => offerOthers(error, body, [["beside", "Open beside"], ["force", "Take over"], ["", "Cancel"]]));
}

/** Ask what to do about a folder or a session that is open elsewhere. @param {unknown} error @param {object} body @param {[string, string][]} choices @returns {Promise<{sessionId: string} | null>} */
async function offerOthers(error, body, choices) {
  if (!(error instanceof RequestError) || error.status !== 409) throw error;
  const chosen = await ask("Open elsewhere", [h("p", null, error.detail)], choices);
  if (!chosen) return null;
  const opened = post("/sessions", { ...body, [chosen]: true });
  return chosen === "force" ? opened : opened.catch((again) => offerOthers(again, body, choices.slice(1))); // the session itself is
}
