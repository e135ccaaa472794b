// The key is kept by this tab, and for this host and port alone: it is not in the address bar, and a
// reload, which the server refuses for want of it, asks again with it.
const key = new URLSearchParams(location.search).get("key");
const kept = sessionStorage.getItem("key");
const terminal = document.getElementById("terminal");
const SMALLEST = 6;
const LARGEST = 72;
let xterm = null;

if (terminal) {
  sessionStorage.setItem("key", key);
  history.replaceState(null, "", "/");
  start();
} else if (key === null && kept !== null) {
  location.replace(`/?key=${kept}`);
}

function start() {
  terminal.dataset.sessionWebsocketUrl = `ws://${location.host}/ws/${terminal.dataset.token}`;
  const styles = ["16px", "italic 16px"];
  const fonts = styles.map((style) => document.fonts.load(`${style} "Roboto Mono"`, "M…↻⤷"));
  addEventListener("load", async () => {
    // textual.js starts at this event, and would measure its cells in the font that is there.
    const begin = onload;
    onload = null;
    await Promise.allSettled(fonts);
    xterm = made(begin);
    if (!xterm) return;
    // What no font above has is drawn as wide as its cell.
    xterm.options.rescaleOverlappingGlyphs = true;
    addEventListener("keydown", resized, { capture: true });
  });
  new MutationObserver((_, watch) => {
    if (!document.body.classList.contains("-first-byte")) return;
    watch.disconnect();
    document.querySelector(".xterm-helper-textarea")?.focus();
  }).observe(document.body, { attributes: true });
}

// The terminal that textual.js makes in `begin`. It keeps it in a property of an object of its own,
// and gives no other way to it.
function made(begin) {
  let found = null;
  Object.defineProperty(Object.prototype, "terminal", {
    configurable: true,
    set(value) {
      found = value;
      Object.defineProperty(this, "terminal", { value, configurable: true, writable: true });
    },
  });
  begin();
  delete Object.prototype.terminal;
  return found;
}

// The browser's keys for zooming change the font size.
function resized(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
  const size = Number(xterm.options.fontSize);
  const given = Number(terminal.dataset.fontSize);
  const wanted = { "+": size + 1, "=": size + 1, "-": size - 1, 0: given }[event.key];
  if (wanted === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  xterm.options.fontSize = Math.min(Math.max(wanted, SMALLEST), LARGEST);
  onresize();
}
