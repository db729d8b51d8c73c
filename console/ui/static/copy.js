// Copies the value of the field that a button names; without scripts the field's text can be selected.
for (const each of document.querySelectorAll("[data-copy]")) {
  each.hidden = !navigator.clipboard;
  each.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(each.dataset.copy).value);
    each.textContent = "Copied";
  });
}
