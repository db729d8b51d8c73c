// In a frame of the merchant's page, for modal.js there. The browser shows the page in a frame only if the merchant has allowed it.
export function tellShop(message) {
  if (window.parent === window) return false;
  window.parent.postMessage(message, "*");
  return true;
}

export function startFrame() {
  if (tellShop({ fiatgate: "ready" })) document.documentElement.classList.add("framed");
}
