// Scopes as cells, each below the one around it and as wide as its share. Of a comparison both sides have one scale.

const icicle = (chart, data) => {
  const box = chart.querySelector(".picture"), count = data.parent.length, row = 27;
  const kids = Array.from({ length: count }, () => []);
  for (let n = 1; n < count; n++) kids[data.parent[n]].push(n);
  let metric = data.metrics.includes("seconds") ? "seconds" : data.metrics[0], top = 0;
  const name = (n) => data.words[data.name[n]];
  const path = (n) => { const found = []; for (; n > 0; n = data.parent[n]) found.unshift(name(n)); return found.join("/") || name(0); };
  const lines = (n) => [
    path(n),
    `${bytes(Math.round(data.bytes[n]))} (${percent(data.bytes[n], data.bytes[0])}) · ${amount(data.flops[n])} flops (${percent(data.flops[n], data.flops[0])})` +
      (data.seconds ? ` · ${seconds(data.seconds[n])} (${percent(data.seconds[n], data.seconds[0])} of the sum of all units)` : ""),
    data.phases[n] && data.phases[n].some(Boolean)
      ? `flops: ${data.phases[n].map((part, k) => part ? `${(100 * part).toFixed(0)}% ${["forward", "backward", "recomputed"][k]}` : "").filter(Boolean).join(", ")}` : "",
  ];
  const draw = (focus) => {
    const value = data[metric], share = top || !data.scale[metric] ? 1 : value[0] / data.scale[metric];
    const wide = box.clientWidth * share, height = Math.round(box.clientHeight / row), shown = [];
    const around = [];
    for (let n = top; n >= 0; n = data.parent[n]) around.unshift(n);
    around.forEach((n, k) => shown.push([n, 0, wide, k]));
    const order = (n) => kids[n].slice().sort((a, b) => value[b] - value[a]);
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
    // How far inside the scope whose colour it has: paler with each step.
    const steps = (n) => { let count = 0; while (n > 0 && data.colour[data.parent[n]] === data.colour[n] && data.parent[n] > 0) { n = data.parent[n]; count++; } return count; };
    const grey = palette.length - 1;
    box.replaceChildren(...shown.map(([n, x, size, at]) => {
      const cell = make("button", size > 26 ? name(n) : "", size > 26 ? "" : "slim");
      cell.type = "button";
      cell.tabIndex = n === (focus ?? top) ? 0 : -1;
      cell.dataset.n = n;
      cell.setAttribute("aria-label", lines(n).filter(Boolean).join(", "));
      if (around.includes(n) && n !== top) cell.classList.add("around");
      const strength = data.colour[n] >= grey - 1 ? 38 : Math.max(42, 78 - 9 * steps(n));
      cell.style.cssText = `left:${x}px;top:${at * row}px;width:${Math.max(2, size - 1)}px;background:color-mix(in srgb, ${palette[data.colour[n]]} calc(${strength}% * var(--strength)), var(--mix))`;
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
