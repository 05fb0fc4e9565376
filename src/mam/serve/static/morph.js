// Makes an element like another one, and keeps what has not changed: focus, scroll positions, open folds and typed text.
const KEPT = new Set(["open", "data-busy"]);

const keyOf = (node) => (node.nodeType === 1 ? node.dataset.key || node.id || "" : "");

export function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to.cloneNode(true));
    return;
  }
  if (from.nodeType !== 1) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  if (from.nodeName === "TIME" && from.dateTime === to.dateTime) return;
  if (isHeld(from)) return;
  attributes(from, to);
  if (from.nodeName === "TEXTAREA" || from.nodeName === "INPUT") return;
  children(from, to);
}

// A form in which someone types is left alone.
function isHeld(element) {
  if (!element.matches("form")) return false;
  return [...element.querySelectorAll("textarea, input:not([type=hidden]):not([type=checkbox])")].some(
    (field) => field === document.activeElement || field.value !== field.defaultValue);
}

function attributes(from, to) {
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !KEPT.has(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value && !KEPT.has(name)) from.setAttribute(name, value);
}

function children(from, to) {
  const keyed = new Map();
  for (const child of from.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted);
    const known = key ? keyed.get(key) : null;
    if (known) {
      keyed.delete(key);
      if (known !== at) from.insertBefore(known, at); else at = at.nextSibling;
      morph(known, wanted);
    } else if (!key && at && !keyOf(at) && at.nodeName === wanted.nodeName) {
      const next = at.nextSibling;
      morph(at, wanted);
      at = next;
    } else {
      const made = wanted.cloneNode(true);
      if (made.nodeType === 1 && key) made.classList.add("new");
      from.insertBefore(made, at);
    }
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
  for (const left of keyed.values()) left.remove();
}

// Rows keep their places: known rows are updated, and the number of the others is returned.
export function morphInPlace(from, to) {
  let others = 0;
  const lists = new Map([...to.querySelectorAll("[data-list] > [data-key]")].map((row) => [row.dataset.key, row]));
  const seen = new Set();
  for (const row of from.querySelectorAll("[data-list] > [data-key]")) {
    const wanted = lists.get(row.dataset.key);
    if (wanted) { seen.add(row.dataset.key); morph(row, wanted); } else others += 1;
  }
  for (const key of lists.keys()) if (!seen.has(key)) others += 1;
  return others;
}
