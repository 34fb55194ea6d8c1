// The operation that is chosen: its panel, the rows and bars that name it, its address, the search for another one.
// What is embedded is in `script.operations`, one for each side, unpacked when it is first asked for.

const panel = document.getElementById("operation"), find = document.getElementById("find"), found = document.getElementById("found");
const pageTitle = document.title, sides = new Map();
const store = (side) => {
  if (!sides.has(side)) sides.set(side, (async () => {
    const blob = document.querySelector(`script.operations[data-side="${side}"]`);
    const data = blob ? await unpack(blob.textContent) : { rows: [], pictures: [] };
    data.byName = new Map(data.rows.map((row, n) => [row.name, n]));
    return data;
  })());
  return sides.get(side);
};
const isTwo = document.querySelectorAll("script.operations").length > 1;
const hashOf = (side, name) => `#op${side === "b" ? "-b" : ""}=${encodeURIComponent(name)}`;
const nameOf = (label) => label.split(" ")[0].split("{")[0];
const chartName = (chart, n) => nameOf(chart.hlotext.data.words[chart.hlotext.data.name[n]]);
const sideOf = (element) => element.closest("[data-side]")?.dataset.side || "a";

// ---- rows and bars that name it

const rowsNaming = (side, name) => [...document.querySelectorAll("td a.op")]
  .filter((a) => a.hash === hashOf(side, name)).map((a) => a.closest("tr"));
const mark = (side, name) => {
  for (const row of document.querySelectorAll("tr.chosen")) { row.classList.remove("chosen"); row.removeAttribute("aria-current"); }
  const rows = name === undefined ? [] : rowsNaming(side, name);
  for (const row of rows) {
    row.classList.add("chosen");
    row.setAttribute("aria-current", "true");
    const box = row.closest(".scroll");
    if (!box) continue; // of the answers at the top, which are all in view
    const top = row.offsetTop - row.closest("table").tHead.offsetHeight;
    if (row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight || top < box.scrollTop) box.scrollTop = Math.max(0, top - 40);
  }
  for (const chart of document.querySelectorAll("figure.chart")) if (chart.hlotext) chart.hlotext.mark(sideOf(chart) === side ? name : undefined);
  return rows;
};
const fromChart = (chart, n, isClick) => {
  const name = chartName(chart, n), side = sideOf(chart);
  mark(side, name);
  if (isClick) location.hash = hashOf(side, name);
};

// ---- the panel

const linkTo = (side, name, shown) => { const a = make("a", shown || name); a.href = hashOf(side, name); return a; };
const heading = (text) => panel.append(make("h3", text));
const facts = (rows) => {
  const list = make("dl");
  for (const [name, value] of rows) if (value) list.append(make("dt", name), make("dd", value, name === "shape" ? "shape" : ""));
  if (list.childNodes.length) panel.append(list);
};
// Of what sends, the bytes that each device sends: those of a fusion's result are of other work as well.
const sizeOf = (row) => row.sent || (row.bytes ? bytes(row.bytes) : row.opcode);
const neighbours = (data, side, title, members, isTimed = false) => {
  if (!members.length) return;
  heading(title);
  const list = make("ul");
  for (const one of members) {
    const item = make("li");
    if (typeof one === "number") {
      const row = data.rows[one];
      item.append(linkTo(side, row.name, row.shown), make("span", [isTimed && row.time?.seconds ? seconds(row.time.seconds) : "", sizeOf(row)].filter(Boolean).join(", "), "dim"));
    } else item.append(make("span", typeof one === "string" ? one : `and ${grouped(one.more)} more`, "dim"));
    list.append(item);
  }
  panel.append(list);
};
const close = () => {
  if (panel.hidden) return;
  panel.hidden = true;
  document.body.classList.remove("with-panel");
  document.title = pageTitle;
  mark("a");
  if (/^#(op|line)/.test(location.hash)) history.pushState(null, "", location.pathname + location.search);
  opener?.isConnected && opener.focus({ preventScroll: true });
};
let opener = null;
const begin = (title) => {
  panel.replaceChildren();
  const head = make("div", undefined, "head"), button = make("button", "×"), name = make("h2", title);
  name.tabIndex = -1;
  button.type = "button";
  button.setAttribute("aria-label", "close (Escape)");
  button.addEventListener("click", close);
  head.append(name, button);
  panel.append(head);
  panel.hidden = false;
  panel.scrollTop = 0;
  document.body.classList.add("with-panel");
  document.title = `${title}: ${pageTitle}`;
  panel.setAttribute("aria-label", title);
};
const unknown = (name) => {
  begin(name);
  panel.append(make("p", "Not on this page, which embeds only the operations in its tables and charts and their neighbors. The page of hlotext graph has all operations."));
  mark("a");
};
const life = ([index, space, size, offset, span, ends, kind]) => {
  const step = (n) => `${grouped(span[n])}${ends[n] ? ` (${ends[n]})` : ""}`;
  const when = span ? `from step ${step(0)} to ${step(1)}` : "throughout";
  return `${index ? `${index}: ` : ""}${bytes(size)}${offset === null ? "" : ` at offset ${grouped(offset)}`} in ${space}, ${kind}, ${when}`;
};
const showOperation = async (side, name) => {
  const data = await store(side), n = data.byName.get(name);
  if (n === undefined) { unknown(name); return; }
  const row = data.rows[n];
  begin(row.shown || row.name);
  panel.append(make("p", `${row.shown ? `${row.name}, ` : ""}${row.opcode} in ${row.in}${row.root ? ", its root" : ""}${isTwo ? `, ${side === "a" ? "before" : "after"}` : ""}`, "dim"));
  const time = row.time || {};
  const measured = row.measured;
  facts([
    ["bytes", bytesWritten(row.bytes, row.held, row.padding)],
    ["flops", row.cost?.[0] ? `${amount(row.cost[0])} in one run` : ""],
    ["moved", row.cost?.[1] ? `${bytes(Math.round(row.cost[1]))} in one run` : ""],
    ["minimum time", time.seconds ? `${seconds(time.seconds)}${time.runs > 1 ? ` in ${grouped(time.runs)} runs` : ""}${time.bound ? `, bound by ${time.bound}` : ""}${time.share ? `, ${percent(time.share, 1)} of the run` : ""}` : ""],
    ["stalled", time.exposed !== undefined ? seconds(time.exposed) : ""],
    ["measured", measured ? `${seconds(measured.seconds)} in one run${measured.ratio ? `, ${measured.ratio.toPrecision(3)} x minimum time` : ""}` : ""],
    ["collective", row.carries],
    ["scope", row.scope],
    ["op_name", row.op_name],
    ["shape", row.shape],
  ]);
  if (row.line) {
    const list = make("dl"), place = make("dd"), a = make("a", row.line);
    a.href = `#line=${encodeURIComponent(row.line)}`;
    place.append(a);
    list.append(make("dt", "Python"), place);
    panel.append(list);
  }
  if (row.life) { heading("In memory"); const list = make("ul", undefined, "lives"); for (const one of row.life) list.append(make("li", life(one))); panel.append(list); }
  if (row.findings) { heading("Findings"); for (const [severity, code, text] of row.findings) { const p = make("p", undefined, "finding"); p.append(make("b", `${code} `, severity), text); panel.append(p); } }
  if (row.why) { heading("Why it is there"); facts(row.why); }
  neighbours(data, side, "Operands", row.operands);
  neighbours(data, side, "Users", row.users);
  heading("Text");
  panel.append(make("pre", row.text));
  if (row.picture !== undefined) {
    heading("Layout");
    const image = make("img");
    image.alt = `memory layout of ${row.shape}`;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(data.pictures[row.picture])}`;
    const room = make("div", undefined, "room");
    room.append(image);
    panel.append(room);
  }
  for (const [body, text] of row.bodies || []) { heading(`Calls ${body}`); panel.append(make("pre", text)); }
  const rows = mark(side, row.name);
  if (row.line) markLine([row.line, row.line], false);
  if (rows.length) {
    heading("On this page");
    const list = make("ul");
    for (const one of new Set(rows.map((tr) => tr.closest("details")).filter(Boolean))) {
      const item = make("li"), button = make("button", one.querySelector("summary").textContent);
      button.type = "button";
      button.addEventListener("click", () => { one.open = true; mark(side, row.name)[0]; one.scrollIntoView({ block: "start" }); });
      item.append(button);
      list.append(item);
    }
    panel.append(list);
  }
};

// ---- a line of Python

// The line before and after: in a comparison `train.py:24 → 26` has moved, and `train.py:24 (before)` is gone.
const linesOf = (text) => {
  const [, file, first, last, gone] = /^(.*):(\d+)(?: → (\d+)| (\(before\)))?$/.exec(text) || [];
  return file === undefined ? [text, text] : [`${file}:${first}`, gone ? "" : `${file}:${last ?? first}`];
};
const isOfLine = (row, line) => row.line === line || row.short_line === line;
const markLine = (lines, isShown) => {
  for (const row of document.querySelectorAll("table.source tr[data-line]")) {
    const line = lines[sideOf(row) === "b" ? 1 : 0], isHere = row.dataset.line === line || row.dataset.short === line;
    row.classList.toggle("chosen", isHere);
    if (isHere && isShown) { row.closest("details").open = true; row.scrollIntoView({ block: "center" }); }
  }
};
// What the row in which a line was clicked says of it.
const figuresOf = (cell) => {
  const row = cell?.parentElement, table = cell?.closest("table");
  if (!row || table.matches(".source")) return;
  const title = table.caption || table.closest("details")?.querySelector("summary"), heads = [...table.tHead.rows[0].cells];
  if (title) heading(title.textContent);
  facts([...row.cells].map((one, n) => [heads[n].textContent, one === cell ? "" : one.textContent.trim()]));
};
const showLine = async (line) => {
  begin(line);
  let total = 0;
  const lines = linesOf(line);
  if (opener?.hash === location.hash) figuresOf(opener.closest("td"));
  for (const side of isTwo ? ["a", "b"] : ["a"]) {
    const wanted = lines[side === "b" ? 1 : 0];
    const data = await store(side), every = data.rows.map((row, n) => n).filter((n) => isOfLine(data.rows[n], wanted));
    const costly = every.filter((n) => !data.rows[n].free), members = costly.length ? costly : every;
    members.sort((a, b) => (data.rows[b].time?.seconds || 0) - (data.rows[a].time?.seconds || 0) || data.rows[b].bytes - data.rows[a].bytes);
    total += members.length;
    neighbours(data, side, `Operations of this line${isTwo ? (side === "a" ? ", before" : ", after") : ""}`, members.length > 60 ? [...members.slice(0, 60), { more: members.length - 60 }] : members, true);
  }
  if (!total) panel.append(make("p", "This page embeds no operations of this line."));
  mark("a");
  markLine(lines, !opener?.closest("table.source"));
};

// ---- addresses

// Asked for by the reader it has the focus, as its links are at the end of the page; Escape gives it back. A chart keeps its keys.
const openAddress = async (event) => {
  const [, kind, side, text] = /^#(op|line)(-b)?=(.*)$/.exec(location.hash) || [];
  let wanted = "";
  try { wanted = decodeURIComponent(text || ""); } catch (error) { /* no address of ours */ }
  if (!kind || !wanted) {
    if (!panel.hidden) close();
    return;
  }
  await (kind === "op" ? showOperation(side ? "b" : "a", wanted) : showLine(wanted));
  if (event && !document.activeElement?.closest("figure.chart")) panel.querySelector("h2")?.focus({ preventScroll: true });
};
addEventListener("hashchange", openAddress);
document.addEventListener("click", (event) => {
  const a = event.target.closest?.("main a.op, main a.line");
  if (!a) return;
  opener = a;
  if (a.hash === location.hash) { event.preventDefault(); openAddress(event); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !panel.hidden) close();
  if (event.key === "/" && !/INPUT|TEXTAREA/.test(event.target.tagName)) { find.focus(); find.select(); event.preventDefault(); }
});

// ---- the search

const MOST_FOUND = 12;
const search = async () => {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean), hits = [];
  for (const side of isTwo ? ["a", "b"] : ["a"]) {
    if (!words.length) break;
    for (const row of (await store(side)).rows) {
      const text = `${row.name} ${row.shown || ""} ${row.opcode} ${row.carries || ""} ${row.op_name} ${row.line || ""}`.toLowerCase();
      if (words.every((word) => text.includes(word))) hits.push([side, row]);
    }
  }
  const exact = (row) => (row.name.toLowerCase() === words[0] ? 0 : row.name.toLowerCase().startsWith(words[0]) ? 1 : 2);
  hits.sort(([, a], [, b]) => exact(a) - exact(b));
  found.replaceChildren(...hits.slice(0, MOST_FOUND).map(([side, row], n) => {
    const item = make("li"), a = linkTo(side, row.name, row.shown);
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(n === 0));
    item.id = `found-${n}`;
    a.tabIndex = -1;
    item.append(a, make("span", `${isTwo ? (side === "a" ? "before · " : "after · ") : ""}${row.opcode}${row.carries ? ` · ${row.carries}` : ""}${row.line ? ` · ${row.line}` : ""}`, "dim"));
    return item;
  }));
  if (words.length && hits.length > MOST_FOUND) found.append(make("li", `${grouped(hits.length)} found`, "dim"));
  if (words.length && !hits.length) found.append(make("li", "nothing on this page", "dim"));
  found.hidden = !words.length;
  find.setAttribute("aria-expanded", String(!found.hidden));
  find.setAttribute("aria-activedescendant", hits.length ? "found-0" : "");
};
const leave = () => { found.hidden = true; find.setAttribute("aria-expanded", "false"); };
find.addEventListener("input", search);
find.addEventListener("keydown", (event) => {
  const options = [...found.querySelectorAll("[role=option]")], at = options.findIndex((one) => one.getAttribute("aria-selected") === "true");
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
  if (to !== undefined && options[to]) {
    options.forEach((one, n) => one.setAttribute("aria-selected", String(n === to)));
    find.setAttribute("aria-activedescendant", options[to].id);
    event.preventDefault();
  }
  if (event.key === "Enter" && options[at]) { opener = find; location.hash = options[at].querySelector("a").hash; leave(); }
  if (event.key === "Escape") { leave(); event.stopPropagation(); }
});
found.addEventListener("click", () => { opener = find; leave(); });
find.addEventListener("blur", () => setTimeout(leave, 200));
