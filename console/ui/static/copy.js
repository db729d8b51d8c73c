// Copies a text that a button has, or that of the field it names. Without scripts the texts can be selected.
for (const each of document.querySelectorAll("[data-copy], [data-copy-text]")) each.hidden = !navigator.clipboard;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-text]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copyText ?? document.getElementById(button.dataset.copy).value);
  if (button.dataset.copy) button.textContent = "Copied";
  button.classList.add("done");
  setTimeout(() => button.classList.remove("done"), 1500);
});
