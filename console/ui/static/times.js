// Times in the zone of this browser, with UTC on hover. Without scripts, and in files, they are UTC.
const clock = new Intl.DateTimeFormat("en-US", {
  ...{ day: "numeric", month: "short", year: "numeric", timeZoneName: "short" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
});
for (const each of document.querySelectorAll("time[datetime]")) {
  const parts = clock.formatToParts(new Date(each.dateTime)).map(({ type, value }) => [type, value]);
  const { day, month, year, hour, minute, second, timeZoneName } = Object.fromEntries(parts);
  const exact = each.dataset.exact;
  const here = `${day} ${month} ${year}, ${hour}:${minute}${exact ? `:${second}` : ` ${timeZoneName}`}`;
  if (each.dataset.age === undefined) [each.title, each.textContent] = [exact ?? each.textContent, here];
  else each.title = `${here} (${each.title})`;
}
for (const each of document.querySelectorAll("[data-zone]")) each.textContent = clock.resolvedOptions().timeZone;
