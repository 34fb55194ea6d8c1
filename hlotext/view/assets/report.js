// A report: its contents, and its charts: hovering, choosing, keys. Text of the module goes into the page by textContent alone.

const links = new Map([...document.querySelectorAll("nav.contents a")].map((a) => [a.hash.slice(1), a]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const a of links.values()) a.classList.remove("here");
    links.get(entry.target.id)?.classList.add("here");
  }
}, { rootMargin: "-60px 0px -70% 0px" });
for (const part of document.querySelectorAll("section.part")) seen.observe(part);

const tip = make("div", "", "tip");
tip.setAttribute("role", "presentation");
document.body.append(tip);
const showTip = (event, lines) => {
  tip.replaceChildren(...lines.filter(Boolean).slice(0, 4).map((line, n) => make(n ? "div" : "b", line)));
  tip.style.display = "block";
  const { clientX: x, clientY: y } = event;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
};
const hideTip = () => { tip.style.display = "none"; };

const describe = (chart, lines) => {
  const [name, ...rest] = lines.filter(Boolean);
  chart.querySelector(".detail").replaceChildren(make("b", name), ...rest.map((line) => make("div", line)));
};
const tool = (chart, label, title, act) => {
  const button = make("button", label);
  button.type = "button";
  button.title = title;
  button.setAttribute("aria-label", title);
  button.addEventListener("click", () => act(button));
  chart.querySelector(".tools").append(button);
  return button;
};
const legend = (chart, rows) => {
  chart.querySelector(".legend").replaceChildren(...rows.map(([name, colour]) => {
    const row = make("li"), patch = make("i");
    patch.style.background = colour;
    row.append(patch, make("span", name));
    return row;
  }));
};

// ---- scopes

const icicle = (chart, data) => {
  const box = chart.querySelector(".picture"), count = data.parent.length, row = 27;
  const kids = Array.from({ length: count }, () => []), depth = new Int32Array(count);
  for (let n = 1; n < count; n++) { kids[data.parent[n]].push(n); depth[n] = depth[data.parent[n]] + 1; }
  const perLevel = [];
  depth.forEach((level) => { perLevel[level] = (perLevel[level] || 0) + 1; });
  // Colours tell apart what stands at the first level that has several scopes.
  const level = Math.max(1, perLevel.findIndex((number) => number >= 4));
  let metric = data.metrics.includes("seconds") ? "seconds" : data.metrics[0], top = 0;
  const name = (n) => data.words[data.name[n]];
  const path = (n) => { const found = []; for (; n > 0; n = data.parent[n]) found.unshift(name(n)); return found.join("/") || name(0); };
  const lines = (n) => [
    path(n),
    `${bytes(Math.round(data.bytes[n]))} (${percent(data.bytes[n], data.bytes[0])}) · ${amount(data.flops[n])} flops (${percent(data.flops[n], data.flops[0])})` +
      (data.seconds ? ` · ${seconds(data.seconds[n])} (${percent(data.seconds[n], data.seconds[0])})` : ""),
    data.phases[n] && data.phases[n].some(Boolean)
      ? `flops: ${data.phases[n].map((part, k) => part ? `${(100 * part).toFixed(0)} % ${["forward", "backward", "computed again"][k]}` : "").filter(Boolean).join(", ")}` : "",
  ];
  const draw = (focus) => {
    const value = data[metric], wide = box.clientWidth, height = Math.round(box.clientHeight / row), shown = [];
    const around = [];
    for (let n = top; n >= 0; n = data.parent[n]) around.unshift(n);
    around.forEach((n, k) => shown.push([n, 0, wide, k]));
    const colour = new Map(), order = (n) => kids[n].slice().sort((a, b) => value[b] - value[a]);
    let next = 0;
    const ranked = [0];
    while (ranked.length) {
      const n = ranked.pop();
      if (depth[n] === level) { colour.set(n, palette[next++ % (palette.length - 1)]); continue; }
      ranked.push(...order(n).reverse());
    }
    const waiting = [[top, 0, wide, around.length - 1]];
    while (waiting.length) {
      const [n, left, size, at] = waiting.pop();
      if (at + 1 >= height || !value[n]) continue;
      let x = left;
      for (const kid of order(n)) {
        const part = size * value[kid] / value[n];
        if (part >= 2.5) { shown.push([kid, x, part, at + 1]); waiting.push([kid, x, part, at + 1]); }
        x += part;
      }
    }
    const hue = (n) => { while (depth[n] > level) n = data.parent[n]; return colour.get(n) || palette[palette.length - 1]; };
    box.replaceChildren(...shown.map(([n, x, size, at]) => {
      const cell = make("button", size > 26 ? name(n) : "", size > 26 ? "" : "slim");
      cell.type = "button";
      cell.tabIndex = n === (focus ?? top) ? 0 : -1;
      cell.dataset.n = n;
      cell.setAttribute("aria-label", lines(n).filter(Boolean).join(", "));
      if (around.includes(n) && n !== top) cell.classList.add("around");
      const strength = depth[n] < level ? 38 : Math.max(42, 78 - 9 * (depth[n] - level));
      cell.style.cssText = `left:${x}px;top:${at * row}px;width:${Math.max(2, size - 1)}px;background:color-mix(in srgb, ${hue(n)} calc(${strength}% * var(--strength)), var(--mix))`;
      return cell;
    }));
    if (focus !== undefined) (box.querySelector(`[data-n="${focus}"]`) || box.firstChild).focus();
  };
  const of = (event) => { const cell = event.target.closest("button"); return cell ? +cell.dataset.n : -1; };
  box.addEventListener("click", (event) => {
    const n = of(event);
    if (n < 0) return;
    top = n === top && n > 0 ? data.parent[n] : n;
    describe(chart, lines(n));
    draw(n);
  });
  box.addEventListener("focusin", (event) => { if (of(event) >= 0) describe(chart, lines(of(event))); });
  box.addEventListener("pointermove", (event) => { const n = of(event); n >= 0 ? showTip(event, lines(n)) : hideTip(); });
  box.addEventListener("pointerleave", hideTip);
  box.addEventListener("keydown", (event) => {
    const n = of(event), siblings = n > 0 ? kids[data.parent[n]].slice().sort((a, b) => data[metric][b] - data[metric][a]) : [0];
    const largest = n >= 0 ? kids[n].slice().sort((a, b) => data[metric][b] - data[metric][a])[0] : undefined;
    const to = { ArrowLeft: siblings[siblings.indexOf(n) - 1], ArrowRight: siblings[siblings.indexOf(n) + 1],
      ArrowUp: n > 0 ? data.parent[n] : undefined, ArrowDown: largest }[event.key];
    if (event.key === "Escape" && top) { top = 0; draw(0); event.preventDefault(); }
    const cell = to === undefined ? null : box.querySelector(`[data-n="${to}"]`);
    if (cell) { cell.focus(); event.preventDefault(); }
  });
  box.removeAttribute("tabindex");
  box.setAttribute("role", "group");
  const titles = { bytes: "bytes", flops: "flops", seconds: "time" };
  const buttons = data.metrics.map((one) => tool(chart, titles[one], `wide by ${titles[one]}`, (button) => {
    metric = one;
    buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    draw();
  }));
  buttons[data.metrics.indexOf(metric)].setAttribute("aria-pressed", "true");
  chart.querySelector(".legend").remove();
  new ResizeObserver(() => draw()).observe(box);
  draw();
};

// ---- what bokeh draws

const bokehChart = async (chart, data) => {
  const parts = Object.fromEntries([...chart.querySelectorAll(".picture")].map((box) => [box.dataset.part, box]));
  const roots = {};
  for (const [part, box] of Object.entries(parts)) {
    box.id = `${chart.id}-${part}`;
    roots[data.bokeh.roots[part]] = box.id;
  }
  await Bokeh.embed.embed_items({ [chart.id]: data.bokeh.document }, [{ docid: chart.id, roots, root_ids: Object.keys(roots) }]);
  const page = Bokeh.documents[Bokeh.documents.length - 1];
  const main = page.get_model_by_name("places"), live = page.get_model_by_name("live"), pieces = page.get_model_by_name("pieces");
  const figures = [main, live].filter(Boolean), box = parts.main;
  const ours = () => {
    const style = getComputedStyle(root), of = (name) => style.getPropertyValue(name).trim();
    for (const one of figures) {
      for (const axis of [...one.below, ...one.left])
        axis.setv({ major_label_text_color: of("--dim"), axis_label_text_color: of("--dim"), major_label_text_font: "system-ui, sans-serif", axis_label_text_font: "system-ui, sans-serif" });
      for (const grid of one.center) {
        if ("grid_line_color" in grid.attributes && grid.grid_line_color !== null) grid.grid_line_color = of("--line");
        if ("location" in grid.attributes) grid.line_color = of("--mark");
      }
    }
    const quads = main.renderers.find((one) => one.name === "quads");
    for (const glyph of [quads.selection_glyph, quads.hover_glyph]) if (glyph?.setv) glyph.setv({ line_color: of("--mark") });
  };
  if (data.chart === "memory") for (const one of figures) one.left[0].formatter.doFormat = (ticks) => ticks.map((tick) => bytes(Math.round(tick)));
  if (data.chart === "memory") main.below[0].formatter.doFormat = (ticks) => ticks.map((tick) => Number.isInteger(tick) ? grouped(tick) : "");
  ours();
  painters.push(ours);

  const word = (column, n) => data.words[data[column][n]];
  const lines = data.chart === "memory" ? (n) => [
    word("name", n),
    `${bytes(data.bytes[n])}${data.padding[n] ? ` (${bytes(data.padding[n])} padding)` : ""} at offset ${grouped(data.offset[n])}, steps ${grouped(data.first[n])}–${grouped(data.last[n])} (from ${data.schedule[data.first[n]]} to ${data.schedule[data.last[n]]})`,
    word("shape", n),
    [word("op_name", n) || word("scope", n), word("line", n)].filter(Boolean).join(" · "),
  ] : (n) => [
    word("name", n),
    `${seconds(data.end[n] - data.begin[n])} from ${seconds(data.begin[n])}, ${data.lanes[data.lane[n]]}: ${word("kind", n)} (estimated)`,
    word("opcode", n) === "while" ? "all rounds of the loop" : "",
    [word("scope", n), word("line", n)].filter(Boolean).join(" · "),
  ];
  let pointer = { clientX: 0, clientY: 0 };
  for (const part of Object.values(parts)) {
    part.addEventListener("pointermove", (event) => { pointer = event; }, true);
    part.addEventListener("pointerleave", hideTip);
  }
  pieces.inspect.connect(() => {
    const [n] = pieces.inspected.indices.slice(-1);
    n === undefined ? hideTip() : showTip(pointer, lines(n));
  });
  // Chosen by another part of the page, by a key, or by a click: only the last opens the panel.
  let by = "click";
  const select = (numbers, who) => { by = who; pieces.selected.indices = numbers; by = "click"; };
  const choose = (n) => select(n === undefined ? [] : [n], "key");
  const numbersOf = new Map();
  data.name.forEach((_, n) => { const name = nameOf(word("name", n)); (numbersOf.get(name) || numbersOf.set(name, []).get(name)).push(n); });
  pieces.selected.properties.indices.change.connect(() => {
    const [n] = pieces.selected.indices.slice(-1);
    if (n !== undefined) { describe(chart, lines(n)); chart.dataset.chosen = n; if (by !== "page") fromChart(chart, n, by === "click"); }
  });
  if (live) {
    const at = (step) => {
      const [times, sizes] = data.timeline;
      let low = 0, high = times.length;
      while (high - low > 1) { const middle = (low + high) >> 1; times[middle] <= step ? low = middle : high = middle; }
      return sizes[low];
    };
    live.on_event("mousemove", (event) => {
      const step = Math.floor(event.x);
      if (step >= 0 && step < data.moments) showTip(pointer, [`${bytes(at(step))} live`, `step ${grouped(step)}: ${data.schedule[step]}`]);
    });
    live.on_event("mouseleave", hideTip);
  }

  // Moving, by buttons and keys
  const range = main.x_range, end = range.end, low = main.y_range.end;
  const view = (from, to) => {
    const wide = Math.min(end, Math.max(to - from, end * 1e-6));
    const start = Math.max(0, Math.min(from, end - wide));
    range.setv({ start, end: start + wide });
  };
  const zoom = (factor, about) => {
    const centre = about ?? (range.start + range.end) / 2, wide = (range.end - range.start) * factor;
    view(centre - wide / 2, centre + wide / 2);
  };
  const middle = () => {
    const [n] = pieces.selected.indices;
    if (n === undefined) return data.peak ? data.peak.time : undefined;
    return (pieces.data.left[n] + pieces.data.right[n]) / 2;
  };
  const reset = () => { range.setv({ start: 0, end }); main.y_range.setv({ start: 0, end: low }); choose(); };
  tool(chart, "−", "zoom out (key −)", () => zoom(2));
  tool(chart, "+", "zoom in (key +; Ctrl and the wheel)", () => zoom(0.5, middle()));
  if (data.peak) tool(chart, "peak", "zoom to the peak (key p)", () => zoom(0.25, data.peak.time));
  tool(chart, "all", "show all (key 0)", reset);
  const total = pieces.data.left.length;
  let chosen = -1;
  box.setAttribute("aria-keyshortcuts", "+ - 0 n b ArrowLeft ArrowRight");
  box.title = "";
  box.addEventListener("keydown", (event) => {
    const step = (range.end - range.start) / 8;
    const act = {
      ArrowLeft: () => view(range.start - step, range.end - step), ArrowRight: () => view(range.start + step, range.end + step),
      "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2), 0: reset, p: () => data.peak && zoom(0.25, data.peak.time),
      n: () => choose(chosen = Math.min(total - 1, chosen + 1)), b: () => choose(chosen = Math.max(0, chosen - 1)),
    }[event.key];
    if (act && !event.ctrlKey && !event.metaKey) { act(); event.preventDefault(); }
  });
  if (data.chart === "memory") legend(chart, data.legend.map((name, n) => [name || "(no scope)", palette[n]]));
  else {
    const used = new Map();
    // With their times: a kind may be too short to be seen.
    data.lane.forEach((_, n) => {
      const kind = word("kind", n), known = used.get(kind) || used.set(kind, [pieces.data.colour[n], 0]).get(kind);
      known[1] += data.end[n] - data.begin[n];
    });
    legend(chart, [...used].sort().map(([kind, [colour, time]]) => [`${kind}, ${seconds(time)}`, colour]));
  }
  chart.hlotext = { data, choose, pieces, range, main, mark: (name) => select(numbersOf.get(name) || [], "page") };
  const chosenRow = document.querySelector(`[data-side="${sideOf(chart)}"] tr.chosen a.op`);
  if (chosenRow) chart.hlotext.mark(nameOf(decodeURIComponent(chosenRow.hash.replace(/^#op(-b)?=/, ""))));
};

const drawn = new Map();
const draw = (chart) => {
  if (!drawn.has(chart)) drawn.set(chart, (async () => {
    const data = await unpack(chart.querySelector("script.data").textContent);
    await (data.chart === "icicle" ? icicle(chart, data) : bokehChart(chart, data));
    chart.dataset.drawn = "yes";
  })());
  return drawn.get(chart);
};
// Pictures are figures too, but come drawn.
const charts = [...document.querySelectorAll("figure.chart[data-side]")];
let last = Promise.resolve();
const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) if (isIntersecting) { near.unobserve(target); last = last.then(() => draw(target)); }
}, { rootMargin: "500px" });
charts.forEach((chart) => near.observe(chart));
if (charts.length) last = last.then(() => draw(charts[0]));
last.then(() => requestAnimationFrame(() => { root.dataset.ready = String(Math.round(performance.now())); }));
// The rest when there is time, so that printing finds all of them; one after the other, as bokeh numbers its documents.
openAddress();
const all = () => charts.forEach((chart) => { near.unobserve(chart); last = last.then(() => draw(chart)); });
last.then(() => setTimeout(all, 400));
addEventListener("beforeprint", all);
