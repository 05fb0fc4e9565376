// Notifications of this browser. It asks for permission on a click alone.
const box = document.getElementById("push");
const CAN = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

function say(text, canAct) {
  box.querySelector("[data-push-state]").textContent = text;
  box.querySelector("[data-push-acts]").hidden = !canAct;
}

function bytes(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}

async function post(fields) {
  const body = new URLSearchParams({ csrf: box.querySelector("[name=csrf]")?.value || "", ...fields });
  const answer = await fetch(box.dataset.action, { method: "POST", body });
  if (answer.ok) return answer;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  throw new Error(page.querySelector("main p")?.textContent || `the server answered ${answer.status}`);
}

async function turnOn() {
  if (await Notification.requestPermission() !== "granted") return show();
  const worker = await register();
  const key = await (await post({ verb: "key" })).text();
  const old = await worker.pushManager.getSubscription();
  if (old) await old.unsubscribe(); // it may accept another key
  const made = (await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) })).toJSON();
  await post({ verb: "subscribe", endpoint: made.endpoint, p256dh: made.keys.p256dh, auth: made.keys.auth, key });
  location.reload();
}

async function register() {
  await navigator.serviceWorker.register(box.dataset.worker);
  return navigator.serviceWorker.ready;
}

async function show() {
  if (!CAN) return say("This browser has no notifications for pages. On an iPhone, first add the page to the home screen.", false);
  if (Notification.permission === "denied") return say("This browser refuses notifications of this page; its settings for the page allow them.", false);
  const worker = await navigator.serviceWorker.getRegistration(box.dataset.worker);
  const isOn = Notification.permission === "granted" && await worker?.pushManager.getSubscription();
  say(isOn ? "This browser has agreed to be notified. If it is not in the list below, notify it again." : "This browser is not notified.", true);
}

if (box) {
  box.querySelector("[data-push-on]").addEventListener("click", (event) => {
    event.target.disabled = true;
    turnOn().catch((error) => say(`It did not work: ${error.message}`, true)).finally(() => { event.target.disabled = false; });
  });
  show();
}
