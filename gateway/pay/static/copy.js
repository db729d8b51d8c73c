// Buttons that copy what stands beside them, and say so.
const CONFIRMED_MILLISECONDS = 2000;

async function toClipboard(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Over plain http, and in older browsers.
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "aside";
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (!copied) throw new Error("not copied");
}

export function startCopying(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    const words = button.querySelector("[data-copied]");
    const asked = words.textContent;
    let pending = 0;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await toClipboard(button.dataset.copy);
      } catch {
        return; // the text can still be selected by hand
      }
      button.classList.add("copied");
      words.textContent = words.dataset.copied;
      clearTimeout(pending);
      pending = setTimeout(() => {
        button.classList.remove("copied");
        words.textContent = asked;
      }, CONFIRMED_MILLISECONDS);
    });
  }
}
