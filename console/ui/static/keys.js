// Keys: j and k select a row, Enter opens it, / goes to the search, ? lists the keys. An element with `data-key` is
// activated by its key: first within the selected row, then on the page, but not in another row. Single keys can be switched off in the list.
// Enter sends a form; in a text of several lines Ctrl and Enter do.
const OFF = "fiatgate-keys-off";
const rows = () => [...document.querySelectorAll("[data-row]")].filter((each) => each.offsetParent !== null);
const selected = () => document.querySelector("[data-row].is-selected");

export function select(row) {
  selected()?.classList.remove("is-selected");
  if (!row) return;
  row.classList.add("is-selected");
  row.scrollIntoView({ block: "nearest" });
  const link = row.querySelector("a[href]");
  if (link) link.focus({ preventScroll: true });
  row.dispatchEvent(new CustomEvent("fiatgate:select", { bubbles: true }));
}

function step(by) {
  const all = rows();
  const at = all.indexOf(selected());
  select(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)]);
}

function keyed(key) {
  const here = (each) => !selected() || !each.closest("[data-row]") || selected().contains(each);
  const shown = (place) =>
    [...(place?.querySelectorAll("[data-key]") ?? [])].find((each) => each.dataset.key === key && each.offsetParent !== null && here(each));
  return shown(selected()) ?? shown(document);
}

function activate(element) {
  if (element.matches("input, select, textarea") && element.type !== "checkbox") return element.focus();
  element.click();
  const details = element.closest("details");
  if (element.matches("summary") && details?.open)
    (details.querySelector("input:not([type=hidden]), select, textarea") ?? details.querySelector("button")).focus();
}

function nameOf(element) {
  return element.dataset.keyName ?? (element.getAttribute("aria-label") || element.textContent.trim());
}

function help() {
  document.querySelector("dialog.help")?.remove();
  const dialog = document.createElement("dialog");
  dialog.className = "help";
  const list = document.createElement("dl");
  const own = new Map([["j k", "next and previous row"], ["Enter", "open the row"], ["/", "search"], ["?", "this list"]]);
  if (document.querySelector("textarea")) own.set("Ctrl Enter", "send the text that is being written");
  for (const each of document.querySelectorAll("[data-key]"))
    if (each.offsetParent !== null && !own.has(each.dataset.key)) own.set(each.dataset.key, nameOf(each));
  for (const [key, name] of own) {
    const [term, meaning] = [document.createElement("dt"), document.createElement("dd")];
    for (const one of key.split(" ")) term.append(Object.assign(document.createElement("kbd"), { textContent: one }), " ");
    meaning.textContent = name;
    list.append(term, meaning);
  }
  const heading = Object.assign(document.createElement("h2"), { textContent: "Keyboard", id: "keys-help" });
  dialog.setAttribute("aria-labelledby", "keys-help");
  const off = Object.assign(document.createElement("input"), { type: "checkbox", checked: !localStorage.getItem(OFF) });
  off.addEventListener("change", () => {
    off.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1");
    document.documentElement.classList.toggle("has-keys", off.checked);
  });
  const label = Object.assign(document.createElement("label"), { className: "box" });
  label.append(off, "Single keys work in this browser");
  const close = Object.assign(document.createElement("button"), { textContent: "Close" });
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.append(heading, list, label, close);
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) {
    event.preventDefault();
    event.target.form?.requestSubmit(event.target.form.querySelector("button:not([hidden])"));
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea, dialog, [contenteditable]")) return;
  if (localStorage.getItem(OFF) && event.key !== "?") return;
  const element = event.key.length === 1 ? keyed(event.key) : undefined;
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") help();
  else if (event.key === "/" && document.querySelector("[data-search]")) document.querySelector("[data-search]").focus();
  else if (event.key === "Enter" && event.target === document.body && selected()) selected().querySelector("a[href]")?.click();
  else if (element) activate(element);
  else return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-keys-help]");
  if (button) help();
});
for (const each of document.querySelectorAll("[data-keys-help]")) each.hidden = false;
document.documentElement.classList.toggle("has-keys", !localStorage.getItem(OFF));

// Ages go on while a page is open.
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
export function age(seconds) {
  const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, "s"];
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = unit === "h" && seconds < 36000 && minutes ? ` ${minutes} min` : "";
  return `${Math.floor(seconds / size)} ${unit}${rest}`;
}
setInterval(() => {
  for (const each of document.querySelectorAll("time[data-age]"))
    each.textContent = age(Math.abs(Date.now() - Date.parse(each.dateTime)) / 1000);
}, 10_000);
