// Comments on lines of a diff. They stay in this browser until they are sent, all as one continuation. Each is bound to
// the content of the file that it was made on; when the file has another content, it is shown as outdated.
let section = null, key = "", comments = [];

function load(name) { try { return JSON.parse(localStorage.getItem(name) || "[]"); } catch { return []; } }
function save() { try { if (comments.length) localStorage.setItem(key, JSON.stringify(comments)); else localStorage.removeItem(key); } catch { /* a private window */ } }

if (new URLSearchParams(location.search).get("done") === "review") {
  try { const sent = sessionStorage.getItem("mam-review-sent"); if (sent) localStorage.removeItem(sent); sessionStorage.removeItem("mam-review-sent"); } catch { /* nothing was kept */ }
}

function make(tag, properties = {}, ...inner) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...inner);
  return element;
}

function rowOf(comment) {
  const file = [...section.querySelectorAll("details[data-path]")].find((one) => one.dataset.path === comment.path);
  const row = file && [...file.querySelectorAll("tr[data-line]")].find((one) => one.dataset.line === String(comment.line) && codeOf(one) === comment.code);
  return { file, row };
}

const codeOf = (row) => (row.classList.contains("add") ? "+" : row.classList.contains("del") ? "-" : " ") + row.querySelector("td.c").textContent;

function draw() {
  for (const old of section.querySelectorAll("tr.remark")) old.remove();
  comments.forEach((comment, at) => {
    const { file, row } = rowOf(comment);
    const isOutdated = !row || file.dataset.blob !== comment.blob;
    const line = make("tr", { className: "remark" }, Object.assign(document.createElement("td"), { colSpan: 4 }));
    line.firstChild.append(box(comment, at, isOutdated));
    if (row) row.after(line); else (file?.querySelector("tbody") || section.querySelector("tbody")).prepend(line);
  });
  section.querySelector("[data-review-form]").classList.toggle("has-comments", comments.length > 0);
  const count = section.querySelector("[data-comment-count]"), hint = section.querySelector("[data-review-hint]");
  if (count) count.textContent = comments.length ? `${comments.length} comment${comments.length === 1 ? "" : "s"}` : "Review";
  if (hint) hint.textContent = comments.length ? "not sent yet" : "Click a line number to comment.";
}

function box(comment, at, isOutdated) {
  const text = make("textarea", { value: comment.text, rows: 2, placeholder: "What should change here?" });
  text.setAttribute("aria-label", `Comment on line ${comment.line} of ${comment.path}`);
  text.addEventListener("input", () => { comment.text = text.value; save(); });
  const drop = make("button", { type: "button", className: "quiet-button", textContent: "Remove" });
  drop.addEventListener("click", () => { comments.splice(at, 1); save(); draw(); });
  const where = make("span", { className: "dim small", textContent: isOutdated ? `line ${comment.line}, of an earlier state of the file` : `line ${comment.line}, not sent yet` });
  return make("div", { className: `card remark-box${isOutdated ? " outdated" : ""}` }, text, make("div", { className: "row" }, where, drop));
}

function comment(row) {
  const file = row.closest("details[data-path]");
  const made = { path: file.dataset.path, blob: file.dataset.blob, line: Number(row.dataset.line), code: codeOf(row), text: "" };
  const known = comments.find((one) => one.path === made.path && one.line === made.line && one.code === made.code);
  if (!known) { comments.push(made); draw(); }
  row.nextElementSibling?.querySelector("textarea")?.focus();
}

// One line number of each file is a stop of the tab key; the arrows move between the others.
function wireLines() {
  for (const table of section.querySelectorAll("table.lines")) {
    let isFirst = true;
    for (const row of table.querySelectorAll("tr[data-line]")) {
      const cell = row.querySelector("td.n:not(.old) > span");
      const button = make("button", { type: "button", textContent: cell.textContent || "\u00a0", tabIndex: isFirst ? 0 : -1 });
      button.setAttribute("aria-label", `Comment on line ${row.dataset.line}`);
      cell.replaceWith(button);
      isFirst = false;
    }
  }
  section.addEventListener("click", ({ target }) => { const button = target.closest?.("td.n button"); if (button) comment(button.closest("tr")); });
  section.addEventListener("keydown", (event) => {
    if (!event.target.matches?.("td.n button") || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const all = [...event.target.closest("table").querySelectorAll("td.n button")];
    all[all.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  });
}

// Also after the diff of a job has appeared on its page.
export function wireReview() {
  section = document.querySelector("[data-review]");
  if (!section) return;
  key = `mam-review ${document.body.dataset.base} ${section.dataset.review}`;
  comments = load(key);
  wireLines();
  draw();
  section.querySelector("[data-review-form]").addEventListener("submit", (event) => {
    const place = section.querySelector("[data-comments]");
    const written = comments.filter((one) => one.text.trim());
    if (!written.length && !section.querySelector("#remark")?.value.trim()) {
      event.preventDefault();
      section.querySelector("[data-remark]").open = true;
      section.querySelector("#remark").focus();
      return;
    }
    place.replaceChildren(...written.flatMap((one) => ["path", "line", "code", "blob", "text"].map((name) => make("input", { type: "hidden", name, value: one[name] }))));
    try { sessionStorage.setItem("mam-review-sent", key); } catch { /* the drafts stay */ }
  });
}
wireReview();
