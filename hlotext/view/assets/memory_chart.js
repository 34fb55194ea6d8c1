// Memory over the schedule: live bytes as layers by scope, and below them where each temporary lies. Rectangles that are too
// thin to be seen are drawn together, by cells of a few pixels, until a zoom makes them large enough. What is drawn higher than
// its bytes are is fainter by as much, so that no memory seems to be held that is not.

const THIN = 3, CELL = 4, FEW_THIN = 12, STRONG = 0.8, FAINTEST = 0.05, SHADES = 16, FEEBLE = 0.3;
// How strong a place is drawn of which buffers fill this part: in a few shades, so that neighbours are one rectangle.
const strength = (full) => Math.max(FAINTEST, STRONG * Math.min(1, Math.ceil(SHADES * full - 1e-9) / SHADES));
// How much stronger all of a window is drawn in which nothing fills its place by far, so that it is seen at all.
const strengthened = (alphas) => {
  const most = alphas.reduce((a, b) => Math.max(a, b), 0);
  return most && most < FEEBLE ? STRONG / most : 1;
};
// Where live bytes are drawn: above what is held throughout where that is most of them, which then is a strip without scale.
const liveScale = (data) => {
  const { is_whole: isWhole, above, top } = data.scale, range = isWhole ? top : above;
  return { isWhole, low: isWhole ? 0 : -0.15 * range, high: 1.12 * range, place: (size) => isWhole ? size : size - data.static };
};
const stepsOf = (data) => {
  const layers = Array.from(palette, () => new Float64Array(data.moments + 1)), total = new Float64Array(data.moments);
  data.first.forEach((first, n) => { layers[data.colour[n]][first] += data.bytes[n]; layers[data.colour[n]][data.last[n] + 1] -= data.bytes[n]; });
  const [times, sizes] = data.timeline;
  times.forEach((time, k) => total.fill(sizes[k], time, times[k + 1] ?? data.moments));
  for (const layer of layers) for (let step = 1; step < data.moments; step++) layer[step] += layer[step - 1];
  // Values that share bytes count once; what is not drawn as a rectangle counts as of other scopes.
  const others = layers[layers.length - 1];
  for (let step = 0; step < data.moments; step++) others[step] += Math.max(0, total[step] - data.static - layers.reduce((sum, layer) => sum + layer[step], 0));
  return { layers, total };
};

// The layers between two steps, of steps that fall on one pixel the one with most bytes.
const layered = (data, steps, from, to, wide) => {
  const begin = Math.max(0, Math.floor(from)), end = Math.min(data.moments, Math.ceil(to)), size = Math.max(1, Math.ceil((end - begin) / Math.max(50, wide)));
  const edges = [], chosen = [];
  for (let at = begin; at < end; at += size) {
    let most = at;
    for (let step = at + 1; step < Math.min(end, at + size); step++) if (steps.total[step] > steps.total[most]) most = step;
    edges.push([at, Math.min(end, at + size)]);
    chosen.push(most);
  }
  const { low, place } = liveScale(data), found = { xs: [], ys: [], colour: [], alpha: [] };
  let below = chosen.map(() => low);
  const ground = Math.max(low, place(data.static)), add = (tops, colour, alpha) => {
    const xs = [], ys = [];
    edges.forEach(([a, b], k) => { xs.push(a, b); ys.push(tops[k], tops[k]); });
    for (let k = edges.length - 1; k >= 0; k--) { xs.push(edges[k][1], edges[k][0]); ys.push(below[k], below[k]); }
    found.xs.push(xs); found.ys.push(ys); found.colour.push(colour); found.alpha.push(alpha);
    below = tops;
  };
  if (data.static) add(chosen.map((step) => Math.min(ground, Math.max(low, place(steps.total[step])))), palette[palette.length - 1], 0.3);
  steps.layers.forEach((layer, colour) => {
    const tops = chosen.map((step, k) => Math.max(below[k], Math.min(place(steps.total[step]), Math.max(below[k], ground) + layer[step])));
    if (tops.some((top, k) => top > below[k])) add(tops, palette[colour], 0.8);
  });
  const line = { x: edges.flat(), y: chosen.flatMap((step) => Array(2).fill(place(steps.total[step]))) };
  return [found, line];
};

// What is drawn of the rectangles: numbers of those that are large enough or chosen, and groups of the others.
const groupedPieces = (data, x, y, wide, high, chosen) => {
  const step = (x[1] - x[0]) / wide, byte = (y[1] - y[0]) / high, least = THIN * byte;
  const singles = [], thin = [];
  data.bytes.forEach((size, n) => {
    if (size >= least || chosen.has(n)) singles.push(n);
    else if (data.last[n] >= x[0] && data.first[n] <= x[1] && data.offset[n] + size >= y[0] && data.offset[n] <= y[1]) thin.push(n);
  });
  if (thin.length <= FEW_THIN) return { singles: [...singles, ...thin], groups: [], least };
  const cellWide = Math.max(1, CELL * step), cellHigh = CELL * byte, count = Math.ceil((x[1] - x[0]) / cellWide) + 1, bands = new Map();
  const bandOf = (n) => Math.floor((data.offset[n] + data.bytes[n] / 2) / cellHigh);
  for (const n of thin) {
    const number = bandOf(n), band = bands.get(number) || bands.set(number, { members: [], cells: new Map() }).get(number);
    band.members.push(n);
    const first = Math.max(0, Math.floor((data.first[n] - x[0]) / cellWide)), last = Math.min(count - 1, Math.floor((data.last[n] + 0.999 - x[0]) / cellWide));
    for (let at = first; at <= last; at++) {
      const cell = band.cells.get(at) || band.cells.set(at, new Float64Array(palette.length)).get(at), left = x[0] + at * cellWide;
      cell[data.colour[n]] += data.bytes[n] * (Math.min(data.last[n] + 1, left + cellWide) - Math.max(data.first[n], left));
    }
  }
  const groups = [];
  for (const [number, band] of bands) {
    let run = null;
    for (const at of [...band.cells.keys()].sort((a, b) => a - b)) {
      const cell = band.cells.get(at), full = cell.reduce((sum, one) => sum + one, 0) / (cellWide * cellHigh), colour = cell.indexOf(Math.max(...cell));
      const alpha = strength(full);
      if (run && run.colour === colour && run.alpha === alpha && run.at === at - 1) { run.at = at; continue; }
      run = { colour, from: at, at, alpha, band, number };
      groups.push(run);
    }
  }
  for (const run of groups) {
    run.left = x[0] + run.from * cellWide;
    run.right = x[0] + (run.at + 1) * cellWide;
    run.bottom = run.number * cellHigh;
    run.top = run.bottom + cellHigh;
  }
  return { singles, groups, least };
};
const membersOf = (data, run) => run.members ||= run.band.members.filter((n) => data.last[n] + 1 > run.left && data.first[n] < run.right).sort((a, b) => data.bytes[b] - data.bytes[a]);
