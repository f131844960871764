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
