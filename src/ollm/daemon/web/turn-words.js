// What a turn is doing and how it ended, in words.

const STAGES = /** @type {Record<string, string>} */ ({ connecting: "Connecting to the model…", loading: "Loading the model…", reading: "Reading the prompt…" });

/** How a turn ended that did not simply finish. */
export const ENDINGS = /** @type {Record<string, string>} */ ({
  "no-server": "No model server answered.",
  "model-error": "The model failed.",
  "context-full": "The context is full.",
  loop: "Stopped: the model is looping.",
  timeout: "Timed out.",
  cancelled: "Stopped.",
  denied: "Denied by policy.",
});

/** @param {any} event */
export function describeProgress(event) {
  const share = event.total ? ` ${Math.round((100 * event.processed) / event.total)} %` : "";
  const left = event.secondsLeft ? `, ${Math.ceil(event.secondsLeft)} s left` : "";
  return `${STAGES[event.stage] ?? "Working…"}${share}${left}`;
}
