// Writes times in the zone of the viewer. The server wrote ages and UTC.
const STEPS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// The clock of the server decides: one of this device that is wrong would make every age wrong.
let ahead = 0;

export function setServerTime(text) {
  const at = Date.parse(text || "");
  if (!Number.isNaN(at)) ahead = at - Date.now();
}

function span(seconds) {
  const [size, unit] = STEPS.find(([size]) => seconds >= size) || [1, "s"];
  return `${Math.floor(Math.max(0, seconds) / size)} ${unit}`;
}

export function writeTimes(root = document) {
  for (const element of root.querySelectorAll("time[data-form]")) {
    const at = Date.parse(element.dateTime);
    if (Number.isNaN(at)) continue;
    const passed = (Date.now() + ahead - at) / 1000, age = span(passed);
    const text = { age, ago: `${age} ago`, left: `in ${span(-passed)}`, clock: clock.format(at) }[element.dataset.form];
    if (element.textContent !== text) element.textContent = text;
    const title = exact.format(at);
    if (element.title !== title) element.title = title;
  }
}

writeTimes();
setInterval(() => { if (!document.hidden) writeTimes(); }, 10000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) writeTimes(); });
