// Updates the numbers of the queues in place, and says above a list what came since it was loaded. It moves no row.
// Other scripts listen: document.addEventListener("fiatgate:queues", (event) => event.detail).
import { age } from "./keys.js";

const HIDDEN_MILLISECONDS = 20_000; // a browser has few connections for all of its tabs
const AGAIN_MILLISECONDS = 30_000;
const SETTLED_MILLISECONDS = 3000;
const MOST = 1000;

const { live, at } = document.body.dataset;
const title = document.title;
const before = {}; // by queue, at the last event
const fresh = {}; // by queue, since the page was loaded
let source = null;
let leaving = 0;

function connect() {
  clearTimeout(leaving);
  if (source || document.hidden) return;
  source = new EventSource(live);
  source.addEventListener("queues", (event) => show(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    if (source?.readyState !== EventSource.CLOSED) return; // otherwise the browser connects again by itself
    source = null;
    setTimeout(connect, AGAIN_MILLISECONDS);
  });
}

function disconnect() {
  source?.close();
  source = null;
}

function show({ queues, away }) {
  for (const [name, queue] of Object.entries(queues)) {
    const known = before[name] ?? { count: queue.count, newest: at };
    const more = Math.max(0, queue.count - known.count);
    fresh[name] = (fresh[name] ?? 0) + (queue.newest && queue.newest > known.newest ? Math.max(1, more) : more);
    before[name] = { count: queue.count, newest: queue.newest ?? known.newest };
  }
  for (const place of document.querySelectorAll("[data-count]")) {
    const queue = queues[place.dataset.count];
    if (queue) setText(place, queue.count === 0 && !("zero" in place.dataset) ? "" : number(queue.count));
  }
  for (const place of document.querySelectorAll("time[data-oldest]")) {
    const oldest = queues[place.dataset.oldest]?.oldest;
    if (oldest) place.dateTime = oldest;
    if (oldest) setText(place, age(Math.abs(Date.now() - Date.parse(oldest)) / 1000));
  }
  const shown = queues[document.querySelector("[data-new]")?.dataset.new ?? "deals_marked"];
  if (shown) document.title = `${shown.count ? `(${number(shown.count)}) ` : ""}${title}`;
  for (const place of document.querySelectorAll("[data-new]")) announce(place, fresh[place.dataset.new] ?? 0);
  document.dispatchEvent(new CustomEvent("fiatgate:queues", { detail: { queues, away, fresh: { ...fresh } } }));
}

function announce(place, count) {
  if (!count || place.dataset.shown === String(count)) return;
  place.dataset.shown = count;
  // Clocks of two machines differ: a page that was just loaded does not load again at once.
  setTimeout(() => isIdle() && location.replace(address()), Math.max(0, SETTLED_MILLISECONDS - performance.now()));
  const link = document.createElement("a");
  link.href = address();
  link.textContent = `${number(count)} new`;
  place.replaceChildren(link);
  place.hidden = false;
}

// An empty list in which nothing is typed and no question is open may be loaded anew by itself.
function isIdle() {
  return !document.querySelector("[data-row], dialog[open], .confirm[open]") && !document.activeElement.matches("input, select, textarea");
}

// The address of the list without the report of the last decision.
function address() {
  const url = new URL(location.href);
  for (const name of ["decided", "next", "notice", "problem", "asked"]) url.searchParams.delete(name);
  url.hash = "";
  return url.href;
}

function number(count) {
  return count >= MOST ? `${MOST - 1}+` : String(count);
}

function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

if (live) {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) connect();
    else leaving = setTimeout(disconnect, HIDDEN_MILLISECONDS);
  });
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", connect);
  connect();
}
