// The graph of a module: neighbourhoods found, laid out in layers and drawn here. Text of the module goes into the page by
// textContent alone, pictures of layouts as images, which run nothing.

const SVG = "http://www.w3.org/2000/svg", $ = (id) => document.getElementById(id);

// ---- reading what the page carries

const part = (name) => document.querySelector(`script[data-part="${name}"]`)?.textContent;
const json = async (name) => unpack(part(name));

const short = (text, most) => {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) * 0.45);
  return `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}`;
};
const draw = (tag, attributes, text) => {
  const found = document.createElementNS(SVG, tag);
  for (const key in attributes) found.setAttribute(key, attributes[key]);
  if (text !== undefined) found.textContent = text;
  return found;
};

// ---- the module

let W, M, names, count, opcode, FOLDED, pictures;
const state = { focus: -1, chosen: -1, hops: 3, most: 60, fold: true, open: new Set(), all: new Set(), scope: 0 };

const TYPES = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array };
const unpacked = async (name) => new TextDecoder().decode(await inflated(part(name)));
// Where the lists of some lengths begin, and where the last one ends.
const beginnings = (lengths) => {
  const found = new Int32Array(lengths.length + 1);
  for (let n = 0; n < lengths.length; n++) found[n + 1] = found[n] + lengths[n];
  return found;
};
const start = async () => {
  const [words, text, numbers] = await Promise.all([json("words"), unpacked("names"), inflated(part("numbers"))]);
  W = words;
  const columns = {};
  let at = 0;
  for (const [name, type, length] of W.layout) {
    columns[name] = new TYPES[type](numbers, at, length);
    at += columns[name].byteLength;
  }
  const { head, head_opcode, head_shape, operand, operand_count, caller, called, writer, written_bytes, element } = columns;
  names = text.split("\n");
  count = names.length;
  const ofHeads = (values, kind) => { const found = new kind(count); for (let n = 0; n < count; n++) found[n] = values[head[n]]; return found; };
  const { scope, op_name, line, root: roots, pieces, blocks } = columns;
  M = { scope, op_name, line, roots, pieces, blocks, calls: called, opcode: ofHeads(head_opcode, Int32Array), shape: ofHeads(head_shape, Int32Array) };
  M.computation_starts = beginnings(columns.computation_size);
  M.operand_starts = beginnings(operand_count);
  M.operands = new Int32Array(operand.length);
  for (let n = 0, k = 0; n < count; n++) for (; k < M.operand_starts[n + 1]; k++) M.operands[k] = n - operand[k];
  const lengths = new Int32Array(count);
  for (const n of caller) lengths[n]++;
  M.call_starts = beginnings(lengths);
  M.bytes = new Float64Array(count);
  M.written = new Float64Array(count);
  M.colour = new Uint8Array(count);
  for (let n = 0; n < count; n++) { M.bytes[n] = W.held[M.shape[n]]; M.colour[n] = W.colours[M.opcode[n]]; }
  writer.forEach((n, k) => { M.bytes[n] = M.written[n] = written_bytes[k]; });
  for (const n in W.wrapped) M.colour[n] = W.wrapped[n];
  opcode = (n) => W.opcodes[M.opcode[n]];
  M.extra = new Int32Array(count); // the element that is taken
  const taking = W.opcodes.indexOf("get-tuple-element");
  for (let n = 0, k = 0; n < count; n++) if (M.opcode[n] === taking) M.extra[n] = element[k++];
  FOLDED = new Set(["get-tuple-element", "tuple", "bitcast", "copy-start", "copy-done"].map((one) => W.opcodes.indexOf(one)));
  // Users, as operands turned round: for each instruction the users and the operand that it is there.
  const starts = new Int32Array(count + 1);
  for (const operand of M.operands) if (operand >= 0) starts[operand + 1]++;
  for (let n = 0; n < count; n++) starts[n + 1] += starts[n];
  const fill = starts.slice(), users = new Int32Array(starts[count]), slots = new Int32Array(starts[count]);
  for (let n = 0; n < count; n++)
    for (let k = M.operand_starts[n]; k < M.operand_starts[n + 1]; k++) {
      const operand = M.operands[k];
      if (operand < 0) continue;
      slots[fill[operand]] = k - M.operand_starts[n];
      users[fill[operand]++] = n;
    }
  Object.assign(M, { user_starts: starts, users, slots });
  M.computation = new Int32Array(count);
  M.caller = new Int32Array(W.computations.length).fill(-1);
  for (let c = 0; c < W.computations.length; c++) M.computation.fill(c, M.computation_starts[c], M.computation_starts[c + 1]);
  for (let n = 0; n < count; n++)
    for (let k = M.call_starts[n]; k < M.call_starts[n + 1]; k++) if (M.caller[M.calls[k]] < 0) M.caller[M.calls[k]] = n;
};
const operandsOf = (n) => M.operands.subarray(M.operand_starts[n], M.operand_starts[n + 1]);
const usersOf = (n) => M.users.subarray(M.user_starts[n], M.user_starts[n + 1]);
const callsOf = (n) => M.calls.subarray(M.call_starts[n], M.call_starts[n + 1]);
const scopeText = (s) => { const found = []; for (; s > 0; s = W.scopes.parent[s]) found.unshift(W.scopes.name[s]); return found.join("/") || "(top level)"; };
const isInScope = (s, wanted) => { for (; s >= 0; s = W.scopes.parent[s]) if (s === wanted) return true; return false; };
// An argument of the program has its name there.
const label = (n) => M.computation[n] === W.entry && opcode(n) === "parameter" && W.op_names[M.op_name[n]] || names[n];
const link = (n) => names.indexOf(names[n]) === n ? names[n] : `${W.computations[M.computation[n]]}::${names[n]}`;
const byLink = (text) => {
  const [first, second] = text.split("::");
  if (second === undefined) return names.indexOf(first);
  const c = W.computations.indexOf(first);
  for (let n = M.computation_starts[c]; n < M.computation_starts[c + 1]; n++) if (names[n] === second) return n;
  return -1;
};

// ---- what only takes values apart, together or elsewhere is folded into the edges

const isFolded = (n) => state.fold && n !== state.focus && n !== state.chosen && FOLDED.has(M.opcode[n]) && M.user_starts[n + 1] > M.user_starts[n];
const sources = (n) => {
  const found = [], waiting = [];
  operandsOf(n).forEach((operand) => { if (operand >= 0) waiting.push([operand, [], M.bytes[operand], false]); });
  let rounds = 0;
  while (waiting.length && rounds++ < 5000) {
    const [at, path, size, isCopied] = waiting.shift();
    if (!isFolded(at)) { found.push({ from: at, bytes: size, path, isCopied }); continue; }
    const what = opcode(at), inner = operandsOf(at);
    if (what === "get-tuple-element") { if (inner[0] >= 0) waiting.push([inner[0], [...path, M.extra[at]], M.bytes[at], isCopied]); }
    else if (what === "tuple") {
      const wanted = path.length ? [path[path.length - 1]] : inner.keys();
      for (const k of wanted) if (inner[k] >= 0) waiting.push([inner[k], path.slice(0, -1), M.bytes[inner[k]], isCopied]);
    } else if (inner[0] >= 0) waiting.push([inner[0], path, size, isCopied || what !== "bitcast"]);
  }
  return found;
};
const targets = (n) => {
  const found = new Set(), waiting = [[n, []]];
  let rounds = 0;
  while (waiting.length && rounds++ < 5000) {
    const [at, path] = waiting.shift();
    for (let k = M.user_starts[at]; k < M.user_starts[at + 1]; k++) {
      const user = M.users[k];
      if (!isFolded(user)) { found.add(user); continue; }
      const what = opcode(user);
      if (what === "tuple") waiting.push([user, [...path, M.slots[k]]]);
      else if (what !== "get-tuple-element") waiting.push([user, path]);
      else if (!path.length) waiting.push([user, path]);
      else if (path[path.length - 1] === M.extra[user]) waiting.push([user, path.slice(0, -1)]);
    }
  }
  return [...found];
};
const NEIGHBOURS = 12;
const neighbourhood = (focus) => {
  const shown = new Map([[focus, 0]]), rest = [], queue = [focus];
  const largest = (list, most) => list.length <= most ? list : list.slice().sort((a, b) => M.bytes[b] - M.bytes[a] || a - b).slice(0, most);
  while (queue.length) {
    const n = queue.shift(), far = shown.get(n);
    const up = [...new Set(sources(n).map((one) => one.from))], down = targets(n);
    for (const [list, way] of [[up, "operands"], [down, "users"]]) {
      const room = far < state.hops ? state.all.has(n) ? 1e9 : NEIGHBOURS : 0;
      let taken = 0;
      for (const other of largest(list, room)) {
        if (shown.has(other)) continue;
        if (shown.size >= state.most) break;
        shown.set(other, far + 1);
        queue.push(other);
        taken++;
      }
      rest.push([n, way, list]);
    }
  }
  const stubs = [];
  for (const [n, way, list] of rest) {
    const left = list.filter((other) => !shown.has(other)).length;
    if (left) stubs.push([n, way, left]);
  }
  return [shown, stubs];
};

// ---- layers: longest paths, crossings few by barycentres, places by least squares in the order found

const LONG = 6;
const layered = (nodes, edges, gapX = 20, gapY = 46) => {
  const size = nodes.length, out = nodes.map(() => []), into = nodes.map(() => []);
  for (const [a, b] of edges) { out[a].push(b); into[b].push(a); }
  const layer = new Int32Array(size), open = into.map((list) => list.length), order = [];
  const ready = [];
  open.forEach((number, n) => { if (!number) ready.push(n); });
  while (ready.length) {
    const n = ready.shift();
    order.push(n);
    for (const b of out[n]) { layer[b] = Math.max(layer[b], layer[n] + 1); if (!--open[b]) ready.push(b); }
  }
  for (const n of order.slice().reverse()) if (!into[n].length && out[n].length) layer[n] = Math.min(...out[n].map((b) => layer[b])) - 1;
  const levels = [], place = [], points = nodes.map((node, n) => ({ w: node.w, h: node.h, layer: layer[n], up: [], down: [] }));
  const routes = edges.map(([a, b]) => {
    const route = [a];
    // What passes many layers is led at its ends alone: else long edges outnumber the nodes a hundredfold.
    const isLong = layer[b] - layer[a] > LONG;
    for (let at = layer[a] + 1; at < layer[b]; at++) {
      if (isLong && at > layer[a] + 1 && at < layer[b] - 1) continue;
      points.push({ w: 8, h: 0, layer: at, up: [], down: [] });
      route.push(points.length - 1);
    }
    route.push(b);
    for (let k = 1; k < route.length; k++) { points[route[k]].up.push(route[k - 1]); points[route[k - 1]].down.push(route[k]); }
    return route;
  });
  points.forEach((point, n) => (levels[point.layer] ||= []).push(n));
  const settle = () => levels.forEach((list) => list?.forEach((n, k) => { place[n] = k; }));
  settle();
  for (let sweep = 0; sweep < 8; sweep++) {
    const isDown = sweep % 2 === 0, walk = isDown ? levels : levels.slice().reverse();
    for (const list of walk) {
      if (!list) continue;
      const weight = new Map(list.map((n) => {
        const near = isDown ? points[n].up : points[n].down;
        return [n, near.length ? near.reduce((sum, other) => sum + place[other], 0) / near.length : place[n]];
      }));
      list.sort((a, b) => weight.get(a) - weight.get(b) || place[a] - place[b]);
      list.forEach((n, k) => { place[n] = k; });
    }
  }
  // The nearest places to those wished for that keep order and distance: isotonic regression, blocks merged as they meet.
  const x = new Float64Array(points.length);
  const arrange = (list, wish) => {
    let shift = 0, previous = null;
    const blocks = [], offsets = [];
    list.forEach((n, k) => {
      if (previous !== null) shift += points[previous].w / 2 + points[n].w / 2 + (points[n].h && points[previous].h ? gapX : gapX / 2);
      previous = n;
      offsets[k] = shift;
      let block = { sum: wish[k] - shift, size: 1 };
      while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].size > block.sum / block.size) {
        const before = blocks.pop();
        block = { sum: before.sum + block.sum, size: before.size + block.size };
      }
      blocks.push(block);
    });
    let k = 0;
    for (const block of blocks) for (let n = 0; n < block.size; n++, k++) x[list[k]] = block.sum / block.size + offsets[k];
  };
  for (const list of levels) if (list) arrange(list, list.map(() => 0));
  for (let round = 0; round < 10; round++)
    for (const list of round % 2 ? levels.slice().reverse() : levels) {
      if (!list) continue;
      arrange(list, list.map((n) => {
        const near = round < 8 ? (round % 2 ? points[n].down : points[n].up) : [...points[n].up, ...points[n].down];
        return near.length ? near.reduce((sum, other) => sum + x[other], 0) / near.length : x[n];
      }));
    }
  const tops = [], heights = levels.map((list) => Math.max(0, ...(list || []).map((n) => points[n].h)));
  let y = 0;
  heights.forEach((height, k) => { tops[k] = y; y += height + gapY; });
  let left = Infinity, right = -Infinity;
  points.forEach((point, n) => { left = Math.min(left, x[n] - point.w / 2); right = Math.max(right, x[n] + point.w / 2); });
  if (!points.length) left = right = 0;
  const at = points.map((point, n) => ({ x: x[n] - left, y: tops[point.layer] + (heights[point.layer] - point.h) / 2, w: point.w, h: point.h, top: tops[point.layer], bottom: tops[point.layer] + heights[point.layer] }));
  // Ends of edges side by side, in the order of where they lead.
  const ends = routes.map(() => [0, 0]);
  for (const side of [0, 1]) {
    const groups = new Map();
    routes.forEach((route, e) => { const n = side ? route[route.length - 1] : route[0]; (groups.get(n) || groups.set(n, []).get(n)).push(e); });
    for (const [n, list] of groups) {
      list.sort((a, b) => at[routes[a][side ? routes[a].length - 2 : 1]].x - at[routes[b][side ? routes[b].length - 2 : 1]].x);
      const step = Math.min(16, 0.8 * at[n].w / list.length);
      list.forEach((e, k) => { ends[e][side] = at[n].x + (k - (list.length - 1) / 2) * step; });
    }
  }
  const paths = routes.map((route, e) => {
    const found = [[ends[e][0], at[route[0]].y + at[route[0]].h]];
    for (const n of route.slice(1, -1)) found.push([at[n].x, at[n].top], [at[n].x, at[n].bottom]); // upright beside tall boxes
    found.push([ends[e][1], at[route[route.length - 1]].y]);
    return found;
  });
  return { at: at.slice(0, size), paths, width: right - left, height: Math.max(0, y - gapY), layer };
};
const curve = (points) => {
  let text = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
  for (let k = 1; k < points.length; k++) {
    const [ax, ay] = points[k - 1], [bx, by] = points[k], half = (by - ay) / 2;
    text += `C${ax.toFixed(1)} ${(ay + half).toFixed(1)} ${bx.toFixed(1)} ${(by - half).toFixed(1)} ${bx.toFixed(1)} ${by.toFixed(1)}`;
  }
  return text;
};

// ---- what a view consists of

const WIDE = 196, HIGH = 44, MOST_INSIDE = 160, MOST_DEEP = 6;

// Nodes and edges among some instructions, bodies of opened ones laid out inside.
const scene = (members, stubs, deep) => {
  const nodes = members.map((n) => {
    if (!state.open.has(n) || deep >= MOST_DEEP || !callsOf(n).length) return { n, w: WIDE, h: HIGH };
    const rooms = [...callsOf(n)].slice(0, 4).map((c) => inside(c, deep + 1));
    return { n, rooms, w: Math.max(WIDE, rooms.reduce((sum, room) => sum + room.w + 16, 16)), h: 34 + Math.max(...rooms.map((room) => room.h)) + 14 };
  });
  const where = new Map(members.map((n, k) => [n, k])), merged = new Map();
  members.forEach((n, k) => {
    for (const one of sources(n)) {
      const from = where.get(one.from);
      if (from === undefined || from === k) continue;
      const key = from * 1e6 + k, known = merged.get(key);
      if (known) { known.bytes += one.bytes; known.isCopied ||= one.isCopied; known.labels.push(...labelOf(one)); } else merged.set(key, { from, to: k, bytes: one.bytes, isCopied: one.isCopied, labels: labelOf(one) });
    }
  });
  const edges = [...merged.values()];
  for (const [n, way, left] of stubs) nodes[where.get(n)][way] = left;
  return { nodes, edges, plan: layered(nodes, edges.map((edge) => [edge.from, edge.to])) };
};
const labelOf = (one) => one.path.length ? [`.${one.path.slice().reverse().join(".")}`] : [];
const inside = (c, deep) => {
  const all = [];
  for (let n = M.computation_starts[c]; n < M.computation_starts[c + 1]; n++) if (!isFolded(n)) all.push(n);
  const members = all.length > MOST_INSIDE ? all.slice(-MOST_INSIDE) : all;
  const found = scene(members, [], deep);
  return { ...found, c, left: all.length - members.length, w: Math.max(120, found.plan.width + 24), h: found.plan.height + 46 };
};

// ---- drawing

const canvas = $("canvas"), svg = $("graph"), view = { x: 0, y: 0, k: 1 };
let room = [canvas.clientWidth, canvas.clientHeight];
new ResizeObserver(() => { room = [canvas.clientWidth, canvas.clientHeight]; }).observe(canvas);
let layer, current = null, boxes = new Map(), wires = [];
// Texts keep a size that can be read: where boxes get small names are as large as before, and shorter; then there are none.
const READABLE = 0.92, LEAST_NAMED = 0.4, NAME = 11.5;
let named = 1;
const scaleTexts = () => {
  const scale = view.k >= READABLE ? 1 : view.k < LEAST_NAMED ? 0 : Math.round(view.k * 25) / 25;
  if (scale === named || !layer) return;
  named = scale;
  layer.classList.toggle("small", scale < 1);
  layer.classList.toggle("tiny", !scale);
  layer.style.setProperty("--name", `${NAME / (scale || 1)}px`);
  const most = Math.floor((WIDE * scale - 14) / (0.61 * NAME));
  for (const text of layer.querySelectorAll("text.name")) text.textContent = scale === 1 ? text.dataset.short : short(text.dataset.full, Math.max(4, most));
};
const move = () => { scaleTexts(); layer?.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`); };
// All of it, or, where texts would be too small for that and not all is asked for, what is around the focus.
const fit = (isWhole = false, most = 1) => {
  if (!current) return;
  const { width, height } = current.plan, [w, h] = room;
  view.k = Math.max(0.06, Math.min(most, (w - 40) / Math.max(1, width), (h - 60) / Math.max(1, height)));
  if (view.k < READABLE && !isWhole && boxes.has(state.focus)) {
    view.k = READABLE;
    const box = boxes.get(state.focus);
    view.x = w / 2 - box.x * view.k;
    view.y = h / 2 - box.y * view.k;
  } else {
    view.x = (w - width * view.k) / 2;
    view.y = Math.max(20, (h - height * view.k) / 2);
  }
  move();
};
const nameText = (where, full, most) => {
  const text = draw("text", { class: "name", ...where }, short(full, most));
  text.dataset.full = full;
  text.dataset.short = text.textContent;
  return text;
};
const paintScene = (found, into, dx, dy) => {
  const wiresHere = draw("g", {}), nodesHere = draw("g", {}), badges = draw("g", {});
  into.append(wiresHere, nodesHere, badges);
  const labelled = new Map();
  for (const edge of found.edges) if (edge.labels.length) labelled.set(edge.to, (labelled.get(edge.to) || 0) + 1);
  found.edges.forEach((edge, e) => {
    const path = found.plan.paths[e].map(([x, y]) => [x + dx, y + dy]);
    const wide = edge.bytes ? Math.max(1, Math.min(7, 1 + 0.32 * Math.log2(Math.max(1, edge.bytes / 1024)))) : 1;
    const line = draw("path", { class: edge.isCopied ? "edge copied" : "edge", d: curve(path), "stroke-width": wide.toFixed(1), "marker-end": "url(#arrow)" });
    const from = found.nodes[edge.from].n, to = found.nodes[edge.to].n;
    if (from !== undefined && to !== undefined) {
      wires.push([line, from, to, edge]);
    }
    wiresHere.append(line);
    if (edge.labels.length && labelled.get(edge.to) <= 4) {
      const [x, y] = path[path.length - 1];
      wiresHere.append(draw("text", { class: "label", x: x + 4, y: y - (e % 2 ? 9 : 20) }, short(edge.labels.length > 2 ? `${edge.labels.length} parts` : edge.labels.join(" "), 16)));
    }
  });
  found.nodes.forEach((node, k) => {
    const at = found.plan.at[k], x = at.x + dx - at.w / 2, y = at.y + dy;
    const n = node.n;
    for (const [way, one, place, sign] of [["operands", "operand", y, "▴"], ["users", "user", y + at.h, "▾"]]) {
      if (!node[way]) continue;
      const badge = draw("g", { class: "node badge" }), text = `${sign}${grouped(node[way])}`, wide = 8 + 7 * text.length;
      badge.dataset.more = n;
      badge.dataset.says = node[way] === 1 ? `1 more ${one}: click to show it` : `${grouped(node[way])} more ${way}: click to show them`;
      badge.append(draw("rect", { class: "box", x: x + at.w - wide - 8, y: place - (sign === "▴" ? 13 : 3), width: wide, height: 16, rx: 8 }), draw("text", { x: x + at.w - wide / 2 - 8, y: place + (sign === "▴" ? -1 : 9), "text-anchor": "middle" }, text));
      badges.append(badge);
    }
    boxes.set(n, { x: at.x + dx, y: y + at.h / 2, element: null });
    if (node.rooms) {
      const group = draw("g", { class: "node body" });
      group.dataset.n = n;
      group.append(draw("rect", { class: "box room", x, y, width: at.w, height: at.h, rx: 10 }), nameText({ x: x + 12, y: y + 20 }, `${names[n]} −`, 42));
      nodesHere.append(group);
      boxes.get(n).element = group;
      let left = x + 16;
      for (const room of node.rooms) {
        const inner = draw("g", {});
        nodesHere.append(inner);
        if (node.rooms.length > 1 || room.left) inner.append(draw("text", { class: "label", x: left + 6, y: y + 38 }, short(W.computations[room.c], 30) + (room.left ? `, ${grouped(room.left)} more above` : "")));
        paintScene(room, inner, left + 12, y + 46);
        left += room.w + 16;
      }
      return;
    }
    const group = draw("g", { class: "node" });
    group.dataset.n = n;
    const what = opcode(n), size = M.bytes[n], room = 26;
    const tail = size ? ` · ${bytes(size)}` : "";
    const shape = W.short[M.shape[n]], isTold = names[n].startsWith(what) || what === "parameter" && names[n].startsWith("param");
    const lead = isTold || what.length + 1 + shape.length + tail.length > room ? "" : `${what} `;
    group.append(
      draw("rect", { class: "box", x, y, width: at.w, height: at.h, rx: 8 }),
      draw("rect", { x: x + 1.5, y: y + 7, width: 4, height: at.h - 14, rx: 2, fill: palette[M.colour[n]] }),
      nameText({ x: x + 13, y: y + 18 }, label(n), callsOf(n).length ? 22 : 24),
      draw("text", { class: "more", x: x + 13, y: y + 34 }, short(lead + shape, Math.max(9, room - tail.length)) + tail),
    );
    if (callsOf(n).length) group.append(draw("text", { class: "more", x: x + at.w - 16, y: y + 18 }, "+"));
    nodesHere.append(group);
    boxes.get(n).element = group;
  });
};
const show = (keep) => {
  const begun = performance.now();
  if (state.focus < 0) return 0;
  $("overview").hidden = true;
  const [shown, stubs] = neighbourhood(state.focus);
  current = scene([...shown.keys()].sort((a, b) => a - b), stubs, 0);
  boxes = new Map();
  wires = [];
  layer = draw("g", {});
  named = 1;
  paintScene(current, layer, 0, 0);
  const marks = draw("defs", {}), arrow = draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" });
  arrow.append(draw("path", { d: "M0 0.6L8 4L0 7.4z", class: "arrow" }));
  marks.append(arrow);
  svg.replaceChildren(marks, layer);
  svg.setAttribute("aria-label", `${shown.size} operations around ${label(state.focus)}`);
  keep ? move() : fit();
  mark();
  const took = performance.now() - begun;
  const left = (stubs.length ? ", more at ▴ and ▾" : "") + (svg.querySelector(".copied") ? "; dashed: copied on the way" : "");
  $("status").textContent = `${grouped(shown.size)} of ${grouped(count)} instructions around ${short(label(state.focus), 40)}${left}`;
  root.dataset.drawn = took.toFixed(1);
  return took;
};
const mark = () => {
  for (const [n, box] of boxes) {
    box.element?.classList.toggle("chosen", n === state.chosen);
    box.element?.classList.toggle("focus", n === state.focus);
  }
  for (const [line, from, to] of wires) line.classList.toggle("lit", from === state.chosen || to === state.chosen);
};

// ---- the panel

const goTo = (n) => { const hash = `#${encodeURIComponent(link(n))}`; if (location.hash === hash) focusOn(n); else location.hash = hash; };
const anchor = (n, text) => {
  const found = make("a", short(text ?? label(n), 60));
  found.href = `#${encodeURIComponent(link(n))}`;
  return found;
};
const list = (panel, title, members) => {
  if (!members.length) return;
  panel.append(make("h3", `${title} (${grouped(members.length)})`));
  const found = make("ul");
  const add = (from, to) => members.slice(from, to).forEach((n) => {
    const row = make("li");
    row.append(anchor(n), make("span", M.bytes[n] ? bytes(M.bytes[n]) : opcode(n)));
    found.append(row);
  });
  add(0, 12);
  panel.append(found);
  if (members.length > 12) {
    const more = make("button", `${grouped(members.length - 12)} more`);
    more.type = "button";
    more.addEventListener("click", () => { add(12, 500); more.remove(); });
    panel.append(more);
  }
};
// One line, with one blank for several; what is no printable character is replaced. As hlotext's escape.one_line has it.
const BLANKS = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;
const oneLine = (text) => text.replace(BLANKS, " ").replace(/^ | $/g, "").replace(/[\p{C}\p{Z}]/gu, (one) => one === " " ? one : "\ufffd");
// The last number of an ascending list that is not above another one.
const lastUpTo = (list, wanted) => {
  let low = 0, high = list.length - 1;
  while (low < high) { const middle = (low + high + 1) >> 1; if (list[middle] <= wanted) low = middle; else high = middle - 1; }
  return low;
};
// Op lines are in blocks of pieces; a piece has something without meaning, then the lines of instructions behind each other.
const lineOf = async (n) => {
  const piece = lastUpTo(M.pieces, n), block = lastUpTo(M.blocks, piece), text = await unpacked(`lines-${block}`);
  return oneLine(text.split("\0")[piece - M.blocks[block]].split("\n")[n - M.pieces[piece] + 1]);
};
let asked = 0;
const describe = async (n) => {
  const panel = $("panel"), ticket = ++asked, c = M.computation[n];
  panel.replaceChildren();
  panel.scrollTop = 0;
  panel.append(make("h2", short(label(n), 200)), make("p", `${label(n) === names[n] ? "" : `${names[n]}, `}${opcode(n)} in ${W.computations[c]}${M.roots[c] === n ? ", its root" : ""}`, "sub"));
  const acts = make("div", undefined, "acts");
  const act = (text, title, run) => {
    const button = make("button", text);
    button.type = "button";
    button.title = title;
    button.addEventListener("click", run);
    acts.append(button);
  };
  if (n !== state.focus) act("center", "the neighborhood of this operation (Enter)", () => goTo(n));
  if (callsOf(n).length) act(state.open.has(n) ? "close" : "open body", "the computations that it calls, in place (key o)", () => toggle(n));
  if (M.caller[c] >= 0) act("to its caller", names[M.caller[c]], () => goTo(M.caller[c]));
  if (acts.childNodes.length) panel.append(acts);
  const facts = make("dl");
  const fact = (name, value) => { if (value) facts.append(make("dt", name), make("dd", short(value, 600))); };
  fact("bytes", bytesWritten(M.bytes[n], W.held[M.shape[n]], W.padding[M.shape[n]]));
  fact("scope", M.scope[n] ? scopeText(M.scope[n]) : "");
  fact("op_name", W.op_names[M.op_name[n]]);
  if (W.lines[M.line[n]]) {
    const line = make("a", W.lines[M.line[n]]), place = make("dd");
    line.href = "#";
    line.title = "the operations of this line";
    line.addEventListener("click", (event) => { event.preventDefault(); field.value = W.lines[M.line[n]]; field.focus(); look(); });
    place.append(line);
    facts.append(make("dt", "Python"), place);
  }
  fact("shape", short(W.shapes[M.shape[n]], 240));
  const every = W.why[n] || [], told = every.filter(([name]) => name !== "collective");
  for (const [name, value] of every) if (name === "collective") fact(name, value);
  panel.append(facts);
  if (told.length) {
    const why = make("dl");
    for (const [name, value] of told) why.append(make("dt", name), make("dd", short(value, 1200)));
    panel.append(make("h3", "Why it is there"), why);
  }
  list(panel, "Operands", [...operandsOf(n)].filter((one) => one >= 0));
  list(panel, "Users", [...new Set(usersOf(n))]);
  list(panel, "Roots of called computations", [...callsOf(n)].map((body) => M.roots[body]).filter((one) => one >= 0));
  const text = make("pre", "…");
  panel.append(make("h3", "Text"), text);
  const line = await lineOf(n);
  if (ticket !== asked) return;
  text.textContent = line;
  pictures ||= await json("pictures");
  if (ticket !== asked) return;
  const drawn = pictures.of[M.shape[n]].map((number) => pictures.svg[number]).filter(Boolean);
  if (drawn.length) panel.append(make("h3", "Layout"));
  for (const picture of drawn) {
    const image = make("img");
    image.alt = `memory layout of ${short(W.short[M.shape[n]], 60)}`;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture)}`;
    panel.append(image);
  }
};
const choose = (n) => { state.chosen = n; mark(); describe(n); };
const focusOn = (n) => {
  state.focus = state.chosen = n;
  show();
  mark();
  describe(n);
};
const toggle = (n) => {
  state.open.has(n) ? state.open.delete(n) : state.open.add(n);
  show();
  choose(n);
  history.pushState(step(), "");
};

// ---- scopes

let sums = null;
const weigh = () => {
  const size = W.scopes.name.length, written = new Float64Array(size), number = new Float64Array(size);
  for (let n = 0; n < count; n++) { written[M.scope[n]] += M.written[n]; number[M.scope[n]]++; }
  for (let s = size - 1; s > 0; s--) { written[W.scopes.parent[s]] += written[s]; number[W.scopes.parent[s]] += number[s]; }
  const kids = Array.from({ length: size }, () => []);
  for (let s = 1; s < size; s++) kids[W.scopes.parent[s]].push(s);
  sums = { bytes: written, instructions: number, kids };
};
let metric = "bytes";
const OWN = -1;
const overview = () => {
  if (!sums) weigh();
  const box = $("overview"), row = 27;
  box.hidden = false;
  box.replaceChildren(make("h2", "Scopes of the program"), make("p", "The width of a scope is the bytes that its operations write (each counted once, without the inside of fusions) or their number. Click a scope to open it and list its largest operations; the search is then limited to it."));
  const tools = make("div", undefined, "tools");
  for (const one of ["bytes", "instructions"]) {
    const button = make("button", one);
    button.type = "button";
    button.setAttribute("aria-pressed", String(one === metric));
    button.addEventListener("click", () => { metric = one; overview(); });
    tools.append(button);
  }
  const rows = make("div", undefined, "icicle"), says = make("div", undefined, "says"), top = state.scope, value = sums[metric];
  box.append(tools, rows, says);
  const wide = Math.max(200, rows.clientWidth), cells = [];
  const around = [];
  for (let s = top; s >= 0; s = W.scopes.parent[s]) around.unshift(s);
  around.forEach((s, k) => cells.push([s, 0, wide, k]));
  const waiting = [[top, 0, wide, around.length - 1]];
  const order = (s) => sums.kids[s].slice().sort((a, b) => value[b] - value[a] || a - b);
  let deepest = around.length - 1;
  while (waiting.length) {
    const [s, left, size, at] = waiting.pop();
    let x = left;
    if (at > around.length + 10 || !value[s]) continue;
    for (const kid of order(s)) {
      const part = size * value[kid] / value[s];
      if (part >= 2.5) { cells.push([kid, x, part, at + 1]); waiting.push([kid, x, part, at + 1]); deepest = Math.max(deepest, at + 1); }
      x += part;
    }
    const own = size - (x - left);
    if (!s && sums.kids[0].length && own >= 2.5) cells.push([OWN, x, own, at + 1]);
  }
  rows.style.height = `${(deepest + 1) * row}px`;
  // What is in no scope stands beside the outermost ones, as OWN.
  const sumOf = (one, s) => s === OWN ? sums[one][0] - sums.kids[0].reduce((sum, kid) => sum + sums[one][kid], 0) : sums[one][s];
  const nameOf = (s) => s ? scopeText(s === OWN ? 0 : s) : "(whole module)";
  const tell = (s) => says.replaceChildren(make("b", nameOf(s)), make("div", `${bytes(sumOf("bytes", s))} written by ${grouped(sumOf("instructions", s))} instructions`));
  const first = order(0);
  const hue = (s) => { if (s === OWN) return palette[8]; while (s > 0 && W.scopes.parent[s] > 0) s = W.scopes.parent[s]; return s ? palette[first.indexOf(s) % 7] : palette[7]; };
  rows.append(...cells.map(([s, x, size, at]) => {
    const cell = make("button", size > 26 ? W.scopes.name[s] || nameOf(s) : "");
    cell.type = "button";
    cell.style.cssText = `left:${x}px;top:${at * row}px;width:${Math.max(2, size - 1)}px;background:color-mix(in srgb, ${hue(s)} calc(${Math.max(38, 74 - 8 * at)}% * var(--strength)), var(--mix));${size > 26 ? "" : "padding:0"}`;
    cell.setAttribute("aria-label", `${nameOf(s)}, ${bytes(sumOf("bytes", s))}`);
    if (s !== OWN) cell.addEventListener("click", () => { state.scope = s === state.scope && s ? W.scopes.parent[s] : s; overview(); });
    for (const event of ["pointerenter", "focus"]) cell.addEventListener(event, () => tell(s));
    return cell;
  }));
  tell(top);
  const inScope = new Uint8Array(W.scopes.name.length);
  for (let s = 0; s < inScope.length; s++) inScope[s] = s === top || (s > 0 && inScope[W.scopes.parent[s]]) ? 1 : 0;
  const members = [];
  for (let n = 0; n < count; n++) if (inScope[M.scope[n]] && M.written[n]) members.push(n);
  members.sort((a, b) => M.written[b] - M.written[a] || a - b);
  const links = make("ol");
  for (const n of members.slice(0, 90)) {
    const item = make("li");
    item.append(anchor(n), make("span", [bytes(M.written[n]).replace(" ", "\u00a0"), W.lines[M.line[n]].split("/").pop()].filter(Boolean).join(" · ")));
    links.append(item);
  }
  box.append(links);
  $("find").placeholder = top ? `in ${short(scopeText(top), 40)}` : "name, opcode, op_name or file:line";
  $("status").textContent = `${grouped(count)} instructions in ${grouped(W.computations.length)} computations`;
  if (state.chosen < 0) {
    const panel = $("panel");
    asked++; // what is still unpacked for an operation does not come here
    panel.replaceChildren(make("h2", W.module), make("p", `${grouped(count)} instructions, ${grouped(W.computations.length)} computations. Search for an operation, open a scope, or start at the root of the entry.`, "sub"));
    const entry = M.roots[W.entry];
    if (entry >= 0) list(panel, "The entry's root", [entry]);
    const colours = make("ul", undefined, "colours");
    for (const [colour, text] of W.kinds) {
      const row = make("li"), patch = make("i");
      patch.style.background = palette[colour];
      row.append(patch, make("span", text));
      colours.append(row);
    }
    panel.append(make("h3", "Bars on the left of operations"), colours, make("h3", "Edge labels"), make("p", ".0, .1: selected tuple element", "sub"));
  }
};

// ---- search

const MOST_FOUND = 60;
let results = [], at = -1, lower = null;
const search = (text) => {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [[], 0];
  lower ||= { names: names.map((one) => one.toLowerCase()), opcodes: W.opcodes.map((one) => one.toLowerCase()), op_names: W.op_names.map((one) => one.toLowerCase()), lines: W.lines.map((one) => one.toLowerCase()) };
  const holds = (list, exact) => Uint8Array.from(list, (one) => (exact ? one === wanted : one.includes(wanted)) ? 1 : 0);
  const opcodes = holds(lower.opcodes), op_names = holds(lower.op_names), lines = holds(lower.lines);
  const inScope = new Uint8Array(W.scopes.name.length).fill(state.scope ? 0 : 1);
  if (state.scope) for (let s = 0; s < inScope.length; s++) inScope[s] = isInScope(s, state.scope) ? 1 : 0;
  const ranked = [[], [], [], [], []];
  let total = 0;
  for (let n = 0; n < count; n++) {
    if (!inScope[M.scope[n]]) continue;
    const name = lower.names[n];
    const rank = name === wanted ? 0 : name.startsWith(wanted) ? 1 : name.includes(wanted) ? 2 : opcodes[M.opcode[n]] ? 3 : op_names[M.op_name[n]] || lines[M.line[n]] ? 4 : 5;
    if (rank === 5) continue;
    total++;
    if (ranked[rank].length < MOST_FOUND) ranked[rank].push(n);
  }
  return [ranked.flat().slice(0, MOST_FOUND), total];
};
const field = $("find"), box = $("found");
const closeList = () => { box.hidden = true; field.setAttribute("aria-expanded", "false"); };
const mark2 = () => {
  [...box.querySelectorAll("[role=option]")].forEach((row, k) => {
    row.setAttribute("aria-selected", String(k === at));
    if (k === at) { row.scrollIntoView({ block: "nearest" }); field.setAttribute("aria-activedescendant", row.id); }
  });
};
const look = () => {
  const [found, total] = search(field.value);
  results = found;
  at = found.length ? 0 : -1;
  box.replaceChildren(...found.map((n, k) => {
    const row = make("li");
    row.id = `found-${k}`;
    row.setAttribute("role", "option");
    row.append(make("b", short(label(n), 90)), make("span", [opcode(n), W.short[M.shape[n]], W.op_names[M.op_name[n]], W.lines[M.line[n]]].filter(Boolean).map((one) => short(one, 90)).join(" · ")));
    row.addEventListener("pointerdown", (event) => { event.preventDefault(); closeList(); goTo(n); });
    return row;
  }), make("li", field.value.trim() ? `${grouped(total)} found${total > found.length ? `, ${found.length} shown` : ""}${state.scope ? ` in ${scopeText(state.scope)}` : ""}` : "type to search", "count"));
  box.hidden = !field.value.trim();
  field.setAttribute("aria-expanded", String(!box.hidden));
  mark2();
};
field.addEventListener("input", look);
field.addEventListener("focus", () => { if (field.value.trim()) look(); });
field.addEventListener("blur", closeList);
field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    at = Math.max(0, Math.min(results.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)));
    mark2();
    event.preventDefault();
  } else if (event.key === "Enter" && results[at] !== undefined) { closeList(); goTo(results[at]); canvas.focus(); } else if (event.key === "Escape") { closeList(); canvas.focus(); }
});

// ---- pointer, wheel, keys

const zoom = (factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
  const k = Math.max(0.05, Math.min(3, view.k * factor));
  view.x = x - (x - view.x) * k / view.k;
  view.y = y - (y - view.y) * k / view.k;
  view.k = k;
  move();
};
const fingers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", (event) => {
  if (event.target.closest("button, #overview")) return;
  fingers.set(event.pointerId, [event.clientX, event.clientY]);
  moved = 0;
});
canvas.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId);
  if (!before) return;
  const now = [event.clientX, event.clientY];
  if (fingers.size === 2) {
    const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    const far = (a) => Math.hypot(a[0] - other[0], a[1] - other[1]), frame = canvas.getBoundingClientRect();
    zoom(far(now) / Math.max(1, far(before)), (now[0] + other[0]) / 2 - frame.left, (now[1] + other[1]) / 2 - frame.top);
  } else { view.x += now[0] - before[0]; view.y += now[1] - before[1]; move(); }
  moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
  if (moved > 6) canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, now);
});
for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (event) => fingers.delete(event.pointerId));
svg.addEventListener("click", (event) => {
  const node = event.target.closest("g.node");
  if (!node || moved > 6) return;
  if (node.dataset.more !== undefined) { state.all.add(+node.dataset.more); state.most += 60; $("most").value = state.most; show(); return; }
  choose(+node.dataset.n);
});
// Tooltips are made when they are asked for: for a thousand operations they would double the time of drawing.
svg.addEventListener("pointerover", (event) => {
  const found = event.target.closest("g.node, path.edge");
  if (!found || found.querySelector(":scope > title")) return;
  const n = +found.dataset.n, wire = wires.find(([line]) => line === found);
  const text = found.dataset.says ?? (wire
    ? `${label(wire[1])} → ${label(wire[2])}: ${bytes(wire[3].bytes)}${wire[3].isCopied ? ", with a copy in between" : ""}${wire[3].labels.length ? ` (${short(wire[3].labels.join(", "), 80)})` : ""}`
    : `${label(n) === names[n] ? names[n] : `${label(n)} (${names[n]})`}: ${opcode(n)} ${short(W.shapes[M.shape[n]], 200)}`);
  found.append(draw("title", {}, text));
});
svg.addEventListener("dblclick", (event) => {
  const node = event.target.closest("g.node[data-n]");
  if (node) goTo(+node.dataset.n);
});
canvas.addEventListener("wheel", (event) => {
  if (event.target.closest("#overview")) return;
  event.preventDefault();
  const frame = canvas.getBoundingClientRect();
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY * 0.01), event.clientX - frame.left, event.clientY - frame.top);
  else { view.x -= event.deltaX; view.y -= event.deltaY; move(); }
}, { passive: false });
const walk = (key) => {
  const from = boxes.get(state.chosen) || boxes.get(state.focus);
  if (!from) return;
  const near = key === "ArrowUp" ? sources(state.chosen).map((one) => one.from) : key === "ArrowDown" ? targets(state.chosen) : [...boxes.keys()];
  let best = -1, least = Infinity;
  for (const n of near) {
    const box = boxes.get(n);
    if (!box || n === state.chosen) continue;
    const dx = box.x - from.x, dy = Math.abs(box.y - from.y);
    if (key === "ArrowLeft" && (dx >= 0 || dy > 20)) continue;
    if (key === "ArrowRight" && (dx <= 0 || dy > 20)) continue;
    const far = Math.abs(dx) + dy;
    if (far < least) { least = far; best = n; }
  }
  if (best < 0) return;
  choose(best);
  const box = boxes.get(best), x = box.x * view.k + view.x, y = box.y * view.k + view.y;
  if (x < 60 || x > canvas.clientWidth - 60) view.x += canvas.clientWidth / 2 - x;
  if (y < 40 || y > canvas.clientHeight - 40) view.y += canvas.clientHeight / 2 - y;
  move();
};
const fold = () => { state.fold = !state.fold; $("fold").setAttribute("aria-pressed", String(state.fold)); show(); };
const toScopes = () => {
  if (!$("overview").hidden) return;
  state.chosen = -1;
  overview();
  history.pushState(step(), "", location.pathname + location.search);
};
const opened = () => {
  if (state.chosen < 0) return;
  if (callsOf(state.chosen).length) toggle(state.chosen);
  else $("status").textContent = `${short(label(state.chosen), 40)} calls no computation that can be opened`;
};
// Of the graph wherever the keyboard is, but where it has its own use there: a link leads here without the graph's being chosen.
document.addEventListener("keydown", (event) => {
  const { target } = event, isGraph = target === document.body || canvas.contains(target);
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest?.("input, select, textarea, #overview") || !$("overview").hidden) return;
  const act = { o: opened, "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(true), f: fold, s: toScopes }[event.key];
  if (act) { act(); event.preventDefault(); return; }
  if (!isGraph) return;
  if (event.key === "Enter" && state.chosen >= 0) { goTo(state.chosen); event.preventDefault(); } else if (event.key.startsWith("Arrow")) { walk(event.key); event.preventDefault(); }
});
document.addEventListener("keydown", (event) => { if (event.key === "/" && !/INPUT/.test(event.target.tagName)) { field.focus(); field.select(); event.preventDefault(); } });
$("in").addEventListener("click", () => zoom(1.25));
$("out").addEventListener("click", () => zoom(0.8));
$("fit").addEventListener("click", () => fit(true));
$("fold").addEventListener("click", fold);
$("scopes").addEventListener("click", toScopes);
for (const name of ["hops", "most"]) $(name).addEventListener("change", (event) => {
  const value = Math.max(+event.target.min, Math.min(+event.target.max, Math.round(+event.target.value) || state[name]));
  event.target.value = state[name] = value;
  show();
});
addEventListener("resize", () => { if (!$("overview").hidden) overview(); });

// ---- steps of the history: each has what is drawn, by names, so that Back and Forward undo and redo them

const step = () => ({ focus: state.focus < 0 ? "" : link(state.focus), chosen: state.chosen < 0 ? "" : link(state.chosen), open: [...state.open].map(link), isOverview: !$("overview").hidden });
const restore = (was) => {
  const [focus, chosen] = [was.focus, was.chosen].map((one) => one ? byLink(one) : -1);
  if (focus < 0 && !was.isOverview) return false;
  state.open = new Set(was.open.map(byLink).filter((n) => n >= 0));
  state.focus = focus;
  state.chosen = was.isOverview ? -1 : chosen < 0 ? focus : chosen;
  if (was.isOverview) { overview(); return true; }
  show();
  describe(state.chosen);
  return true;
};
const open = () => {
  let wanted = "";
  try { wanted = decodeURIComponent(location.hash.slice(1)); } catch (error) { /* no link of ours */ }
  const n = wanted ? byLink(wanted) : -1;
  if (n >= 0) focusOn(n);
  else if (wanted) $("status").textContent = `no instruction or computation ${short(wanted, 60)}`;
  return n >= 0;
};
const home = () => {
  const { around } = document.body.dataset, first = around ? byLink(around) : -1;
  if (first >= 0) focusOn(first);
  else if (count > 60 && W.scopes.name.length > 3) { state.chosen = -1; overview(); } else { state.hops = 12; $("hops").value = 12; focusOn(Math.max(0, M.roots[W.entry])); }
};
const arrive = () => {
  if (history.state && restore(history.state)) return;
  if (!open() && (state.focus < 0 || !location.hash)) { home(); open(); } // says that there is no such name, where the start page has said something else
  history.replaceState(step(), "");
};

// ---- begin

start().then(() => {
  state.hops = Math.max(1, Math.min(12, +document.body.dataset.hops || 3));
  $("hops").value = state.hops;
  arrive();
  addEventListener("popstate", arrive);
  addEventListener("hashchange", () => { if (!history.state) arrive(); }); // of browsers that tell links by it alone
  globalThis.hlotextGraph = { state, show, focusOn, choose, toggle, search, boxes: () => boxes, largest: () => M.written.indexOf(M.written.reduce((a, b) => Math.max(a, b), 0)), view: () => view };
  requestAnimationFrame(() => { root.dataset.ready = String(Math.round(performance.now())); });
});
