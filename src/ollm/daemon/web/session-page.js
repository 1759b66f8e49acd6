// One session: what was said, the turn under way, questions, and where to type.
import { feed, get, post, RequestError } from "./api.js";
import { makeMissingSession } from "./blank.js";
import "./confirmation-card.js";
import { fill, formatCount, h, icon, iconButton, setTitle, showControls } from "./dom.js";
import { describeProgress, LiveTurn } from "./live-turn.js";
import { takeEarlyList } from "./message-list.js";
import { openSession } from "./open-session.js";
import { sendTyped, showOutputs } from "./sending.js";
import { attempt, loadPart } from "./toast.js";

const REFRESH_MS = 60;

class SessionPage extends HTMLElement {
  constructor() {
    super();
    this.sessionId = "";
    this.startAt = 0;
    this.workspace = "";
    this.running = false;
    this.turnFirst = 0; // number of the last message before the turn
    this.staleAfter = 0; // messages after this number may have changed since they were read
    this.recorded = false; // what was written so far is in the archive
    this.timer = 0;
    this.refreshing = false;
    this.outputs = new Set(); // of shell commands, as shown here
    this.seen = 0; // number of the newest event of a turn or a question
    /** @type {any} */ this.summary = null;
  }

  connectedCallback() {
    const early = this.startAt ? null : takeEarlyList(this.sessionId);
    this.list = early?.list ?? /** @type {import("./message-list.js").MessageList} */ (document.createElement("ollm-messages"));
    this.list.sessionId = this.sessionId;
    this.live = /** @type {LiveTurn} */ (document.createElement("ollm-live-turn"));
    this.questions = h("div", { class: "questions" });
    this.notices = h("div", { class: "notices" });
    this.composer = /** @type {import("./composer-box.js").Composer} */ (document.createElement("ollm-composer"));
    this.composer.sessionId = this.sessionId;
    this.name = h("h1", null, "Session");
    this.about = h("p", { class: "about" });
    this.meter = h("button", { type: "button", class: "meter", hidden: true, title: "Context", onclick: () => void this.showPanel("context") });
    this.spoken = h("p", { class: "hidden-text", role: "status", "aria-live": "polite" });
    this.panel = h("div", { class: "panel-place" });
    this.latest = iconButton("down", "Go to the newest message", () => void this.goToEnd(), { class: "icon-button latest", hidden: true });
    const jump = h("input", { type: "number", min: 1, class: "jump", placeholder: "#", "aria-label": "Go to message number", title: "Go to message number", onchange: (/** @type {any} */ event) => void this.jumpTo(Number(event.target.value)) });
    fill(
      this,
      h("div", { class: "conversation" },
        h("header", { class: "bar" }, h("a", { class: "icon-button back", href: "#/", "aria-label": "All sessions" }, icon("back")), h("div", { class: "names" }, this.name, this.about), jump, this.meter, iconButton("chart", "Context", () => void this.showPanel("context")), iconButton("history", "Snapshots and rewind", () => void this.showPanel("snapshot"))),
        this.list, this.spoken, h("div", { class: "foot" }, this.latest, this.composer)),
      this.panel,
    );
    this.list.tail.append(this.live, this.notices, this.questions);
    new MutationObserver(() => this.list?.setWaiting([...(this.questions?.children ?? [])].map((card) => /** @type {any} */ (card).question.details.callId))).observe(this.questions, { childList: true });
    this.onEvent = (/** @type {any} */ event) => event.detail.sessionId === this.sessionId && this.take(event.detail);
    this.onReset = () => void this.reload();
    this.addEventListener("keydown", (event) => event.key === "Escape" && this.escape(event));
    this.questions.addEventListener("answered", (event) => this.removeQuestion(/** @type {Element} */ (event.target)));
    feed.addEventListener("event", this.onEvent);
    feed.addEventListener("reset", this.onReset);
    this.list.addEventListener("moved", () => this.latest && (this.latest.hidden = !!this.list?.pinned));
    this.list.addEventListener("rewind", (event) => void this.showPanel("snapshot", /** @type {CustomEvent} */ (event).detail));
    this.composer.addEventListener("send", (event) => void this.send(/** @type {CustomEvent} */ (event).detail));
    this.composer.addEventListener("stop", () => this.stop());
    let told = 0; // somebody types: what the daemon prepares meanwhile makes way
    this.composer.addEventListener("input", () => {
      if (Date.now() - told < 1000) return;
      told = Date.now();
      void post(`/sessions/${this.sessionId}/typing`).catch(() => {});
    });
    void this.open(early?.opened);
  }

  disconnectedCallback() {
    feed.removeEventListener("event", this.onEvent ?? null);
    feed.removeEventListener("reset", this.onReset ?? null);
  }

  /** Esc closes the panel it is pressed in, and stops a turn anywhere else. @param {KeyboardEvent} event */
  escape(event) {
    if (this.panel?.contains(/** @type {Node} */ (event.target))) this.closePanel();
    else if (this.running) this.stop();
  }

  stop() {
    this.composer?.takeBackQueue();
    void attempt(() => post(`/sessions/${this.sessionId}/cancel`));
  }

  /** @param {Promise<boolean>} [opened] Whether its messages were got already. */
  async open(opened) {
    await attempt(async () => {
      try {
        if (!(await opened)) await this.list?.open(this.startAt);
      } catch (error) {
        await this.loadSummary();
        if (this.summary?.archive) return this.offerPull();
        if (!(error instanceof RequestError) || error.status !== 404) throw error;
        if (this.isConnected) setTitle("Not found · ollm");
        return fill(this, makeMissingSession());
      }
      await this.loadSummary();
    });
    if (matchMedia("(min-width: 60rem)").matches) this.composer?.focus();
  }

  /** Everything anew, after the connection was gone for long or the daemon is another. */
  async reload() {
    this.seen = 0;
    this.endTurn();
    this.live?.clearText();
    if (!this.list?.opened) return this.open();
    if (this.list?.last === this.list?.total) await this.list?.refresh(Math.max(0, (this.list?.first ?? 1) - 1)).catch(() => undefined);
    await this.loadSummary().catch(() => undefined);
  }

  async loadSummary() {
    const [line] = (await get(`/sessions?limit=1&q=${this.sessionId}`)) ?? [];
    if (!line || !this.isConnected) return; // one has gone elsewhere: the title is that page's
    this.summary = line;
    this.workspace = line.workspace ?? "";
    if (this.composer) this.composer.workspace = this.workspace;
    const title = line.title || "Untitled session";
    setTitle(showControls(`${title} · ollm`));
    if (this.name) fill(this.name, title);
    this.list?.describe(this.about, line);
    if (line.status === "active" && !line.open) this.showElsewhere();
    if (line.open) await this.loadStatus();
  }

  /** @param {boolean} [again] Ask once more if it was true before the newest event. @returns {Promise<void>} */
  async loadStatus(again = true) {
    const status = await get(`/sessions/${this.sessionId}/status`).catch(() => null);
    if (!status) return;
    this.showUsage(status.used, status.limit);
    if (status.lastEvent < this.seen) return again ? this.loadStatus(false) : undefined;
    if (status.turnAfter !== null && !this.running) status.turnMessage ? this.beginTurn(status.turnMessage - 1) : this.showWorking();
    for (const event of [...status.questions, ...status.turnNotices]) this.take(event);
    await showOutputs(this);
  }

  /** It is in the team archive only: read and go on once it is here. */
  async offerPull() {
    if (!(await loadPart(() => import("./pull-card.js")))) return;
    const card = /** @type {any} */ (document.createElement("ollm-pull-card"));
    card.summary = this.summary;
    card.addEventListener("pulled", () => {
      card.remove();
      if (this.composer) this.composer.hidden = false;
      void this.open();
    });
    if (this.composer) this.composer.hidden = true;
    if (this.notices) fill(this.notices, card);
  }

  showElsewhere() {
    this.notice("info", "This session is open in another terminal. Reload to see what is new there. If you send a message, you are asked whether to take it over.");
  }

  /** @param {number} used @param {number} limit */
  showUsage(used, limit) {
    if (!this.meter || !limit) return;
    const share = Math.min(1, used / limit);
    const bar = h("span", { class: "fill" });
    bar.style.width = `${Math.round(share * 100)}%`;
    this.meter.hidden = false;
    this.meter.setAttribute("aria-label", `Context: ${Math.round(share * 100)} % used`);
    fill(this.meter, h("span", { class: share > 0.85 ? "track full" : "track" }, bar), `${Math.round(share * 100)} %`);
  }

  /** @param {import("./api.js").SessionEvent} event */
  take(event) {
    if (/^(turn|confirmation)-/.test(event.type)) this.seen = Math.max(this.seen, event.seq);
    switch (event.type) {
      case "turn-started": return this.beginTurn(event.messageId - 1);
      case "text-delta": return this.addDelta(() => this.live?.addText(event.text));
      case "thinking-delta": return this.addDelta(() => this.live?.addThought(event.text));
      case "prefill-progress": return this.live?.showState(describeProgress(event));
      case "message-recorded":
        this.recorded ||= event.role === "assistant";
        return this.later();
      case "tool-started":
        this.live?.showState(event.summary);
        return this.later();
      case "tool-output": return this.list && LiveTurn.addOutput(this.list, event.callId, event.text);
      case "tool-finished":
        this.live?.showState("Working…");
        return this.later();
      case "confirmation-requested": return this.addQuestion(event);
      case "confirmation-resolved": return this.removeQuestion(this.questions?.querySelector(`[data-question="${CSS.escape(event.correlationId)}"]`));
      case "context-usage": return this.showUsage(event.used, event.limit);
      case "notice": return this.notice(event.level, event.text);
      case "compressed": return this.notice("info", `Compacted ${formatCount(event.originalTokenCount)} → ${formatCount(event.compressedTokenCount)} tokens; full history kept.`);
      case "loop-warning": return this.notice("warning", `The model may be looping: ${event.details}.`);
      case "turn-finished": return this.finishTurn(event);
    }
  }

  /** @param {number} before Number of the last message before the turn. */
  beginTurn(before) {
    this.turnFirst = before;
    this.staleAfter = Math.min(this.staleAfter, before);
    this.recorded = false;
    this.live?.clearText();
    fill(this.questions ?? this);
    if (this.notices) fill(this.notices);
    this.showWorking();
    if (this.spoken) this.spoken.textContent = "The model is working.";
    this.later();
  }

  showWorking() {
    this.running = true;
    this.live?.showState("Working…");
    this.composer?.setRunning(true);
  }

  /** @param {() => void} add */
  addDelta(add) {
    if (this.recorded) {
      this.live?.clearText();
      this.recorded = false;
    }
    this.live?.showState("");
    add();
  }

  /** @param {import("./api.js").SessionEvent} event */
  finishTurn(event) {
    this.recorded = true;
    this.endTurn();
    if (this.spoken) this.spoken.textContent = event.reason === "answered" ? "Answer finished." : event.message || "Stopped.";
    this.later();
    void this.loadSummary().catch(() => undefined);
  }

  endTurn() {
    this.running = false;
    this.live?.showState("");
    if (this.questions) fill(this.questions);
    this.composer?.setRunning(false);
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.refresh(), REFRESH_MS);
  }

  /** The archive as it is now takes the place of what was shown live. */
  async refresh() {
    if (this.refreshing) return this.later();
    this.refreshing = true;
    const clear = this.recorded;
    const after = this.staleAfter;
    try {
      await Promise.all([this.list?.refresh(after), this.summary?.title ? null : this.loadSummary()]);
      if (after === this.staleAfter) this.staleAfter = this.turnFirst;
      if (clear && (this.recorded || !this.running)) {
        this.live?.clearText();
        this.recorded = false;
      }
    } catch {
      if (feed.state === "open") this.later();
    } finally {
      this.refreshing = false;
    }
  }

  /** @param {import("./api.js").SessionEvent} event */
  addQuestion(event) {
    if (this.questions?.querySelector(`[data-question="${CSS.escape(event.correlationId)}"]`)) return;
    const card = /** @type {any} */ (document.createElement("ollm-confirmation"));
    card.sessionId = this.sessionId;
    card.question = event;
    card.dataset.question = event.correlationId;
    this.questions?.append(card);
    this.live?.showState("");
    if (this.spoken) this.spoken.textContent = `Question: ${event.details.description}`;
    if (this.list?.pinned) this.list.toEnd();
  }

  /** @param {Element | null | undefined} card */
  removeQuestion(card) {
    const focused = card?.contains(document.activeElement);
    card?.remove();
    if (focused && matchMedia("(pointer: coarse)").matches) this.list?.focus();
    else if (focused) this.composer?.focus();
  }

  /** @param {string} level @param {string} text */
  notice(level, text) {
    if ([...(this.notices?.children ?? [])].some((one) => one.textContent === showControls(text))) return;
    this.notices?.append(h("p", { class: `notice ${level}` }, text));
  }

  /** Open the session in the daemon, unless it is. @returns {Promise<boolean>} */
  async ensureOpen() {
    try {
      await get(`/sessions/${this.sessionId}/status`);
      return true;
    } catch (error) {
      if (!(error instanceof RequestError) || error.status !== 404) throw error;
    }
    return !!(await openSession(this.workspace, this.sessionId));
  }

  /** @param {import("./composer-box.js").Typed} message */
  async send(message) {
    const sent = await attempt(async () => {
      if (!(await this.ensureOpen())) return false;
      await sendTyped(this, message);
      if (this.list) this.list.pinned = true;
      return true;
    });
    if (!sent) this.composer?.giveBack(message);
  }

  /** @param {number} number */
  async jumpTo(number) {
    if (number > 0) await attempt(async () => this.list?.jumpTo(number));
  }

  async goToEnd() {
    if (this.list && this.list.last < this.list.total) await attempt(async () => this.list?.open());
    if (this.list) this.list.pinned = true;
    this.list?.toEnd();
  }

  /** @param {"context" | "snapshot"} kind @param {number} [number] Message to go back to. */
  async showPanel(kind, number) {
    const tag = `ollm-${kind}-panel`;
    const there = this.panel?.firstElementChild?.localName;
    if (there === tag && !number) return this.closePanel();
    if (!there) this.opener = document.activeElement;
    if (this.panel) fill(this.panel);
    if (!(await loadPart(() => (kind === "context" ? import("./context-panel.js") : import("./snapshot-panel.js"))))) return;
    const panel = /** @type {any} */ (document.createElement(tag));
    panel.page = this;
    if (number) panel.number = number;
    this.panel?.append(panel);
    panel.focus();
  }

  closePanel() {
    if (this.panel) fill(this.panel);
    if (this.opener instanceof HTMLElement) this.opener.focus();
  }
}
customElements.define("ollm-session", SessionPage);
