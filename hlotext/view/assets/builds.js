// The page of builds: its contents and tables come from the other files; here only the mark that it is ready.

// Escape closes what is told of an operation, as its cross does.
document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && document.querySelector(".operation:target");
  if (open) location.hash = open.querySelector(".head a").hash;
});
requestAnimationFrame(() => { root.dataset.ready = String(Math.round(performance.now())); });
