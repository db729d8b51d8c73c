// Buttons that copy the text beside them, and report it.
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

// Screen readers do not announce changes inside a button.
function teller() {
  const place = document.querySelector("[data-told]") ?? document.createElement("p");
  place.className = "aside";
  place.dataset.told = "";
  place.setAttribute("role", "status");
  document.body.append(place);
  return place;
}

export function startCopying(root) {
  const told = teller();
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
      words.textContent = told.textContent = words.dataset.copied;
      clearTimeout(pending);
      pending = setTimeout(() => {
        button.classList.remove("copied");
        words.textContent = asked;
        told.textContent = "";
      }, CONFIRMED_MILLISECONDS);
    });
  }
}
