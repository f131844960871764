// Elements, texts and tables. Names and details come from files of anybody: they are only written as text.

const $ = (id) => document.getElementById(id);
const MAX_TABLE = 500; // rows of a chart's table

function el(tag, settings = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const bdi = (text) => el("bdi", { text });
const number = (value, digits = 4) =>
  value === null || value === undefined || Number.isNaN(value)
    ? "–"
    : Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
const perSecond = (gigas, unit) => (gigas >= 1000 ? `${number(gigas / 1000)} T${unit}` : `${number(gigas)} G${unit}`);
const whole = (value) => value.toLocaleString("en");
const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
const short = (text, most = 40) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const cutTo = (text, kept) => `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
/** A name, of which the middle is left out: its end tells it from its neighbours. */
const middle = (text, most = 40) => (text.length > most ? cutTo(text, most - 1) : text);
/** Names that are cut to some letters, or by `cut`, so that no two look alike: else from where they begin to differ. */
function apart(names, most, cut = (name) => middle(name, most)) {
  const groups = new Map();
  for (const name of new Set(names)) groups.set(cut(name), [...(groups.get(cut(name)) || []), name]);
  const shared = (name, other) => [...name].findIndex((letter, place) => letter !== other[place]);
  return names.map((name) => {
    const said = cut(name);
    const alike = groups.get(said).filter((other) => other !== name);
    const from = Math.max(...alike.map((other) => shared(name, other)));
    return alike.length ? cut(`…${name.slice(Math.max(0, from - 2))}`) : said;
  });
}
/** A name that may be cut, with all of it as its title. */
const named = (name, said = middle(name)) => (said === name ? bdi(name) : el("bdi", { text: said, title: name }));
// On a canvas nothing isolates marks that turn the writing round.
const plain = (text) => String(text).replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
const shown = (value) => (value === true ? "True" : value === false ? "False" : String(value));
const assignments = (config) => Object.entries(config).map(([name, value]) => `${name}=${shown(value)}`).join(" ");
const words = (status) => status.replaceAll("_", " ");

function tableOf(columns, rows) {
  const head = el("tr", {}, ...columns.map((text) => el("th", { scope: "col", text })));
  const body = rows.slice(0, MAX_TABLE).map((row) =>
    el("tr", {}, ...row.map((cell) =>
      typeof cell === "number" ? el("td", { class: "number", text: number(cell) }) : el("td", { text: cell }))));
  const made = el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
    el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
  if (rows.length > MAX_TABLE)
    made.append(el("p", { class: "soft", text: `The first ${MAX_TABLE} of ${whole(rows.length)} rows; the table of trials has all.` }));
  return made;
}
