// Ignores a second tap on a form's button, and reports a picture that is too large before it is sent.
const AGAIN_MILLISECONDS = 15000; // by then the customer has stopped the browser, and may try again

export function startForms(root) {
  for (const form of root.querySelectorAll("form")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) {
        event.preventDefault();
        return;
      }
      form.dataset.sent = "yes";
      const buttons = form.querySelectorAll("button");
      for (const button of buttons) button.setAttribute("aria-busy", "true");
      setTimeout(() => {
        delete form.dataset.sent;
        for (const button of buttons) button.removeAttribute("aria-busy");
      }, AGAIN_MILLISECONDS);
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

// The browser's back button restores the page with its form already sent.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
