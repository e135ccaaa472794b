"use strict";
// Draws the screens of the document. Text of a trace becomes text nodes, nothing else.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const panels = data.panels.map((one) => {
    const known = { name: one.pane, subject: "", right: [], rows: [], keyed: [], still: 0, left: 0, zooms: [], ...one };
    known.refs = one.refs || known.rows.map(() => 0);
    known.when = one.when || known.rows.map(() => 0);
    known.folds = one.folds || known.rows.map(() => -1);
    [known.drawn, known.scale, known.shows, known.nodes] = one.picture || [];
    return known;
  });
  const { rows, tabs, lights, stops, puzzles, conditions } = data;
  const places = data.places.map(([p, c, m, o]) => ({ p, c, m: data.edges[m], o: data.edges[o] }));
  const screens = data.screens.map(([arrangement, c, header, b, lit, own]) => {
    const { name, top, columns, focus } = data.arrangements[arrangement];
    const next = own.map((place) => places[place]).values();
    const take = () => next.next().value;
    return {
      a: name, c, b, h: data.headers[header], l: data.lit[lit], f: focus, s: take(), t: top ? take() : null,
      k: columns.map(([share, slots]) => [share, slots.map((part) => [part, take()])]),
    };
  });
  const byId = (id) => document.getElementById(id);
  const state = { key: -1, ref: 0, lit: {}, back: [], stop: -1, puzzle: -1, guesses: [], open: new Set() };

  const SELECTED = new Set(["source", "source-break", "graph", "picture"]);

  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text) element.textContent = text;
    return element;
  };
  const fill = (element, spans) => {
    for (let i = 0; i < spans.length; i += 2) element.append(make("span", "r" + spans[i], spans[i + 1]));
    return element;
  };
  // The header is made for one width: the gap in it takes what this window has.
  const line = (spans) => {
    const element = fill(make("div", "line"), spans);
    for (const span of element.children) if (/^ {2,}$/.test(span.textContent)) span.className = "gap";
    return element;
  };

  // Other panels that a slot can show: one file, graph or kernel each.
  const others = new Map();
  const slot = (screen, pane) => screen.a + "|" + screen.c + "|" + pane;
  const placesOf = (screen) => [
    screen.s, ...(screen.t ? [screen.t] : []), ...screen.k.flatMap(([, slots]) => slots.map(([, place]) => place)),
  ];
  const past = new Set([...stops.map(([, key]) => key), ...puzzles.flatMap(([, keys]) => Object.values(keys))]);
  for (const [key, screen] of screens.entries()) {
    if (past.has(key)) continue; // and a screen of the past shows nothing of the rest
    for (const place of placesOf(screen)) {
      const name = slot(screen, panels[place.p].pane);
      if (!others.has(name)) others.set(name, new Map());
      if (!others.get(name).has(place.p)) others.get(name).set(place.p, place);
    }
  }

  const litOf = (ref) => {
    const found = { [ref]: 1 };
    for (const one of lights[ref] || []) found[Math.abs(one)] = one > 0 ? 1 : 2;
    return found;
  };
  // What is folded: a row is seen where its condition holds.
  const holds = (when) => {
    if (!when) return true;
    const [fold, opened, also] = conditions[when - 1];
    return state.open.has(fold) === (opened === 1) && holds(also);
  };
  const seen = (panel, index) => holds(panel.when[index]);
  const unfold = (pane) => {
    const { panel, cursor } = pane.model;
    const fold = panel.folds[cursor];
    if (!state.open.delete(fold)) state.open.add(fold);
    for (const one of panes()) {
      cover(one);
      one.model.cursor = inSight(one.model.panel, one.model.cursor);
      paint(one);
    }
    reveal(pane, pane.model.cursor);
  };
  // A row, or, where it is folded, the one that says so.
  const inSight = (panel, index) => {
    if (index < 0 || index >= panel.rows.length || seen(panel, index)) return index;
    const [fold] = conditions[panel.when[index] - 1];
    const found = panel.keyed.find((one) => panel.folds[one] === fold && seen(panel, one));
    return found === undefined ? -1 : found;
  };
  const cover = (pane) => {
    const { panel, inner } = pane.model;
    panel.when.forEach((when, index) => { if (when) inner.children[index].classList.toggle("folded", !holds(when)); });
  };

  // What a row shows; a block of a picture shows several nodes.
  const shownBy = (panel, index) => panel.drawn ? panel.shows[index] : [panel.refs[index]];
  const isLit = (panel, index, lit) => seen(panel, index) && shownBy(panel, index).some((ref) => ref && lit[ref]);
  const countLit = (panel, lit) => panel.refs.reduce((sum, _, index) => sum + (isLit(panel, index, lit) ? 1 : 0), 0);
  const firstLit = (panel, exact) => panel.refs.findIndex(
    (_, index) => seen(panel, index) && shownBy(panel, index).some((ref) => ref && (exact ? state.lit[ref] === 1 : state.lit[ref])));

  const tint = (element, panel, index) => {
    const lit = shownBy(panel, index).filter((ref) => ref && state.lit[ref]);
    element.classList.remove("t-selected", "t-exact", "t-inferred");
    if (!lit.length) return;
    const exact = lit.some((ref) => state.lit[ref] === 1);
    element.classList.add(lit.includes(state.ref) ? "t-selected" : exact ? "t-exact" : "t-inferred");
  };

  const drawRow = (number, keyed) => {
    const [gutter, body, right, ground] = rows[number];
    const element = make("div", "row" + (keyed ? " keyed" : ""));
    element.append(fill(make("span", "gutter"), gutter));
    element.append(fill(make("span", "body" + ["", " t-added", " t-removed"][ground]), body));
    if (right.length) element.append(fill(make("span", "right"), right));
    return element;
  };

  // A picture: blocks in cells of the page's font, and their lines behind them.
  const drawPicture = (inner, panel) => {
    const [width, height, boxes, edges] = panel.drawn;
    inner.classList.add("drawing");
    inner.style.width = width + "ch";
    inner.style.height = height * 1.4 + "em";
    boxes.forEach(([x, y, across, down, role], index) => {
      const block = make("div", "row keyed block r" + role);
      Object.assign(block.style, { left: x + "ch", top: y * 1.4 + "em", width: across + "ch", height: down * 1.4 + "em" });
      rows[panel.rows[index]][1].forEach((said, at) => { if (at % 2) block.append(make("div", "", said)); });
      inner.append(block);
    });
    const svg = byId("lines").content.firstElementChild.cloneNode(true);
    svg.setAttribute("viewBox", "0 0 " + width + " " + 2 * height);
    Object.assign(svg.style, { width: width + "ch", height: height * 1.4 + "em" });
    svg.firstElementChild.setAttribute("d", edges.map(wayOf).join(""));
    inner.append(svg);
  };
  const wayOf = ([, , x, y, ...moves]) =>
    x === undefined ? "" : "M" + (x + 0.5) + " " + y + moves.map((by, at) => (at % 2 ? "h" : "v") + by).join("");
  const paintWay = (inner, panel, cursor) => {
    const own = panel.drawn[3].filter(([from, to]) => from === cursor || to === cursor);
    inner.querySelector(".way").setAttribute("d", own.map(wayOf).join(""));
  };

  const drawPane = (place, name) => {
    const panel = panels[place.p];
    const pane = make("section", "pane" + (name ? " " + name : ""));
    pane.tabIndex = 0;
    pane.dataset.pane = panel.pane;
    const title = make("div", "title t-title");
    title.append(make("span", "name", panel.name), make("span", "", panel.subject ? "  " + panel.subject : ""));
    if (panel.right.length) title.append(fill(make("span", "right"), panel.right));
    const inner = make("div", "inner");
    const keyed = new Set(panel.keyed);
    if (panel.zooms.length) {
      for (const [sign, by] of [["−", -1], ["+", 1]]) {
        const button = make("button", "", sign);
        button.tabIndex = -1;
        button.setAttribute("aria-label", by > 0 ? "show more" : "show less");
        button.addEventListener("click", (event) => { event.stopPropagation(); zoom(by, pane); });
        title.append(button);
      }
    }
    if (panel.drawn) drawPicture(inner, panel);
    else panel.rows.forEach((number, index) => inner.append(drawRow(number, keyed.has(index))));
    if (panel.left) inner.append(make("div", "note", panel.left + " more rows are in the trace: tcw open"));
    const scroll = make("div", "rows");
    scroll.append(inner);
    pane.append(title, scroll);
    pane.model = { place, panel, keyed, cursor: inSight(panel, place.c), inner, scroll };
    cover(pane);
    pane.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      focus(pane);
      if (!row) return;
      select(pane, owner(pane, [...inner.children].indexOf(row)));
      if (foldAt(pane) >= 0) unfold(pane);
    });
    pane.addEventListener("dblclick", () => { if (foldAt(pane) < 0) open(pane); });
    pane.addEventListener("focus", () => activate(pane));
    return pane;
  };

  const foldAt = (pane) => (pane.model.cursor < 0 ? -1 : pane.model.panel.folds[pane.model.cursor]);
  // The row that a row belongs to: itself, or the nearest above it that can be selected.
  const owner = (pane, index) => {
    const { keyed, panel } = pane.model;
    while (index >= 0 && !(keyed.has(index) && seen(panel, index))) {
      if (seen(panel, index) && !rows[panel.rows[index]][1].length) return -1;
      index -= 1;
    }
    return index;
  };

  const panes = () => [...document.querySelectorAll("#middle .pane")];
  const activate = (pane) => {
    for (const one of panes()) one.classList.toggle("active", one === pane);
  };
  const focus = (pane) => {
    if (document.activeElement !== pane) pane.focus({ preventScroll: true });
    activate(pane);
  };
  const active = () => document.querySelector("#middle .pane.active") || panes()[1] || panes()[0];

  const paint = (pane) => {
    const { panel, inner, cursor } = pane.model;
    panel.rows.forEach((_, index) => {
      const element = inner.children[index];
      tint(element, panel, index);
      element.classList.toggle("cursor", index === cursor);
    });
    if (panel.drawn) paintWay(inner, panel, cursor);
  };
  const reveal = (pane, index) => {
    const element = pane.model.inner.children[index];
    if (!element || !seen(pane.model.panel, index)) return;
    const { scroll, inner, panel } = pane.model;
    if (panel.drawn) {
      const x = inner.offsetLeft - scroll.offsetLeft + element.offsetLeft, y = inner.offsetTop - scroll.offsetTop + element.offsetTop;
      if (y < scroll.scrollTop || y + element.offsetHeight > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = y - scroll.clientHeight / 3;
      if (x < scroll.scrollLeft || x + element.offsetWidth > scroll.scrollLeft + scroll.clientWidth) {
        scroll.scrollLeft = x + element.offsetWidth / 2 - scroll.clientWidth / 2;
      }
      return;
    }
    const top = element.offsetTop - scroll.offsetTop;
    if (top < scroll.scrollTop || top + element.offsetHeight > scroll.scrollTop + scroll.clientHeight) {
      scroll.scrollTop = Math.max(0, top - scroll.clientHeight / 3);
    }
  };

  // Light the counterparts of a ref; a slot that shows none of them shows the panel with the most.
  const light = (ref, from) => {
    state.ref = ref;
    state.lit = litOf(ref);
    for (const pane of panes()) {
      if (pane !== from && !past.has(state.key) && !countLit(pane.model.panel, state.lit)) {
        let best = null, most = 0;
        for (const place of (others.get(slot(screens[state.key], pane.model.panel.pane)) || new Map()).values()) {
          const count = countLit(panels[place.p], state.lit);
          if (count > most) [best, most] = [place, count];
        }
        if (best) replacePane(pane, best);
      }
    }
    if (!past.has(state.key)) byId("bar").replaceChildren(); // it tells of another selection, and so do some titles
    for (const pane of panes()) {
      paint(pane);
      const right = pane.querySelector(".title .right");
      if (right && SELECTED.has(pane.dataset.pane)) right.textContent = countLit(pane.model.panel, state.lit) + " lit";
      if (pane === from) continue;
      const own = pane.model.panel.refs.findIndex((one, index) => one === ref && seen(pane.model.panel, index));
      const first = own >= 0 ? own : firstLit(pane.model.panel, true);
      if (first >= 0) reveal(pane, first);
    }
  };

  const select = (pane, index) => {
    if (index < 0) return;
    const { place, panel } = pane.model;
    pane.model.cursor = index;
    const next = place.m[index];
    if (next !== undefined && next !== state.key) {
      show(next, { keep: panel.pane, index });
      return;
    }
    if (panel.drawn) tell(panel, index);
    if (panel.refs[index]) light(panel.refs[index], pane);
    else paint(pane);
    reveal(pane, index);
  };
  // What is known of a block stands beside the picture.
  const tell = (panel, index) => {
    const pane = panes().find((one) => one.dataset.pane === "node");
    if (pane && panel.nodes.length) replacePane(pane, { p: panel.nodes[index], c: -1, m: {}, o: {} });
  };
  const replacePane = (pane, place) => {
    const fresh = drawPane(place, pane.classList.contains("top") ? "top" : "");
    fresh.style.flex = pane.style.flex;
    fresh.style.maxHeight = pane.style.maxHeight;
    if (pane.id) fresh.id = pane.id;
    pane.replaceWith(fresh);
  };
  const open = (pane) => {
    if (foldAt(pane) >= 0) { unfold(pane); return; }
    const next = pane.model.place.o[pane.model.cursor];
    if (next !== undefined) { state.back.push(state.key); show(next); return; }
    const ref = pane.model.panel.refs[pane.model.cursor];
    if (pane.dataset.pane === "node") { along("fusion"); return; }
    if (!ref) return;
    if (pane.model.panel.drawn) { enter(pane, ref); return; }
    const all = panes();
    const at = all.indexOf(pane);
    const other = [...all.slice(at + 1), ...all.slice(0, at)].find((one) => countLit(one.model.panel, state.lit));
    if (other) {
      focus(other);
      const first = firstLit(other.model.panel, false);
      other.model.cursor = first;
      paint(other);
      reveal(other, first);
    }
  };

  // Into a block: its operations, else the source.
  const enter = (pane, ref) => {
    const { panel, cursor } = pane.model;
    const inside = panel.shows[cursor][1];
    const key = state.key;
    if (panel.scale === 0 && panel.shows[cursor].length > 2 && panel.zooms.length) {
      zoom(1, pane);
      const next = panes().find((one) => one.model.panel.drawn);
      if (next) select(next, next.model.panel.shows.findIndex((refs) => refs.includes(inside)));
      if (state.key !== key) state.back.push(key);
    } else if (along("source")) light(ref, null);
  };
  // Another view of the same compile; whether there is one.
  const along = (name) => {
    const { c } = screens[state.key];
    const next = screens.findIndex((one, number) => one.a === name && one.c === c && !past.has(number));
    if (next < 0 || past.has(state.key)) return false;
    state.back.push(state.key);
    show(next);
    return true;
  };

  // `top`: where a reader begins, the main list is seen from its first row, wherever the cursor is.
  const show = (key, kept, top) => {
    const screen = screens[key];
    const scrolled = new Map(panes().map((pane) => [pane.dataset.pane, [pane.model.panel, pane.model.scroll.scrollTop]]));
    state.key = key;
    state.ref = 0;
    state.lit = {};
    for (const one of screen.l) state.lit[Math.abs(one)] = one > 0 ? 1 : 2;
    byId("header").replaceChildren(line(screen.h));
    byId("bar").replaceChildren(...screen.b.map((number) => drawRow(number, false)));
    const spine = drawPane(screen.s, "");
    spine.id = "spine";
    const stage = make("div", "");
    stage.id = "stage";
    if (screen.t) stage.append(drawPane(screen.t, "top"));
    const columns = make("div", "");
    columns.id = "columns";
    for (const [share, slots] of screen.k) {
      const column = make("div", "column");
      column.style.flex = share + " 1 0";
      for (const [part, place] of slots) {
        const pane = drawPane(place, "");
        pane.style.flex = part ? part + " 1 0" : "0 1 auto";
        // rows that need more than this leave the panes below their room
        if (!part && slots.length > 1) pane.style.maxHeight = "50%";
        column.append(pane);
      }
      columns.append(column);
    }
    stage.append(columns);
    byId("middle").replaceChildren(spine, stage);
    for (const pane of panes()) {
      paint(pane);
      const known = scrolled.get(pane.dataset.pane);
      if (known) pane.model.scroll.scrollTop = known[1];
      if (pane.model.panel.still || (top && pane.dataset.pane === screen.f)) continue;
      const lit = firstLit(pane.model.panel, true);
      reveal(pane, lit >= 0 ? lit : pane.model.cursor);
    }
    const wanted = kept ? kept.keep : screen.f;
    const pane = panes().find((one) => one.dataset.pane === wanted) || panes()[1];
    if (kept) { pane.model.cursor = inSight(pane.model.panel, kept.index); paint(pane); reveal(pane, pane.model.cursor); }
    focus(pane);
    for (const button of byId("tabs").children) {
      button.setAttribute("aria-selected", String(button.dataset.tab === screen.a));
    }
  };

  // In time: a slider over the stops.
  const slider = make("input", "");
  const stopped = make("span", "");
  const goTo = (stop) => {
    if (!stops.length) return;
    state.puzzle = -1;
    state.stop = Math.max(0, Math.min(stops.length - 1, stop));
    slider.value = String(state.stop);
    show(stops[state.stop][1]);
    stopped.textContent = state.stop + 1 + " of " + stops.length + "  " + stops[state.stop][0];
  };
  const live = () => { state.stop = state.puzzle = -1; stopped.textContent = ""; slider.value = String(stops.length - 1); };

  // Predict: a pair is shown, and how it was decided once the reader has chosen.
  const ask = (number) => {
    if (number >= puzzles.length) { finish(); return; }
    state.stop = -1;
    state.puzzle = number;
    state.told = false;
    show(puzzles[number][1].ask);
    stopped.textContent = "question " + (number + 1) + " of " + puzzles.length + score();
  };
  const score = () => {
    const scored = state.guesses.filter((one) => one !== null);
    return scored.length ? "   " + scored.filter(Boolean).length + " of " + scored.length + " right" : "";
  };
  const guess = (answer) => {
    const [truth, keys] = puzzles[state.puzzle];
    state.guesses.push(answer === "skip" ? null : answer === truth);
    state.told = true;
    show(keys[answer]);
    stopped.textContent = "question " + (state.puzzle + 1) + " of " + puzzles.length + score();
  };
  const predict = () => { if (puzzles.length) { state.guesses = []; ask(0); } };
  const begin = () => show(Object.values(tabs)[0], null, true);
  const finish = () => { const words = score(); live(); begin(); stopped.textContent = "predicted:" + (words || "   no guess"); };
  const ANSWERS = { y: "fuse", n: "apart", "-": "skip" };
  const asking = (key) => {
    if (state.puzzle < 0) return false;
    if (key === "Escape") finish();
    else if (!state.told && ANSWERS[key]) guess(ANSWERS[key]);
    else if (!state.told && key === "?") show(puzzles[state.puzzle][1].hint);
    else if (state.told && (key === " " || key === "Enter")) ask(state.puzzle + 1);
    else return !["j", "k", "h", "l", "ArrowDown", "ArrowUp", "PageDown", "PageUp", "t"].includes(key);
    return true;
  };

  const theme = (name) => { document.documentElement.dataset.theme = name; };
  const turn = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  const tab = (by) => {
    const names = Object.keys(tabs);
    const at = Math.max(0, names.indexOf(screens[state.key].a));
    go(names[(at + by + names.length) % names.length]);
  };
  const go = (name) => { live(); state.back.push(state.key); show(tabs[name]); };
  const back = () => {
    if (state.stop >= 0) { live(); begin(); return; }
    if (state.back.length) show(state.back.pop());
  };
  const move = (by, pane = active()) => {
    const { panel, cursor } = pane.model;
    const keyed = panel.keyed.filter((index) => seen(panel, index));
    if (!keyed.length) { pane.model.scroll.scrollTop += by * 20; return; }
    const at = keyed.indexOf(cursor);
    const next = at < 0 ? 0 : Math.max(0, Math.min(keyed.length - 1, at + by));
    select(pane, keyed[next]);
  };
  const next = (by) => {
    const all = panes();
    focus(all[(all.indexOf(active()) + by + all.length) % all.length]);
  };

  // More or less of the graph in a picture.
  const zoom = (by, from = active()) => {
    const pane = from.model.panel.zooms.length ? from : panes().find((one) => one.model.panel.zooms.length);
    if (!pane) return;
    const { zooms, scale } = pane.model.panel;
    const next = zooms[Math.max(0, Math.min(zooms.length - 1, scale + by))];
    if (next !== undefined && next !== state.key) show(next);
  };

  // In what the view is a list of: the next difference, pair, cause or break.
  const ahead = (by) => {
    const pane = panes().find((one) => one.dataset.pane === screens[state.key].f);
    if (pane) { focus(pane); move(by, pane); }
  };

  const press = (key) => {
    if (asking(key)) return true;
    if (keys[key]) keys[key]();
    return Boolean(keys[key]);
  };
  const keys = {
    Tab: () => next(1),
    n: () => ahead(1), N: () => ahead(-1),
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
    PageDown: () => move(20), PageUp: () => move(-20), Home: () => move(-1e9), End: () => move(1e9),
    h: () => { active().model.scroll.scrollLeft -= 60; }, l: () => { active().model.scroll.scrollLeft += 60; },
    Enter: () => open(active()), Escape: back, Backspace: back,
    "+": () => zoom(1), "-": () => zoom(-1),
    "]": () => tab(1), "[": () => tab(-1), t: turn, p: predict,
    "}": () => goTo(state.stop + 1), "{": () => goTo(state.stop < 0 ? stops.length - 1 : state.stop - 1),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Tab") { event.preventDefault(); next(event.shiftKey ? -1 : 1); return; }
    if (event.target === slider && event.key.startsWith("Arrow")) return;
    if (state.puzzle < 0 && event.target.tagName === "BUTTON" && event.key === "Enter") return;
    if (press(event.key)) event.preventDefault();
  });
  const NAMED = { "⏎": "Enter", esc: "Escape", space: " ", tab: "Tab" };
  const clicked = (shown) => press(NAMED[shown] || shown);
  byId("bar").addEventListener("click", (event) => {
    if (event.target.matches(".r" + data.button)) clicked(event.target.textContent.trim().split(" ")[0]);
  });

  for (const name of Object.keys(tabs)) {
    const button = make("button", "", name);
    button.dataset.tab = name;
    button.addEventListener("click", () => go(name));
    byId("tabs").append(button);
  }
  if (stops.length > 1) {
    slider.type = "range";
    slider.min = "0";
    slider.max = slider.value = String(stops.length - 1);
    slider.setAttribute("aria-label", "replay");
    slider.addEventListener("input", () => goTo(Number(slider.value)));
    byId("replay").append(make("span", "", "replay "), slider);
  }
  if (puzzles.length) {
    const button = make("button", "", "predict " + puzzles.length + (puzzles.length === 1 ? " fusion" : " fusions"));
    button.addEventListener("click", predict);
    byId("replay").append(button);
  }
  byId("replay").append(stopped);

  const said = [["j k", "row"], ["tab", "pane"], ["⏎", "open"], ["n N", "next, previous"], ["esc", "back"], ["[ ]", "view"], ["+ -", "more or less of a graph"], ...(stops.length > 1 ? [["{ }", "in time"]] : []), ...(puzzles.length ? [["p", "predict"]] : []), ["t", "light or dark"]];
  for (const [shown, words] of said) {
    const hint = make("span", "hint");
    for (const key of shown.split(" ")) {
      const letter = make("b", "", key + " ");
      letter.addEventListener("click", (event) => { event.stopPropagation(); clicked(key); });
      hint.append(letter);
    }
    hint.append(words);
    hint.addEventListener("click", () => clicked(shown.split(" ")[0]));
    byId("foot").append(hint);
  }
  if (data.said) byId("foot").append(make("span", "", data.said));

  const PAPER = 120; // cells across a page
  window.addEventListener("beforeprint", () => {
    const all = Object.values(tabs).flatMap((key) => placesOf(screens[key]));
    const once = new Map();
    for (const place of all) {
      const { pane, subject } = panels[place.p];
      const name = pane === "source" ? subject : place.p; // once a file, whatever is lit in it
      if (!once.has(name)) once.set(name, place);
    }
    state.printed = document.documentElement.dataset.theme;
    theme("light");
    byId("printed").replaceChildren(...[...once.values()].map((place) => drawPane(place, "")));
    for (const drawing of document.querySelectorAll("#printed .drawing")) {
      drawing.style.zoom = Math.min(1, PAPER / parseFloat(drawing.style.width));
    }
  });
  window.addEventListener("afterprint", () => { theme(state.printed); byId("printed").replaceChildren(); });

  if (matchMedia("(prefers-color-scheme: light)").matches) theme("light");
  begin();
})();
