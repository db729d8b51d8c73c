// Removes secrets from a page that is left, so that the browser's way back does not show them again.
addEventListener("pagehide", () => {
  for (const each of document.querySelectorAll("[data-secret]")) {
    each.value = "";
    each.removeAttribute("value");
  }
});
