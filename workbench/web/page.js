// The key is kept by this tab, and for this host and port alone: it is not in the address bar, and a
// reload, which the server refuses for want of it, asks again with it.
const key = new URLSearchParams(location.search).get("key");
const kept = sessionStorage.getItem("key");
const terminal = document.getElementById("terminal");

if (terminal) {
  sessionStorage.setItem("key", key);
  history.replaceState(null, "", "/");
  start();
} else if (key === null && kept !== null) {
  location.replace(`/?key=${kept}`);
}

function start() {
  terminal.dataset.sessionWebsocketUrl = `ws://${location.host}/ws/${terminal.dataset.token}`;
  const fonts = ["", "italic "].map((style) => document.fonts.load(`${style}16px "Roboto Mono"`));
  addEventListener("load", async () => {
    // textual.js starts at this event, and would measure its cells in the font that is there.
    const begin = onload;
    onload = null;
    await Promise.allSettled(fonts);
    begin();
  });
  new MutationObserver((_, watch) => {
    if (!document.body.classList.contains("-first-byte")) return;
    watch.disconnect();
    document.querySelector(".xterm-helper-textarea")?.focus();
  }).observe(document.body, { attributes: true });
}
