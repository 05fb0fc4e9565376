// The service worker: shows what the server pushes, and opens the job on a click. It caches nothing.
const WORDS = { question: "A job asks", failure: "A job failed", test: "Notifications arrive here" };

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => event.waitUntil(tell(read(event))));

function read(event) {
  try { return event.data.json(); } catch { return {}; }
}

async function tell({ kind, job }) {
  const id = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(job) ? job : "";
  await self.registration.showNotification(WORDS[kind] || "Something needs you", {
    body: id ? `Job ${id.slice(0, 8)}` : "", tag: `${kind} ${id}`, icon: "static/icon-192.png", data: { path: id ? `jobs/${id}` : "" },
  });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(new URL(event.notification.data?.path || "", self.registration.scope).href));
});

// A tab that is open goes there; otherwise a new one does.
async function open(address) {
  const [tab] = await self.clients.matchAll({ type: "window" });
  if (!tab) return self.clients.openWindow(address);
  const there = await tab.navigate(address);
  return (there || tab).focus();
}
