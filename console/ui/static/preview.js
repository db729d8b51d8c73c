// The customer's page follows the colour while it is typed. Without this script the button "Preview" shows it.
const PAUSE_MILLISECONDS = 300;
const colour = document.querySelector("#colour");
const frame = document.querySelector("[data-preview]");
const button = document.querySelector("[name=preview]");
const opened = document.querySelector("a[target=_blank][href^='/settings/preview/']");
let soon;
if (button) button.hidden = true;
colour?.addEventListener("input", () => {
  const typed = /^#([0-9a-f]{6})$/i.exec(colour.value.trim());
  if (!typed && colour.value.trim()) return;
  clearTimeout(soon);
  soon = setTimeout(() => {
    const path = frame.getAttribute("src").split("/");
    path[3] = typed ? typed[1].toLowerCase() : "none";
    frame.contentWindow.location.replace(path.join("/"));
    opened?.setAttribute("href", path.join("/"));
  }, PAUSE_MILLISECONDS);
});
