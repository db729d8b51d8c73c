// Times of day where the customer is: the server knows UTC only.
export function localTimes(root) {
  const language = document.documentElement.lang;
  const today = new Date().toDateString();
  for (const place of root.querySelectorAll("time[datetime]")) {
    const at = new Date(place.dateTime);
    const date = at.toDateString() === today && !place.hasAttribute("data-date") ? undefined : "medium";
    place.textContent = new Intl.DateTimeFormat(language, { dateStyle: date, timeStyle: "short" }).format(at);
  }
  for (const button of root.querySelectorAll("[data-print]")) button.hidden = false;
}
