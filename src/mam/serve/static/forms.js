// Forms: answers without leaving the page, drafts that stay in this browser, and a question before what destroys.
import { show } from "./live.js";

// -- answers ----------------------------------------------------------------------------------------------------

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  if (form.dataset.confirm && !form.dataset.confirmed && event.submitter?.classList.contains("danger")) {
    event.preventDefault();
    confirm(form, event.submitter);
    return;
  }
  if ("answer" in form.dataset && document.getElementById("needs")) {
    event.preventDefault();
    answer(form, event.submitter);
  }
});

async function answer(form, button) {
  if (form.dataset.busy) return;
  form.dataset.busy = "1";
  const fields = new URLSearchParams(new FormData(form));
  if (button?.name) fields.set(button.name, button.value);
  for (const one of form.querySelectorAll("button")) one.disabled = true;
  try {
    const got = await fetch(form.action, { method: "POST", body: fields });
    const text = await got.text();
    const card = form.closest("[data-key]");
    const following = card?.nextElementSibling?.dataset.key;
    // The answered form would count as one in which someone types.
    form.remove();
    show(text, got);
    note(text);
    const next = (following && document.querySelector(`[data-key="${CSS.escape(following)}"]`)) || document.querySelector(".question");
    (next || document.getElementById("main")).focus({ preventScroll: !next });
    next?.scrollIntoView({ block: "nearest" });
  } catch {
    delete form.dataset.busy;
    for (const one of form.querySelectorAll("button")) one.disabled = false;
    say("The server did not answer. Nothing was sent twice; try again.", "bad");
  }
}

function note(text) {
  const made = new DOMParser().parseFromString(text, "text/html");
  const found = made.querySelector("main > .note");
  if (found) say(found.textContent, found.classList.contains("ok") ? "ok" : "ask");
}

export function say(text, look) {
  const main = document.getElementById("main");
  let line = main.querySelector(":scope > .note[data-said]") || main.querySelector(":scope > .note");
  if (!line) { line = document.createElement("p"); line.setAttribute("role", "status"); main.prepend(line); }
  line.dataset.said = "";
  line.className = `note ${look}`;
  line.textContent = text;
}

// -- a question before what destroys ------------------------------------------------------------------------------

function confirm(form, button) {
  const dialog = document.createElement("dialog");
  const text = document.createElement("p");
  text.textContent = form.dataset.confirm;
  const row = document.createElement("div");
  row.className = "row";
  const yes = Object.assign(document.createElement("button"), { type: "button", className: "danger", textContent: button.textContent });
  const no = Object.assign(document.createElement("button"), { type: "button", className: "quiet-button", textContent: "Leave it" });
  yes.addEventListener("click", () => { form.dataset.confirmed = "1"; dialog.close(); form.requestSubmit(button); });
  no.addEventListener("click", () => dialog.close());
  row.append(yes, no);
  dialog.append(text, row);
  dialog.className = "stack";
  dialog.setAttribute("aria-label", form.dataset.confirm);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  no.focus();
}

// -- drafts -------------------------------------------------------------------------------------------------------

function store(key, value) {
  try { if (value) localStorage.setItem(key, value); else localStorage.removeItem(key); } catch { /* a private window */ }
}
function stored(key) { try { return localStorage.getItem(key); } catch { return null; } }

for (const form of document.querySelectorAll("form[data-draft]")) {
  const key = `mam-draft ${document.body.dataset.base} ${form.dataset.draft}`;
  const field = form.querySelector("textarea");
  if (!field) continue;
  if (!field.value && stored(key)) field.value = stored(key);
  field.addEventListener("input", () => store(key, field.value));
  form.addEventListener("submit", (event) => { if (!event.submitter?.hasAttribute("formaction")) store(key, ""); });
}

// -- filters --------------------------------------------------------------------------------------------------------

for (const form of document.querySelectorAll("form[data-auto]")) {
  form.querySelector("[data-go]").hidden = true;
  form.addEventListener("change", () => form.requestSubmit());
  form.addEventListener("formdata", ({ formData }) => { for (const [name, value] of [...formData]) if (!value) formData.delete(name); });
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches?.(".pick")) return;
  const count = document.querySelectorAll(".pick:checked").length;
  const words = document.querySelector("[data-picked]");
  if (words) words.textContent = count === 1 ? "1 job selected" : `${count} jobs selected`;
});
