// A report: its contents, and when its charts are drawn.

const links = new Map([...document.querySelectorAll("nav.contents a")].map((a) => [a.hash.slice(1), a]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const a of links.values()) a.classList.remove("here");
    links.get(entry.target.id)?.classList.add("here");
  }
}, { rootMargin: "-60px 0px -70% 0px" });
for (const part of document.querySelectorAll("section.part")) seen.observe(part);

// Of a source the dearest line is in view from the start, and each is shaded by its share of it.
for (const table of document.querySelectorAll("table.source")) {
  const rows = [...table.tBodies[0].rows].filter((row) => row.dataset.line), costOf = (row) => +(row.cells[2]?.dataset.v ?? 0);
  const most = Math.max(...rows.map(costOf)), box = table.closest(".scroll"), dearest = rows.find((row) => costOf(row) === most);
  if (!(most > 0)) continue;
  for (const row of rows) row.style.setProperty("--share", `${(100 * costOf(row) / most).toFixed(1)}%`);
  box.scrollTop = dearest.offsetTop - box.clientHeight / 2;
}

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
