// What charts share: the tip at the pointer, the chosen one's lines, buttons, the legend. Text of the module goes into the page
// by textContent alone.

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
// Rows of a name, a colour, and a class where it is no plain patch.
const legend = (chart, rows) => {
  chart.querySelector(".legend").replaceChildren(...rows.map(([name, colour, kind]) => {
    const row = make("li"), patch = make("i", undefined, kind);
    if (colour) patch.style.background = colour;
    row.append(patch, make("span", name));
    return row;
  }));
};
