// A countdown beside a time limit: inconspicuous at first, prominent in the last minutes. It counts from the remaining
// time that the server sent, so that a wrong clock in the customer's device does no harm.
const NEAR_SECONDS = 180;

function clock(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const [hours, minutes, rest] = [whole / 3600, (whole / 60) % 60, whole % 60].map(Math.floor);
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export function startCountdowns(root) {
  for (const place of root.querySelectorAll("[data-seconds-left]")) {
    const ends = performance.now() + Number(place.dataset.secondsLeft) * 1000;
    const face = place.querySelector("[data-clock]");
    const words = place.dataset.left;
    const tick = () => {
      if (!place.isConnected) return;
      const left = (ends - performance.now()) / 1000;
      face.textContent = left > 0 ? words.replace("{time}", clock(left)) : place.dataset.over;
      place.classList.toggle("near", left <= NEAR_SECONDS);
      const hurry = document.querySelector("[data-hurry]");
      if (hurry && left <= NEAR_SECONDS && !hurry.textContent) hurry.textContent = hurry.dataset.hurry;
      if (left > 0) setTimeout(tick, 1000 - ((performance.now() - ends) % 1000 + 1000) % 1000);
      else document.dispatchEvent(new Event("fiatgate:look"));
    };
    tick();
  }
}
