// Charts that bokeh draws. Their documents come without data, which they are given here: lanes all of it at once, memory what
// the window shows of it.

const LAUNCH = "launch overhead";
const TIME_UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]];

// Spans in lanes: what is drawn of them, the legend and what the pointer is told.
const lanesOf = (chart, data, { main, pieces }) => {
  const [factor, unit] = TIME_UNITS.find(([one]) => data.scale.seconds >= one) || TIME_UNITS[3], lanes = data.lanes.length;
  const word = (column, n) => data.words[data[column][n]], colourOf = (n) => (data.colours[word("kind", n)] || [])[isDark() ? 1 : 0] || palette[palette.length - 1];
  const cut = (name) => (name.length <= 16 ? name : `${name.slice(0, 7)}…${name.slice(-8)}`);
  main.x_range.setv({ start: 0, end: data.scale.seconds / factor, bounds: [0, data.scale.seconds / factor] });
  main.y_range.setv({ start: 0, end: lanes });
  main.height = 90 + 34 * lanes;
  main.left[0].ticker.ticks = data.lanes.map((_, n) => n + 0.5);
  main.left[0].major_label_overrides = new Map(data.lanes.map((name, n) => [lanes - 1 - n + 0.5, cut(name)]));
  main.below[0].axis_label = `time (${unit}), estimated`;
  pieces.data = {
    left: data.begin.map((time) => time / factor), right: data.end.map((time) => time / factor),
    bottom: data.lane.map((lane, n) => lanes - 1 - lane + 0.12 + 0.76 * data.low[n]), top: data.lane.map((lane, n) => lanes - 1 - lane + 0.12 + 0.76 * data.high[n]),
    colour: data.lane.map(() => "grey"), alpha: data.launch.map((isLaunch) => (isLaunch ? 0.38 : 0.95)),
  };
  // A layer of a loop is as high as its share of the loop's time.
  const shareOf = (n) => data.high[n] - data.low[n], times = new Map();
  const nameOf = (n) => (data.launch[n] ? LAUNCH : word("kind", n));
  data.lane.forEach((_, n) => { times.set(nameOf(n), (times.get(nameOf(n)) || 0) + (data.end[n] - data.begin[n]) * shareOf(n)); });
  // With their times: a kind may be too short to be seen. In the order of the colours.
  const ours = () => {
    pieces.data = { ...pieces.data, colour: data.lane.map((_, n) => colourOf(n)) };
    legend(chart, Object.entries(data.colours).filter(([kind]) => times.has(kind))
      .map(([kind, both]) => [`${kind}${kind === LAUNCH ? " (the paler parts)" : ""}, ${seconds(times.get(kind))}`, both[isDark() ? 1 : 0]]));
  };
  const isLayer = (n) => shareOf(n) < 1;
  return {
    count: data.lane.length, numbersAt: (row) => [row], rowOf: (n) => n, ours, reveal: () => {}, zoomTo: () => {},
    lines: (n) => [
      word("name", n),
      `${seconds(data.end[n] - data.begin[n])} from ${seconds(data.begin[n])}, ${data.lanes[data.lane[n]]}: ${isLayer(n) ? `${percent(shareOf(n), 1)} of it ` : ""}${data.launch[n] ? "launch overhead, " : ""}${word("kind", n)} (estimated)`,
      word("carries", n) || (word("opcode", n) === "while" ? "all iterations of the loop" : ""),
      [word("scope", n), word("line", n)].filter(Boolean).join(" · "),
    ],
    middle: (n) => (data.begin[n] + data.end[n]) / 2 / factor,
  };
};

// Memory: layers above, rectangles below, both for the part that the window shows.
const memoryOf = (chart, data, { main, live, pieces, layers, total }, box) => {
  const word = (column, n) => data.words[data[column][n]], steps = stepsOf(data), scale = data.scale, x = main.x_range, y = main.y_range;
  const nameOfScope = new Map(data.legend.map(([name, number]) => [number, name]));
  const scopeOf = (colour) => nameOfScope.get(colour) ?? "(other scopes)";
  x.setv({ start: 0, end: scale.steps, bounds: [0, scale.steps] });
  y.setv({ start: 0, end: scale.heap, bounds: [0, scale.heap] });
  const { isWhole, low, high } = liveScale(data);
  if (!data.is_placed) {
    live.below[0].visible = true;
    live.below[0].axis_label = "step of the schedule";
    live.below[0].formatter.doFormat = (ticks) => ticks.map((tick) => Number.isInteger(tick) ? grouped(tick) : "");
  }
  live.y_range.setv({ start: low, end: high });
  main.left[0].formatter.doFormat = (ticks) => ticks.map((tick) => bytes(Math.round(tick)));
  live.left[0].formatter.doFormat = (ticks) => ticks.map((tick) => isWhole ? bytes(Math.round(tick)) : tick < 0 ? "" : tick ? `+${bytes(Math.round(tick))}` : bytes(data.static));
  for (const one of [main, live]) {
    one.center.find((part) => "location" in part.attributes).location = data.peak.time + 0.5;
  }
  main.below[0].formatter.doFormat = (ticks) => ticks.map((tick) => Number.isInteger(tick) ? grouped(tick) : "");
  let chosen = new Set(), shown = { singles: [], groups: [], least: 0 }, rows = new Map();
  const fill = () => {
    const wide = Math.max(100, box.clientWidth - 92), high = Math.max(100, main.height - 60);
    [layers.data, total.data] = layered(data, steps, x.start, x.end, wide);
    shown = groupedPieces(data, [x.start, x.end], [y.start, y.end], wide, high, chosen);
    const { singles, groups, least } = shown;
    rows = new Map(singles.map((n, row) => [n, row]));
    const both = (one, other) => [...singles.map(one), ...groups.map(other)];
    const alphas = both((n) => strength(data.bytes[n] / least), (run) => run.alpha), stronger = strengthened(alphas);
    pieces.data = {
      left: both((n) => data.first[n], (run) => run.left), right: both((n) => data.last[n] + 1, (run) => run.right),
      bottom: both((n) => data.offset[n], (run) => run.bottom), top: both((n) => data.offset[n] + Math.max(data.bytes[n], least), (run) => run.top),
      colour: both((n) => palette[data.colour[n]], (run) => palette[run.colour]), alpha: alphas.map((one) => one * stronger),
    };
    const used = new Set(data.colour);
    legend(chart, [
      ...[...used].sort((a, b) => a - b).map((colour) => [scopeOf(colour), palette[colour]]),
      ...(data.static ? [[`arguments, results and constants: ${bytes(data.static)}, held throughout${isWhole ? "" : " (not to scale)"}`, "", "held"]] : []),
      [`peak: ${bytes(data.peak.bytes)} at step ${grouped(data.peak.time)}`, "", "peak"],
      ...(groups.length && data.is_placed ? [["fainter: several thin buffers drawn together, with the opacity of the space that they fill and the color of most of their bytes; click to zoom in", "", "together"]] : []),
      ...(stronger > 1.5 ? [[`opacity × ${grouped(Math.round(stronger))}, since the buffers fill little of the visible range`, "", "together"]] : []),
    ]);
  };
  let waiting = 0;
  const later = () => { clearTimeout(waiting); waiting = setTimeout(() => { fill(); chart.hlotext?.reselect(); }, 60); };
  for (const range of [x, y]) for (const name of ["start", "end"]) range.properties[name].change.connect(later);
  new ResizeObserver(later).observe(box);
  fill();
  live.on_event("mousemove", (event) => {
    const step = Math.floor(event.x);
    if (step < 0 || step >= data.moments) return;
    const parts = steps.layers.map((layer, colour) => [layer[step], scopeOf(colour)]).filter(([size]) => size > 0).sort(([a], [b]) => b - a);
    showTip(event.pointer || chart.hlotext.pointer(), [
      `${bytes(steps.total[step])} live`, `step ${grouped(step)}: ${data.schedule[step]}`,
      parts.slice(0, 4).map(([size, name]) => `${name} ${bytes(Math.round(size))}`).join(", "),
      data.static ? `held throughout ${bytes(data.static)}` : "",
    ]);
  });
  live.on_event("mouseleave", hideTip);
  const lines = (n) => [
    word("name", n),
    `${bytes(data.bytes[n])}${data.padding[n] ? ` (${bytes(data.padding[n])} padding)` : ""}${data.is_placed ? ` at offset ${grouped(data.offset[n])}` : ""}, steps ${grouped(data.first[n])}–${grouped(data.last[n])} (from ${data.schedule[data.first[n]]} to ${data.schedule[data.last[n]]})`,
    word("shape", n),
    [word("op_name", n) || word("scope", n), word("line", n)].filter(Boolean).join(" · "),
  ];
  return {
    count: data.bytes.length, lines,
    numbersAt: (row) => row < shown.singles.length ? [shown.singles[row]] : membersOf(data, shown.groups[row - shown.singles.length]),
    rowOf: (n) => rows.get(n),
    reveal: (numbers) => { chosen = new Set(numbers); if (numbers.some((n) => !rows.has(n))) fill(); },
    together: (numbers) => [
      `${grouped(numbers.length)} buffers, ${bytes(numbers.reduce((sum, n) => sum + data.bytes[n], 0))} if all were live at the same time`,
      `steps ${grouped(numbers.reduce((least, n) => Math.min(least, data.first[n]), Infinity))}–${grouped(numbers.reduce((most, n) => Math.max(most, data.last[n]), 0))}`,
      `the largest: ${numbers.slice(0, 3).map((n) => `${word("name", n)} ${bytes(data.bytes[n])}`).join(", ")}`,
      "click to zoom in",
    ],
    zoomTo: (row) => {
      const run = shown.groups[row - shown.singles.length], high = (y.end - y.start) / 6, wide = Math.max(1.5 * (run.right - run.left), (x.end - x.start) / 8);
      const within = (centre, size, end) => { const start = Math.max(0, Math.min(centre - size / 2, end - size)); return { start, end: Math.min(end, start + size) }; };
      x.setv(within((run.left + run.right) / 2, wide, scale.steps));
      y.setv(within((run.bottom + run.top) / 2, high, scale.heap));
    },
    middle: (n) => (data.first[n] + data.last[n] + 1) / 2,
    ours: () => { live.renderers.find((one) => one.name === "outline").glyph.line_color = getComputedStyle(root).getPropertyValue("--text").trim(); },
  };
};

const bokehChart = async (chart, data) => {
  const parts = Object.fromEntries([...chart.querySelectorAll(".picture")].map((box) => [box.dataset.part, box]));
  const roots = {};
  for (const [part, box] of Object.entries(parts)) {
    box.id = `${chart.id}-${part}`;
    roots[data.bokeh.roots[part]] = box.id;
  }
  await Bokeh.embed.embed_items({ [chart.id]: data.bokeh.document }, [{ docid: chart.id, roots, root_ids: Object.keys(roots) }]);
  const page = Bokeh.documents[Bokeh.documents.length - 1], model = (name) => page.get_model_by_name(name);
  const main = model("places"), live = model("live"), pieces = model("pieces"), figures = [main, live].filter(Boolean), box = parts.main;
  const models = { main, live, pieces, layers: model("layers"), total: model("total") };
  const drawn = data.chart === "memory" ? memoryOf(chart, data, models, box) : lanesOf(chart, data, models);
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
    drawn.ours();
  };
  ours();
  painters.push(ours);

  let pointer = { clientX: 0, clientY: 0 };
  for (const part of Object.values(parts)) {
    part.addEventListener("pointermove", (event) => { pointer = event; }, true);
    part.addEventListener("pointerleave", hideTip);
  }
  const said = (row) => { const numbers = drawn.numbersAt(row); return numbers.length === 1 ? drawn.lines(numbers[0]) : drawn.together(numbers); };
  pieces.inspect.connect(() => {
    const [row] = pieces.inspected.indices.slice(-1);
    row === undefined ? hideTip() : showTip(pointer, said(row));
  });
  // Chosen by another part of the page, by a key, or by a click: only the last opens the panel. Of several that one name has
  // the first is told: the one that was pointed at, else the largest.
  let by = "click", selected = [], pointed = -1;
  const select = (numbers, who) => {
    selected = numbers;
    by = who;
    drawn.reveal(numbers);
    pieces.selected.indices = numbers.map(drawn.rowOf).filter((row) => row !== undefined);
    by = "click";
  };
  const choose = (n) => select(n === undefined ? [] : [n], "key");
  const numbersOf = new Map();
  data.name.forEach((_, n) => { const name = nameOf(data.words[data.name[n]]); (numbersOf.get(name) || numbersOf.set(name, []).get(name)).push(n); });
  const sizeOf = (n) => data.bytes ? data.bytes[n] : data.end[n] - data.begin[n];
  for (const numbers of numbersOf.values()) numbers.sort((a, b) => sizeOf(b) - sizeOf(a));
  pieces.selected.properties.indices.change.connect(() => {
    const row = by === "click" ? pieces.selected.indices.at(-1) : drawn.rowOf(selected[0]);
    if (!pieces.selected.indices.length || row === undefined || by === "again") return;
    const numbers = drawn.numbersAt(row), [n] = numbers;
    describe(chart, said(row));
    if (numbers.length > 1) { if (by === "click") drawn.zoomTo(row); return; }
    if (by === "click") selected = [n];
    if (by !== "page") pointed = n;
    chart.dataset.chosen = n;
    if (by !== "page") fromChart(chart, n, by === "click");
  });

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
  const middle = () => selected.length ? drawn.middle(selected[0]) : data.peak?.time;
  const reset = () => { range.setv({ start: 0, end }); main.y_range.setv({ start: 0, end: low }); choose(); };
  tool(chart, "−", "zoom out (key −)", () => zoom(2));
  tool(chart, "+", "zoom in (key +; Ctrl and the wheel)", () => zoom(0.5, middle()));
  if (data.peak) tool(chart, "peak", "zoom to the peak (key p)", () => zoom(0.25, data.peak.time));
  tool(chart, "all", "show all (key 0)", reset);
  let chosen = -1;
  // Without places the live bytes are what is seen, and has the keys.
  const keyed = data.is_placed === false ? parts.live : box;
  if (keyed !== box) for (const name of ["tabindex", "role", "aria-describedby"]) {
    keyed.setAttribute(name, box.getAttribute(name));
    box.removeAttribute(name);
  }
  keyed.setAttribute("aria-keyshortcuts", "+ - 0 n b ArrowLeft ArrowRight");
  keyed.title = "";
  keyed.addEventListener("keydown", (event) => {
    const step = (range.end - range.start) / 8;
    const act = {
      ArrowLeft: () => view(range.start - step, range.end - step), ArrowRight: () => view(range.start + step, range.end + step),
      "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2), 0: reset, p: () => data.peak && zoom(0.25, data.peak.time),
      n: () => choose(chosen = Math.min(drawn.count - 1, chosen + 1)), b: () => choose(chosen = Math.max(0, chosen - 1)),
    }[event.key];
    if (act && !event.ctrlKey && !event.metaKey) { act(); event.preventDefault(); }
  });
  chart.hlotext = {
    data, choose, pieces, range, main, mark: (name) => {
      const numbers = numbersOf.get(name) || [];
      if (!numbers.includes(pointed)) pointed = -1;
      select([...numbers].sort((a, b) => (b === pointed) - (a === pointed)), "page");
    }, pointer: () => pointer,
    // Rows have other numbers once the window shows another part.
    reselect: () => { by = "again"; pieces.selected.indices = selected.map(drawn.rowOf).filter((row) => row !== undefined); by = "click"; },
  };
  const chosenRow = document.querySelector(`[data-side="${sideOf(chart)}"] tr.chosen a.op`);
  if (chosenRow) chart.hlotext.mark(nameOf(decodeURIComponent(chosenRow.hash.replace(/^#op(-b)?=/, ""))));
};
