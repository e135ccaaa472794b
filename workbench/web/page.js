// The key is kept by this tab, and for this host and port alone: it is not in the address bar, and a
// reload, which the server refuses for want of it, asks again with it.
const address = new URL(location.href);
const key = address.searchParams.get("key");
const terminal = document.getElementById("terminal");

if (terminal) {
  sessionStorage.setItem("key", key);
  address.searchParams.delete("key");
  history.replaceState(null, "", address);
  start();
} else if (key === null && sessionStorage.getItem("key") !== null) {
  address.searchParams.set("key", sessionStorage.getItem("key"));
  location.replace(address);
}

function start() {
  const size = address.searchParams.get("fontsize");
  if (size) terminal.dataset.fontSize = size;
  terminal.dataset.sessionWebsocketUrl = `ws://${location.host}/ws/${terminal.dataset.token}`;
  new MutationObserver((_, watch) => {
    if (!document.body.classList.contains("-first-byte")) return;
    watch.disconnect();
    document.querySelector(".xterm-helper-textarea")?.focus();
  }).observe(document.body, { attributes: true });
}
