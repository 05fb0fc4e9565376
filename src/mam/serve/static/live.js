// Live updates. One connection for each browser: the tab that holds the lock reads the events and tells the others.
// An event only says that something changed; the page is then asked for again, and the parts that differ are replaced.
import { morph, morphInPlace } from "./morph.js";
import { wireReview } from "./review.js";
import { setServerTime, writeTimes } from "./times.js";

const LEAST_MS = 1500, POLL_MS = 2000, LIVE = "x-mam-live";
const chip = document.getElementById("live");
const regions = () => [...document.querySelectorAll("[data-live]")];
const address = document.body.dataset.events;
let isPaused = false, isWanted = false, isBusy = false, last = 0, timer = 0, others = null, gone = false;

export function showState(state, text) {
  if (!chip) return;
  chip.dataset.state = state;
  const words = text || { live: "live", lost: "reconnecting", off: "as of now" }[state];
  if (chip.textContent.trim() !== words) chip.firstElementChild.textContent = words;
}

// -- asking for the page again ----------------------------------------------------------------------------------

export function wish() {
  isWanted = true;
  if (!timer) timer = setTimeout(renew, Math.max(60, last + LEAST_MS - Date.now()));
}

async function renew() {
  timer = 0;
  if (!isWanted || isBusy || isPaused || document.hidden || isOccupied()) return;
  isWanted = false;
  isBusy = true;
  last = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { [LIVE]: "1" }, redirect: "manual" });
    if (answer.status === 401) { gone = true; showState("lost", "log in again"); return; }
    if (answer.ok) show(await answer.text(), answer);
  } catch {
    showState("lost");
  } finally {
    isBusy = false;
    last = Date.now();
    if (isWanted) wish();
  }
}

// What a person does now must not be disturbed.
function isOccupied() {
  const selection = getSelection();
  const occupied = Boolean(document.querySelector("dialog[open]")) || (selection && !selection.isCollapsed);
  if (occupied) timer = setTimeout(renew, LEAST_MS);
  return occupied;
}

export function show(text, answer) {
  if (answer) setServerTime(answer.headers.get("date"));
  const made = new DOMParser().parseFromString(text, "text/html");
  writeTimes(made);
  others = null;
  if (document.getElementById("head")?.dataset.stage !== made.getElementById("head")?.dataset.stage) renewRest();
  for (const region of regions()) {
    const wanted = made.getElementById(region.id);
    if (!wanted) continue;
    if (mayMove(region)) morph(region, wanted);
    else if (morphInPlace(region, wanted)) others = made;
  }
  offerOthers();
  counts(made);
  writeTimes();
}

// When a job starts, asks or ends, other things can be done to it: the box below its conversation and the side change.
async function renewRest() {
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  const wanted = made.getElementById("parts"), parts = document.getElementById("parts"), side = document.getElementById("side");
  if (!wanted || !parts) return;
  morph(document.getElementById("composer"), made.getElementById("composer"));
  if (side.contains(document.activeElement)) return;
  parts.className = wanted.className;
  side.replaceChildren(...made.getElementById("side").childNodes);
  wireReview();
  writeTimes();
}

function mayMove(region) {
  if (region.dataset.live !== "jobs") return true;
  return !region.querySelector("[data-list]:hover, [data-list]:focus-within") && !document.querySelector(".pick:checked");
}

function offerOthers() {
  let pill = document.getElementById("pill");
  if (!others) { pill?.remove(); return; }
  if (pill) return;
  pill = document.createElement("div");
  pill.id = "pill";
  pill.className = "pill";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Jobs have moved: show";
  button.addEventListener("click", applyOthers);
  pill.append(button);
  document.querySelector("[data-live=jobs]").before(pill);
}

function applyOthers() {
  const made = others;
  others = null;
  offerOthers();
  if (made) for (const region of regions()) { const wanted = made.getElementById(region.id); if (wanted) morph(region, wanted); }
  writeTimes();
}

document.addEventListener("mouseleave", (event) => {
  if (others && event.target instanceof Element && event.target.matches("[data-list]") && !document.querySelector(".pick:checked")) applyOthers();
}, true);

function counts(made) {
  const old = document.getElementById("waiting"), now = made.getElementById("waiting");
  if (old && now) morph(old, now);
  document.title = made.title;
}

// -- the events -------------------------------------------------------------------------------------------------

let source = null;

function open(tell) {
  source = new EventSource(address);
  source.onopen = () => { tell("live"); tell("changed"); };
  source.onerror = () => {
    tell("lost");
    if (source.readyState === EventSource.CLOSED && !gone) setTimeout(() => open(tell), 5000);
  };
  // The names of the events are those of the journal; every one of them is a change.
  for (const name of ["message", "change", "job", "entry", "reset", "gap"]) source.addEventListener(name, () => tell("changed"));
}

function receive(word) {
  if (word === "changed") wish();
  else if (!isPaused) showState(word);
}

function connect() {
  const channel = "BroadcastChannel" in window ? new BroadcastChannel(`mam ${document.body.dataset.base}`) : null;
  const tell = (word) => { receive(word); channel?.postMessage(word); };
  if (channel) channel.onmessage = ({ data }) => {
    if (data === "who") { if (source?.readyState === EventSource.OPEN) channel.postMessage("live"); } else receive(data);
  };
  channel?.postMessage("who");
  if (channel && navigator.locks) {
    navigator.locks.request(`mam ${document.body.dataset.base}`, () => new Promise(() => open(tell)));
  } else {
    open(tell);
  }
}

export function togglePause() {
  isPaused = !isPaused;
  if (isPaused) showState("off", "paused"); else { showState("live"); wish(); }
}

if (address && regions().length) {
  connect();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wish(); });
  setInterval(poll, POLL_MS);
}

// The output of a job that runs is no entry of the journal.
async function poll() {
  const region = document.querySelector("[data-poll]");
  if (!region || document.hidden || isPaused || isBusy || location.search.includes("until=")) return;
  try {
    const answer = await fetch(region.dataset.poll);
    if (answer.ok && (await answer.text()) !== region.dataset.version) wish();
  } catch { /* the connection of the events reports it */ }
}
