// Back to the shop after a few seconds, unless the customer wants to stay.
import { tellShop } from "./frame.js";

export function startReturn(root) {
  const ended = root.matches?.("[data-outcome]") ? root : root.querySelector("[data-outcome]");
  if (!ended) return;
  const link = ended.querySelector("[data-return]");
  tellShop({ fiatgate: "finished", status: ended.dataset.outcome, returnUrl: link?.href ?? null });
  const place = ended.querySelector("[data-return-seconds]");
  if (!place) return;
  const timer = setTimeout(() => {
    if (!link.isConnected) return;
    if (!tellShop({ fiatgate: "return" })) location.assign(link.href);
  }, Number(place.dataset.returnSeconds) * 1000);
  const stay = place.querySelector("button");
  stay.hidden = false;
  stay.addEventListener("click", () => {
    clearTimeout(timer);
    place.remove();
    ended.querySelector("[data-print]")?.focus();
  });
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});
