// Keys. They never act while someone types, and they can be switched off on the help page.
import { togglePause } from "./live.js";

const OFF = "mam-keys-off";
const base = document.body.dataset.base;
const GO = { h: "/", j: "/jobs", w: "/workers", s: "/statistics" };
let afterG = 0;

const isOff = () => { try { return localStorage.getItem(OFF) === "1"; } catch { return false; } };
const rows = () => [...document.querySelectorAll(".job, .question, [data-list] > article")];
const current = () => document.querySelector(".current") || document.activeElement?.closest?.(".job, .question, [data-list] > article");

function move(step) {
  const all = rows(), at = all.indexOf(current());
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))];
  if (!next) return;
  for (const row of all) row.classList.toggle("current", row === next);
  (next.querySelector("a[href]") || next).focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function press(selector) {
  const button = (current() || document).querySelector(selector) || (rows().length ? null : document.querySelector(selector));
  if (button && !button.disabled) button.click();
  return Boolean(button);
}

function bulk(verb) {
  const row = current(), pick = row?.querySelector(".pick");
  if (pick && !document.querySelector(".pick:checked")) { pick.checked = true; pick.dispatchEvent(new Event("change", { bubbles: true })); }
  document.querySelector(`#bulk button[value=${verb}]`)?.focus();
}

function act(verb) {
  if (document.getElementById("bulk")) { bulk(verb); return true; }
  return press(`[data-verb=${verb}]`);
}

const KEYS = {
  j: () => move(1), k: () => move(-1), ArrowDown: null,
  x: () => { const pick = current()?.querySelector(".pick"); pick?.click(); },
  a: () => press("button[value=allow]"), d: () => press("button[value=deny]"),
  c: () => act("cancel"), r: () => act("retry"),
  e: () => document.querySelector(".acts a[href$='/edit']")?.click(),
  n: () => { location.href = `${base}/jobs/new`; },
  "/": () => document.getElementById("find")?.focus(),
  p: () => togglePause(),
  "?": () => document.querySelector("[data-help]")?.click(),
  g: () => { afterG = Date.now(); },
};

document.addEventListener("keydown", (event) => {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (document.querySelector("dialog[open]") || isOff()) return;
  if (afterG && Date.now() - afterG < 1500 && GO[event.key]) {
    event.preventDefault();
    location.href = base + GO[event.key];
    return;
  }
  afterG = 0;
  const does = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
  if (does) { event.preventDefault(); does(); }
});

// Help opens over the page; without script it is a page of its own.
document.querySelector("[data-help]")?.addEventListener("click", async (event) => {
  const answer = await fetch(event.currentTarget.href).catch(() => null);
  if (!answer?.ok) return;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("help");
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Keys");
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  close.addEventListener("click", () => dialog.close());
  dialog.append(...made.childNodes, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  wire(dialog);
  dialog.showModal();
  close.focus();
});
document.querySelector("[data-help]")?.addEventListener("click", (event) => event.preventDefault());

function wire(root) {
  const box = root.querySelector("[data-keys-off]");
  if (!box) return;
  box.checked = isOff();
  box.addEventListener("change", () => { try { localStorage.setItem(OFF, box.checked ? "1" : ""); } catch { /* a private window */ } });
}
wire(document);
