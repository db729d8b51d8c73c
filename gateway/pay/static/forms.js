// A second tap sends nothing again, and a picture that is too large is told of before it travels.
export function startForms(root) {
  for (const form of root.querySelectorAll("form")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) {
        event.preventDefault();
        return;
      }
      form.dataset.sent = "yes";
      for (const button of form.querySelectorAll("button")) button.setAttribute("aria-busy", "true");
    });
  }
  for (const input of root.querySelectorAll("input[data-most-bytes]")) {
    input.addEventListener("change", () => {
      const tooLarge = [...input.files].some((file) => file.size > Number(input.dataset.mostBytes));
      input.setCustomValidity(tooLarge ? input.dataset.tooLarge : "");
      input.reportValidity();
    });
  }
}

// The way back shows the page as it was left, with its form already sent.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
