// Back to the shop after a few seconds, unless the customer wants to stay.
export function startReturn(root) {
  const place = root.querySelector("[data-return-seconds]");
  if (!place) return;
  const link = root.querySelector("[data-return]");
  const stay = place.querySelector("button");
  const timer = setTimeout(() => {
    if (!link.isConnected) return;
    if (window.parent === window) location.assign(link.href);
    else tellFrame(root.querySelector("[data-outcome]") ?? root, link.href);
  }, Number(place.dataset.returnSeconds) * 1000);
  stay.hidden = false;
  stay.addEventListener("click", () => {
    clearTimeout(timer);
    place.remove();
    root.querySelector("[data-print]")?.focus();
  });
}

// For modal.js in the merchant's page. The browser shows us in a frame, so the merchant has allowed its origin.
function tellFrame(main, returnUrl) {
  window.parent.postMessage({ fiatgate: "finished", status: main.dataset.outcome, returnUrl }, "*");
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});
