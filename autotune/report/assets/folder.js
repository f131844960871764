// The list of a folder: journals and cached kernels, to open alone or side by side.

function showFolder() {
  $("title").textContent = "Searches and results";
  $("subtitle").replaceChildren(bdi(data.folder));
  const box = (name) => el("input", { type: "checkbox", form: "chosen", name: "source", value: name, id: `pick-${name}`, "aria-label": `Choose ${name}` });
  const link = (name, said) => el("a", { href: `/report?${new URLSearchParams({ source: name })}` }, bdi(short(said, 90)));
  const cells = (...values) => values.map((value) => el("td", typeof value === "number" ? { class: "number", text: number(value) } : { text: value }));
  const head = (...titles) => el("thead", {}, el("tr", {}, ...titles.map((text) => el("th", { scope: "col", text }))));
  const now = Date.now() / 1000;
  const journals = data.journals.slice().sort((a, b) => (b.written_at || 0) - (a.written_at || 0)).map((one) => el("tr", {},
    el("td", {}, box(one.name)), el("td", {}, link(one.name, one.name)),
    ...(one.unreadable ? [el("td", { colspan: "7", text: one.unreadable })]
      : cells(one.kernel, one.device, one.problem, one.trials, one.failed, one.best_ms ?? "–", age(now - one.written_at)))));
  const cached = data.cached.map((one) => el("tr", {}, el("td", {}, box(one.name)), el("td", {}, link(one.name, one.kernel)), el("td", {}, bdi(one.cache))));
  const list = (id, title, rows, titles, nothing) => {
    const grid = section(id, title);
    if (!rows.length) {
      grid.append(panel(el("p", { text: nothing })));
      return;
    }
    grid.append(panel(
      el("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": title }, el("table", {}, head("choose", ...titles), el("tbody", {}, ...rows))),
      el("p", {}, el("button", { type: "submit", form: "chosen", text: "Show the chosen side by side" }))));
  };
  $("main").append(el("form", { id: "chosen", action: "/report" }));
  list("journals", "Searches", journals, ["journal", "kernel", "device", "problem", "trials", "failed", "best (ms)", "last trial"],
    "This folder has no journal yet. A search writes one to runs/.");
  list("cached", "Tuned kernels", cached, ["kernel", "cache"], "This folder has no cache yet. A search stores its result in cache/.");
}

function age(seconds) {
  if (seconds < 10) return "now";
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]])
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit} ago`;
  return `${Math.floor(seconds)} s ago`;
}

function showMessage() {
  $("title").textContent = "Nothing to show yet";
  $("subtitle").textContent = "";
  $("main").append(panel(el("p", { id: "message", text: data.message })));
}
