// The page of builds: its contents and tables come from the other files; here only the mark that it is ready.

requestAnimationFrame(() => { root.dataset.ready = String(Math.round(performance.now())); });
