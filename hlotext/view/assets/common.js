// What the scripts of pages share: numbers for people, packed data, light and dark. Joined with others inside one function.

const root = document.documentElement, palette = document.body.dataset.palette.split(" ");

// ---- numbers for people, as hlotext.analysis writes them

// As Python rounds: what lies in the middle goes to the even side.
const fixed = (value, places) => {
  const scaled = value * 10 ** places, low = Math.floor(scaled);
  return (scaled - low === 0.5 ? (low % 2 ? low + 1 : low) / 10 ** places : value).toFixed(places);
};
const digits = (value) => fixed(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
const bytes = (count) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let value = count, unit = 0;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1024; unit++; }
  return unit ? `${digits(value)} ${units[unit]}` : `${count} B`;
};
const amount = (count) => {
  const units = ["", "K", "M", "G", "T", "P", "E"];
  let value = count, unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) { value /= 1000; unit++; }
  return unit ? `${digits(value)} ${units[unit]}` : String(Number.isInteger(value) ? value : +value.toPrecision(3));
};
const seconds = (time) => {
  for (const [factor, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"]])
    if (time >= 0.9995 * factor) return `${time >= 999.5 ? grouped(Math.round(time / factor)) : digits(time / factor)} ${unit}`;
  return !time ? "0" : time >= 1e-9 ? `${fixed(time * 1e9, 0)} ns` : "<1 ns";
};
const percent = (part, whole) => whole ? `${(100 * part / whole).toFixed(1)}%` : "";
// Of an operation: what it writes, and what its result holds where that is more, as of a start that holds its operand too.
const bytesWritten = (written, held, padding) => !written ? "" : written === held
  ? `${bytes(held)}${padding ? `, ${bytes(padding)} of it padding` : ""}` : `${bytes(written)} written; the result holds ${bytes(held)}`;
const grouped = (count) => count.toLocaleString("en-US");

// ---- the page

const make = (tag, text, name) => {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (name) found.className = name;
  return found;
};
const decoded = (text) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text), found = new Uint8Array(binary.length);
  for (let n = 0; n < binary.length; n++) found[n] = binary.charCodeAt(n);
  return found;
};
const inflated = (text) => new Response(new Blob([decoded(text)]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
const unpack = async (text) => JSON.parse(new TextDecoder().decode(await inflated(text)));
const remember = (value) => { try { localStorage.setItem("hlotext-theme", value); } catch (error) { /* a file has no store */ } };
const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const painters = [];
const paint = () => painters.forEach((one) => one());
try {
  const kept = localStorage.getItem("hlotext-theme");
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
} catch (error) { /* as above */ }
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  remember(root.dataset.theme);
  paint();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);

