// Every table of a page: sorted by its heads, filtered by words, copied as CSV or markdown, all of what is shown.

const copyText = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) { // no permission, or no such thing for files: the older way
    const field = make("textarea");
    field.value = text;
    field.className = "quiet";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
};
// What is to be pasted: a click copies all of it.
for (const one of document.querySelectorAll("pre.paste, code.command")) {
  const button = make("button", "copy", "copy"), text = one.textContent;
  button.type = "button";
  button.title = "copy for pasting";
  button.addEventListener("click", async () => { button.textContent = await copyText(text) ? "copied" : "not allowed here"; });
  one.after(button);
}
// What a spreadsheet would take for a formula is text there: names come from the module.
const csvCell = (text) => {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?[\d.]+(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const markdownCell = (text) => text.replace(/\s+/g, " ").replace(/[\\|`*_<>[\]]/g, "\\$&");

const FEW = 6; // rows that nobody needs to filter
const tableOf = (table) => {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells], scroll = table.closest(".scroll");
  const titles = heads.map((head) => head.textContent), isNumber = heads.map((head) => head.classList.contains("n"));
  const cellText = (cell) => cell.textContent.trim();
  const value = (row, column) => {
    const cell = row.cells[column];
    if (!isNumber[column]) return cellText(cell);
    return cell.dataset.v === undefined ? NaN : +cell.dataset.v;
  };
  const isEmpty = (one) => one === "" || Number.isNaN(one);
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const words = rows.map((row) => row.textContent.toLowerCase());
  // Its rows are cards where there is little room, and their cells have the titles with them.
  if (table.matches(".cards, .wide"))
    for (const row of rows) [...row.cells].forEach((cell, column) => { cell.dataset.title = titles[column]; cell.dataset.key = heads[column].dataset.key; });
  let order = rows, shown = rows;

  const bar = make("div", undefined, "filter"), field = make("input"), count = make("output");
  const title = table.closest("details")?.querySelector("summary")?.textContent || table.getAttribute("aria-label") || "table";
  field.type = "search";
  field.placeholder = "filter by words";
  field.setAttribute("aria-label", `filter rows: ${title}`);
  field.spellcheck = false;
  const fill = () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean), kept = new Set();
    rows.forEach((row, n) => { if (wanted.every((word) => words[n].includes(word))) kept.add(row); });
    shown = order.filter((row) => kept.has(row));
    for (const row of rows) row.hidden = !kept.has(row);
    count.textContent = wanted.length ? `${grouped(shown.length)} of ${grouped(rows.length)} rows` : "";
  };
  const sort = (column) => {
    const was = heads[column].getAttribute("aria-sort"), first = isNumber[column] ? "descending" : "ascending";
    const now = was === "none" ? first : was === first ? (first === "ascending" ? "descending" : "ascending") : "none";
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[column].setAttribute("aria-sort", now);
    order = rows;
    if (now !== "none") {
      const sign = now === "ascending" ? 1 : -1;
      const compare = isNumber[column] ? (a, b) => a - b : collator.compare;
      order = rows.map((row, n) => [value(row, column), n, row]).sort(([a, n], [b, m]) =>
        isEmpty(a) || isEmpty(b) ? isEmpty(a) - isEmpty(b) || n - m : sign * compare(a, b) || n - m).map((one) => one[2]);
    }
    body.append(...order);
    fill();
  };
  heads.forEach((head, column) => {
    if (head.dataset.sort === "none") return;
    const button = make("button", titles[column], "sort");
    button.type = "button";
    button.title = "sort by this column";
    head.addEventListener("click", () => sort(column));
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button);
  });
  const exact = (row, column) => (isNumber[column] ? row.cells[column].dataset.v ?? "" : row.cells[column].dataset.full ?? cellText(row.cells[column]));
  const forms = {
    csv: () => [titles, ...shown.map((row) => titles.map((_, column) => exact(row, column)))].map((row) => row.map(csvCell).join(",")).join("\n") + "\n",
    markdown: () => [
      titles.map(markdownCell), isNumber.map((right) => (right ? "---:" : "---")),
      ...shown.map((row) => [...row.cells].map((cell) => markdownCell(cellText(cell)))),
    ].map((row) => `| ${row.join(" | ")} |`).join("\n") + "\n",
  };
  field.addEventListener("input", fill);
  field.addEventListener("keydown", (event) => { if (event.key === "Escape" && field.value) { field.value = ""; fill(); event.stopPropagation(); } });
  field.hidden = rows.length < FEW;
  const copies = make("span");
  bar.append(field, count, copies);
  for (const [name, text] of [["csv", "CSV"], ["markdown", "markdown"]]) {
    const button = make("button", text);
    button.type = "button";
    button.title = `copy the rows shown as ${text}`;
    button.setAttribute("aria-label", `copy ${title} as ${text}`);
    button.addEventListener("click", async () => { count.textContent = await copyText(forms[name]()) ? `${grouped(shown.length)} rows copied` : "copying is not allowed here"; });
    copies.append(button);
  }
  scroll.before(bar);
  // Where more of it is out of sight, the right side fades; on the left the names of the rows throw a shadow.
  const fade = () => {
    scroll.classList.toggle("more-left", scroll.scrollLeft > 1);
    scroll.classList.toggle("more-right", scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft > 1);
  };
  const sizes = new ResizeObserver(fade);
  for (const one of [scroll, table]) sizes.observe(one);
  scroll.addEventListener("scroll", fade, { passive: true });
  table.hlotext = { sort, fill, forms, field, get shown() { return shown; } };
};
document.querySelectorAll("main .scroll > table").forEach(tableOf);
